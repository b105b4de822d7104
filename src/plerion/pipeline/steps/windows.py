"""Files of the log as sums by window: what happened, what the index would have made of it, and a few of the events.

A task is given names of files, reads each with the log's own reader, which compares every bit with the digest in the
name, and gives a few small rows. A file that is torn or foreign gives one row that says so. Each event is encoded and
matched once, whatever the number of windows: with the codes sorted, the cells of all covers are runs of them, and a
cumulated sum of the runs' ends says how many interests an event would be delivered to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DoubleType, LongType, StringType, StructField, StructType

from plerion.content.schema import Schema
from plerion.eventlog.part import opened
from plerion.eventlog.records import EventRecords, Kind, LogError
from plerion.index.encode import encode
from plerion.learning.drift import BINS, bins
from plerion.matching.bitset import match_counts
from plerion.matching.evaluate import runs
from plerion.pipeline.session import Shipped
from plerion.pipeline.steps.batches import Floats, Ints
from plerion.pipeline.steps.evaluate import Asked
from plerion.pipeline.steps.sample import hashed

SEED = 11
SUMS = StructType(
    [
        StructField("what", StringType(), False),
        StructField("window", LongType(), False),
        StructField("path", StringType(), False),
        StructField("reason", StringType(), False),
        StructField("values", ArrayType(DoubleType(), False), False),
    ]
)
"""`what` says what the values are:

events      latest time, events, squares, deliveries, wanted, delivery squares (as in `drift.Figures`), histogram
deliveries  latest time, deliveries, wanted, delivery squares, as they were logged
late        how many records came after their window was closed
sample      events, one after the other: window, key, judging half or not, positions
skipped     nothing: `path` is left out for `reason`
"""

Row = tuple[str, int, str, str, Floats]
Versions = tuple[tuple[int, Asked], ...]
"""From which window on these interests are asked for; the first stands for all windows before it, too."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Windows of `length` microseconds; those before number `first_open` are closed.

    A sample has at most `sample` events, from the latest `recent` windows.
    """

    schema: Schema
    length: int
    first_open: int
    recent: int
    sample: int


def window_sums(files: DataFrame, cut: Cut, asked: Shipped[Versions]) -> DataFrame:
    """The sums of the files whose names are in the column `path`: a few rows a file and window."""
    arrow = to_arrow_schema(SUMS)

    def over(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for name in batch.column(0).to_pylist():
                columns = list(zip(*file_sums(local_path(name), cut, asked.value), strict=True))
                if columns:
                    yield pa.RecordBatch.from_arrays(
                        [pa.array(cells, kind) for cells, kind in zip(columns, arrow.types, strict=True)],
                        schema=arrow,
                    )

    return files.select("path").mapInArrow(over, SUMS)


def rows_of(table: DataFrame) -> Iterator[Row]:
    """The table on the driver."""
    found = table.toArrow().combine_chunks()
    *named, lists = (found.column(name) for name in found.column_names)
    for cells, values in zip(zip(*(c.to_pylist() for c in named), strict=True), lists, strict=True):
        yield *cells, values.values.to_numpy()


def local_path(name: str) -> Path:
    """The path in a name such as Spark gives it, file:/x/y."""
    return Path("/" + name.removeprefix("file:").lstrip("/"))


def file_sums(path: Path, cut: Cut, asked: Versions) -> Iterator[Row]:
    """The rows of one file; nothing that is in it raises."""
    try:
        kind = Kind(path.parent.parent.name)
    except ValueError:
        yield "skipped", 0, str(path), "foreign: it lies in no folder of the log", np.empty(0)
        return
    if kind == Kind.SUBSCRIPTIONS:
        return
    try:
        part = opened(path, kind)
        if part.schema != cut.schema:
            raise LogError("it has another schema")
    except LogError as error:
        yield "skipped", 0, str(path), error.summary, np.empty(0)
        return
    table: Any = part.table
    times: Ints = table["time"].cast(pa.int64()).to_numpy()
    windows = times // cut.length
    late = windows < cut.first_open
    if late.any():
        yield "late", 0, "", "", np.array([float(late.sum())])
    kept, open_at = table.filter(pa.array(~late)), _Placed.of(windows[~late], times[~late])
    if kept.num_rows and kind == Kind.EVENTS:
        yield from _event_rows(path, kept, open_at, cut, asked)
    elif kept.num_rows:
        yield from _delivery_rows(kept, open_at)


@dataclass(frozen=True, slots=True, eq=False)
class _Placed:
    """Records by window: `numbers` of the windows, the `place` of each record among them, and their latest times."""

    windows: Ints
    numbers: Ints
    place: Ints
    latest: Floats

    @classmethod
    def of(cls, windows: Ints, times: Ints) -> _Placed:
        numbers, place = np.unique(windows, return_inverse=True)
        latest = np.full(len(numbers), np.iinfo(np.int64).min)
        np.maximum.at(latest, place, times)
        return cls(windows, numbers, place, latest.astype(np.float64))

    def sums(self, cells: Floats) -> Floats:
        return np.bincount(self.place, cells, len(self.numbers)).astype(np.float64)


def _event_rows(path: Path, table: pa.Table, at: _Placed, cut: Cut, asked: Versions) -> Iterator[Row]:
    points, weights = EventRecords.of(table, cut.schema).points, table["weight"].to_numpy()
    delivered, wanted = np.zeros(len(points)), np.zeros(len(points))
    version = np.searchsorted([first for first, _ in asked], at.windows, side="right") - 1
    for number in np.unique(np.maximum(version, 0)).tolist():
        some = np.maximum(version, 0) == number
        delivered[some], wanted[some] = pairs(asked[number][1], points[some])
    each = weights * delivered
    sums = [at.latest, *map(at.sums, (weights, weights**2, each, weights * wanted, each**2))]
    values = np.concatenate(
        (np.stack(sums, axis=1), histograms(cut.schema, points, weights, at.place)), axis=1
    )
    for window, row in zip(at.numbers.tolist(), values, strict=True):
        yield "events", window, "", "", row
    yield from _sampled(path, points, weights, at.windows, cut)


def pairs(asked: Asked, points: Floats) -> tuple[Floats, Ints]:
    """For each event the interests that it would be delivered to, and those that want it."""
    codes = encode(asked.index, points)
    order = np.lexsort((codes.dz.low, codes.dz.high))
    first, last = runs(codes.dz[order], asked.covers.dz)
    ends = np.bincount(first, minlength=len(order) + 1) - np.bincount(last, minlength=len(order) + 1)
    delivered = np.bincount(codes.event[order], np.cumsum(ends)[: len(order)], len(points))
    return delivered.astype(np.float64), match_counts(asked.bounds, points)


def histograms(schema: Schema, points: Floats, weights: Floats, place: Ints) -> Floats:
    """(windows, attributes × BINS): weights by bin; `place[i]` is the row of event i's window."""
    width, rows = len(schema.names), int(place.max()) + 1
    numbers = bins(schema, points) + np.arange(width) * BINS + place[:, None] * (width * BINS)
    flat = np.bincount(numbers.ravel(), np.repeat(weights, width), rows * width * BINS)
    return flat.reshape(rows, width * BINS).astype(np.float64)


def _sampled(path: Path, points: Floats, weights: Floats, windows: Ints, cut: Cut) -> Iterator[Row]:
    """An event is the likelier to be taken the more events it stands for (Efraimidis and Spirakis 2006)."""
    near = np.flatnonzero(windows > windows.max() - cut.recent)
    place = int(sha256(path.name.encode()).hexdigest()[:15], 16)
    words = hashed(points, SEED, place, 0)[near]
    keys = -np.log1p(-((words >> np.uint64(11)) * 2.0**-53)) / weights[near]
    taken = np.argsort(keys, kind="stable")[: cut.sample]
    judging = (words & np.uint64(1)).astype(np.float64)
    cells = np.column_stack((windows[near], keys, judging, points[near]))[taken]
    yield "sample", 0, "", "", cells.ravel().astype(np.float64)


def _delivery_rows(table: pa.Table, at: _Placed) -> Iterator[Row]:
    weights = table["weight"].to_numpy()
    named = table.select(["publisher", "sequence", "weight"]).append_column("place", pa.array(at.place))
    events = named.group_by(["publisher", "sequence", "place"]).aggregate([("weight", "sum")])
    squares = np.bincount(events["place"].to_numpy(), events["weight_sum"].to_numpy() ** 2)
    wanted = at.sums(weights * table["wanted"].to_numpy())
    for window, *row in zip(at.numbers.tolist(), at.latest, at.sums(weights), wanted, squares, strict=True):
        yield "deliveries", window, "", "", np.array(row)
