"""A bounded sample of the events that is the same every time: those with the smallest hashes.

The hash is of the event's positions, of its place (partition and row) and of a seed. Without the place all copies of an
event would share one hash and be taken or left together: a sample of a thousand out of a million readings of 'no rain'
could consist of one reading. Files are cut into partitions by their size alone (`session`), so a place is the same
wherever the job runs, and a task that is run again gives the same rows.

The lowest bit of the hash takes no part in the order: it deals the sample into a half to choose an index by and a half
to judge it by.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from plerion.content.schema import MISSING, Schema
from plerion.pipeline import schemas
from plerion.pipeline.axes import column
from plerion.pipeline.errors import PipelineError
from plerion.pipeline.steps.batches import Floats, partition_number, points_of, positions

MAX_ROWS = 1 << 20

Words = npt.NDArray[np.uint64]


def sample(events: DataFrame, schema: Schema, rows: int, seed: int = 0) -> DataFrame:
    """At most `rows` of the events, each as likely as any other, in the order of their keys. Safe to collect."""
    if not 0 < rows <= MAX_ROWS:
        raise PipelineError(f"a sample of {rows} rows", f"take 1 to {MAX_ROWS}")
    table = schemas.sample(schema)
    arrow = to_arrow_schema(table)

    def over(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        points, words = smallest(map(points_of, batches), rows, seed, partition_number())
        cells = [pa.array(points[:, a], mask=points[:, a] == MISSING) for a in range(points.shape[1])]
        key, half = (words >> np.uint64(1)).astype(np.int64), (words & np.uint64(1)).astype(np.bool_)
        if len(points):
            yield pa.RecordBatch.from_arrays([*cells, pa.array(key), pa.array(half)], schema=arrow)

    taken = positions(events, schema).mapInArrow(over, table)
    return taken.orderBy(schemas.KEY, *map(column, schema.names)).limit(rows)


def halves(table: DataFrame, schema: Schema) -> tuple[Floats, Floats]:
    """The sample on the driver, as points: the half to choose by and the half to judge by."""
    found = table.toArrow().combine_chunks()
    cells = found.select(list(range(len(schema.names)))).to_batches()
    points = points_of(cells[0]) if cells else np.empty((0, len(schema.names)))
    judging = found.column(len(schema.names) + 1).to_numpy().astype(np.bool_)
    return points[~judging], points[judging]


def smallest(parts: Iterator[Floats], rows: int, seed: int, partition: int) -> tuple[Floats, Words]:
    """The points of a partition with the smallest hashes, and the hashes. Keeps a few times `rows` at a time."""
    kept: list[Floats] = []
    hashes: list[Words] = []
    first, count, limit = 0, 0, np.uint64(2**64 - 1)
    for points in parts:
        words = hashed(points, seed, partition, first)
        first += len(points)
        taken = words <= limit
        kept.append(points[taken])
        hashes.append(words[taken])
        count += len(hashes[-1])
        if count > 4 * rows:
            kept, hashes = _least(kept, hashes, rows)
            count, limit = rows, hashes[0].max()
    if not kept:
        return np.empty((0, 0)), np.empty(0, np.uint64)
    (points,), (words,) = _least(kept, hashes, rows)
    return points, words


def _least(kept: list[Floats], hashes: list[Words], rows: int) -> tuple[list[Floats], list[Words]]:
    points, words = np.concatenate(kept), np.concatenate(hashes)
    if len(words) > rows:
        chosen = np.argpartition(words, rows - 1)[:rows]
        points, words = points[chosen], words[chosen]
    return [points], [words]


def hashed(points: Floats, seed: int, partition: int, first: int) -> Words:
    """A hash of each row's content and place, `first` being the place of the first."""
    word = np.array([seed & (2**64 - 1)], np.uint64) ^ _mixed(np.array([partition], np.uint64))
    words = _mixed(np.arange(first, first + len(points), dtype=np.uint64) ^ _mixed(word))
    for a in range(points.shape[1]):
        words = _mixed(words ^ (points[:, a] + 0.0).view(np.uint64))  # -0.0 is 0.0
    return words


def _mixed(words: Words) -> Words:
    """A bijection of 64-bit words in which every bit depends on every bit (Steele et al. 2014, splitmix64)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
