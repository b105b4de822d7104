"""How many interests match each event, exactly."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

from plerion.content.schema import Schema
from plerion.matching.bitset import match_counts
from plerion.pipeline import schemas
from plerion.pipeline.session import shipped
from plerion.pipeline.steps.batches import Floats, points_of


def matches(events: DataFrame, schema: Schema, bounds: Floats) -> DataFrame:
    """The events with the column `matches`; the boxes (m, attributes, 2) of one interest are disjoint."""
    table = StructType([*events.schema, StructField(schemas.MATCHES, LongType(), False)])
    arrow, at = to_arrow_schema(table), [events.columns.index(name) for name in schema.names]
    asked = shipped(events.sparkSession, np.ascontiguousarray(bounds))

    def over(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = match_counts(asked.value, points_of(batch.select(at)))
            yield pa.RecordBatch.from_arrays([*batch.columns, pa.array(found)], schema=arrow)

    numbered = events.toDF(*(f"c{number}" for number in range(len(events.columns))))
    return numbered.mapInArrow(over, table)
