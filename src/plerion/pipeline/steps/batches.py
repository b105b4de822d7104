"""From Arrow batches to the arrays that kernels take, and back: what all steps share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own documents use
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from plerion.content.schema import MISSING, Schema
from plerion.pipeline.axes import column

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Columns = Sequence[npt.NDArray[Any]]

Reduce = Callable[[Iterator[Floats]], Iterator[Columns]]
"""From the points of a partition, batch by batch, to the columns of its partial result."""


def points_of(batch: pa.RecordBatch) -> Floats:
    """The batch's columns as (rows, columns), MISSING for null."""
    points = np.empty((batch.num_rows, batch.num_columns))
    for a, cells in enumerate(batch.columns):
        points[:, a] = cells.to_numpy(zero_copy_only=False)
        if cells.null_count:
            points[np.isnan(points[:, a]), a] = MISSING
    return points


def pieces(parts: Iterable[Floats], rows: int) -> Iterator[Floats]:
    """The same points in pieces of exactly so many rows, but for the last: for kernels with a price per call."""
    kept: list[Floats] = []
    count = 0
    for points in parts:
        kept.append(points)
        count += len(points)
        while count >= rows:
            whole = np.concatenate(kept)
            yield whole[:rows]
            kept, count = [whole[rows:]], count - rows
    if count:
        yield np.concatenate(kept)


def partials(events: DataFrame, schema: Schema, reduce: Reduce, table: StructType) -> DataFrame:
    """What `reduce` gives for each partition of the events, one after the other."""
    arrow = to_arrow_schema(table)

    def over(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for columns in reduce(map(points_of, batches)):
            arrays = [pa.array(values, kind) for values, kind in zip(columns, arrow.types, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=arrow)

    return positions(events, schema).mapInArrow(over, table)


def positions(events: DataFrame, schema: Schema) -> DataFrame:
    """The attributes' columns alone, numbered: PySpark takes a dot or a backtick in a name for syntax."""
    return events.select(*(column(name).alias(f"a{at}") for at, name in enumerate(schema.names)))


def summed(table: DataFrame, *keys: str) -> DataFrame:
    """One row for each combination of the keys, with the sums of the other columns."""
    values = [name for name in table.columns if name not in keys]
    return table.groupBy(*keys).agg(*(F.sum(name).alias(name) for name in values))


def partition_number() -> int:
    """Of the partition that the calling task works on."""
    context = TaskContext.get()
    assert context is not None, "steps run in tasks"
    return context.partitionId()


def add_to(totals: Sequence[Ints], more: Sequence[Ints]) -> None:
    for counts, found in zip(totals, more, strict=True):
        counts += found  # noqa: PLW2901 - in place


def listed(totals: Sequence[Ints]) -> Columns:
    """Which array, which place in it, and what stands there, of everything that is not 0."""
    places = [np.flatnonzero(counts) for counts in totals]
    owners = np.repeat(np.arange(len(places)), [len(found) for found in places])
    values = [counts[found] for counts, found in zip(totals, places, strict=True)]
    return [owners, *(np.concatenate([np.empty(0, np.int64), *parts]) for parts in (places, values))]


def column_arrays(table: DataFrame) -> dict[str, npt.NDArray[Any]]:
    """A small table on the driver, by column."""
    found = table.toArrow()
    return {name: found.column(name).to_numpy() for name in found.column_names}


def counts_by(table: DataFrame, place: str, value: str, sizes: Sequence[int]) -> tuple[Ints, ...]:
    """A small table on the driver, for each attribute the values by place; where no row is there is 0."""
    rows, found = column_arrays(table), tuple(np.zeros(size, np.int64) for size in sizes)
    for a, counts in enumerate(found):
        some = rows["attribute"] == a
        counts[rows[place][some]] = rows[value][some]
    return found
