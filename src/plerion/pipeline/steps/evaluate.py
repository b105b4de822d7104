"""How well an index filters the events: deliveries, wanted and hits by subscription and host, and what was to blame.

A row is named by what it counts for and its number: `interest` and `host` rows have pairs of an event and that interest
or host. An `attribute` row has the false positives that miss on this attribute (`matching.blame`) and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own documents use

from plerion.index.content_index import ContentIndex
from plerion.index.cover import DEFAULT_BUDGET, Covers, covers
from plerion.index.encode import encode
from plerion.learning.workload import Workload
from plerion.matching.bitset import BitsetMatcher
from plerion.matching.blame import misses
from plerion.matching.evaluate import Evaluation, evaluate
from plerion.pipeline import schemas
from plerion.pipeline.session import shipped
from plerion.pipeline.steps.batches import (
    Columns,
    Floats,
    Ints,
    column_arrays,
    partials,
    pieces,
    summed,
)

ROWS = 200_000  # a piece: large, because every cell of every cover is looked up once a piece
_HOST_CELLS = 1 << 25  # pairs of an event and a host that are kept at a time, five bytes each
BY = ("interest", "host", "attribute")


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What is evaluated: an index, interests with their hosts, and the covers that they have in the index."""

    index: ContentIndex
    offsets: Ints
    bounds: Floats
    hosts: Ints
    covers: Covers

    @classmethod
    def of(cls, index: ContentIndex, load: Workload, budget: int = DEFAULT_BUDGET) -> Asked:
        """The workload's interests; empty boxes ask for nothing and are left out."""
        kept = (load.bounds[:, :, 0] < load.bounds[:, :, 1]).all(axis=1)
        offsets = np.concatenate(([0], np.cumsum(kept)))[load.offsets]
        bounds = np.ascontiguousarray(load.bounds[kept])
        return cls(index, offsets, bounds, load.hosts, covers(index, offsets, bounds, budget))

    @property
    def host_count(self) -> int:
        return int(self.hosts.max(initial=-1)) + 1


def evaluation(events: DataFrame, asked: Asked) -> DataFrame:
    """All pairs counted; as many rows as there are interests, hosts and attributes at most."""
    sent = shipped(events.sparkSession, asked)

    def reduce(parts: Iterator[Floats]) -> Iterator[Columns]:
        yield _columns(tallied(sent.value, parts))

    counts = summed(partials(events, asked.index.schema, reduce, schemas.PAIRS), "by", "number")
    return counts.select(
        *counts.columns,
        (F.col("deliveries") - F.col("hits")).alias("false_positives"),
        (F.col("wanted") - F.col("hits")).alias("false_negatives"),
    )


Tally = dict[str, Ints]
"""For each of BY the counts, (3, how many): deliveries, wanted, hits."""


def tallied(asked: Asked, parts: Iterator[Floats]) -> Tally:
    """The counts of one partition."""
    hosts, width = asked.host_count, len(asked.index.schema.names)
    found = {
        by: np.zeros((3, n), np.int64) for by, n in zip(BY, (len(asked.hosts), hosts, width), strict=True)
    }
    matcher = BitsetMatcher.of(asked.offsets, asked.bounds)
    for points in pieces(parts, max(1, min(ROWS, _HOST_CELLS // max(1, hosts)))):
        codes = encode(asked.index, points)
        counted = evaluate(points, codes, matcher, asked.covers, asked.hosts)
        found["interest"] += (counted.deliveries, counted.wanted, counted.hits)
        wanted = counted.host_hits if not counted.false_negatives else _host_wanted(asked, matcher, points)
        found["host"] += (counted.host_deliveries, wanted, counted.host_hits)
        found["attribute"][0] += misses(points, codes, asked.covers, asked.offsets, asked.bounds)
    return found


def _host_wanted(asked: Asked, matcher: BitsetMatcher, points: Floats) -> Ints:
    """(event, host) pairs that match, by host; only needed for covers that lack cells."""
    found = np.zeros(asked.host_count, np.int64)
    for some in pieces([points], 1024):
        matched = matcher.matches(some)
        for host in range(len(found)):
            found[host] += matched[:, asked.hosts == host].any(axis=1).sum()
    return found


def _columns(tally: Tally) -> Columns:
    by = np.repeat(np.array(BY, np.object_), [tally[by].shape[1] for by in BY])
    number = np.concatenate([np.arange(tally[by].shape[1]) for by in BY])
    counts = np.concatenate([tally[by] for by in BY], axis=1)
    some = counts.any(axis=0)
    return [by[some], number[some], *counts[:, some]]


def evaluated(table: DataFrame, asked: Asked) -> tuple[Evaluation, Ints]:
    """The table on the driver as one evaluation, and for each attribute the false positives that miss on it."""
    rows = column_arrays(table)
    sizes = (len(asked.hosts), asked.host_count, len(asked.index.schema.names))
    found = {by: np.zeros((3, n), np.int64) for by, n in zip(BY, sizes, strict=True)}
    for by in BY:
        some = rows["by"] == by
        for at, name in enumerate(("deliveries", "wanted", "hits")):
            found[by][at, rows["number"][some]] = rows[name][some]
    deliveries, wanted, hits = found["interest"]
    host_deliveries, _, host_hits = found["host"]
    counts = Evaluation(deliveries, wanted, hits, host_deliveries, host_hits, len(asked.covers.dz))
    return counts, found["attribute"][0]
