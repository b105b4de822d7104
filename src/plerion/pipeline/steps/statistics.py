"""Moments of the attributes' values: counts, mean, variance, least and greatest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce as folded
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from plerion.content.schema import Schema
from plerion.learning.summaries import AttributeMoments, attribute_moments
from plerion.pipeline import schemas
from plerion.pipeline.steps.batches import Columns, Floats, column_arrays, partials, partition_number


def statistics(events: DataFrame, schema: Schema) -> DataFrame:
    """One row an attribute. Means and squares are added up in the order of the partitions, so they never vary."""
    arrow, none = to_arrow_schema(schemas.STATISTICS), attribute_moments(np.empty((0, len(schema.names))))

    def reduce(parts: Iterator[Floats]) -> Iterator[Columns]:
        total = folded(AttributeMoments.__add__, map(attribute_moments, parts), none)
        yield [np.full(len(total.values), partition_number()), *_columns(total)]

    def merged(table: pa.Table) -> pa.Table:
        rows = {name: cells.to_numpy() for name, cells in zip(table.column_names, table.columns, strict=True)}
        parts = (_moments(rows, slice(at, at + 1)) for at in np.argsort(rows["part"]))
        _, *columns = _columns(folded(AttributeMoments.__add__, parts))
        return pa.Table.from_arrays([table.column("attribute")[:1], *map(pa.array, columns)], schema=arrow)

    found = partials(events, schema, reduce, schemas.MOMENTS)
    return found.groupBy("attribute").applyInArrow(merged, schemas.STATISTICS)


def moments(table: DataFrame, schema: Schema) -> AttributeMoments:
    """The table on the driver; without events there are no values."""
    rows = column_arrays(table)
    if not len(rows["attribute"]):
        return attribute_moments(np.empty((0, len(schema.names))))
    return _moments(rows, np.argsort(rows["attribute"]))


def _columns(found: AttributeMoments) -> Columns:
    return [np.arange(len(found.values)), *(getattr(found, name) for name in _NAMES)]


def _moments(rows: Mapping[str, npt.NDArray[Any]], some: slice | npt.NDArray[np.intp]) -> AttributeMoments:
    return AttributeMoments(*(rows[name][some] for name in _NAMES))


_NAMES = ("values", "missing", "mean", "squares", "least", "greatest")
