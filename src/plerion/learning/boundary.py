"""Boundary indexes: bits go, one by one, where they save most false positives; cuts lie on subscription boundaries.

The theory. An index parts the space into cells, and a subscription is sent every event of every cell that it has
a part of. So what an index wastes is a number of *false pairs*: an event and a subscription that share a cell
although the event does not match. A cut saves the pairs that it parts, and these can be counted exactly for all
candidates at once (`pairs`). The published schemes spend the cuts of an attribute everywhere in the space. Here they
are local, in two stages:

1. *A tree.* Start with the whole space. Take the cell with most false pairs, cut it where that saves most, and go on
   until there are `clusters` cells. So a region with subscriptions of its own kind gets cuts of its own. Of two cuts
   that save alike the one that straddles fewer boxes is better: a box on both sides of a cut needs two dz.
2. *A grid in each cell.* The bits that are left go one by one to the attribute where one more cut in each of its
   parts saves most.

Both stages look at events that were seen. A small cell has few, and cuts that only part those would fit the past
and not the future. So a grid is also shown events *between* those of its cell: points on the line from one to
another. These keep what attributes have in common, which independent draws would not, and no bit is spent on a copy
of another attribute.

Rules of this file: the cuts of a region lie strictly inside it; everything is a function of the workload and the
seed. A bad choice only wastes: covers enclose their subscriptions in any index, so none costs a wanted event.
"""

from __future__ import annotations

from collections.abc import Collection
from heapq import heappop, heappush
from math import inf

import numpy as np
import numpy.typing as npt

from plerion.content.box import Box
from plerion.content.schema import Schema
from plerion.index.content_index import Cluster, ContentIndex
from plerion.index.cuts import MAX_EXPLICIT_BITS, ContentIndexError, Cuts, equal_cuts, explicit_cuts
from plerion.index.dz import MAX_LENGTH, WHOLE, Dz
from plerion.kernel import Int, kernel
from plerion.learning.pairs import (
    Pairs,
    Ranked,
    Region,
    best_cuts,
    false_pairs,
    halves,
    ranked,
    savings,
    straddled,
    unparted,
)
from plerion.learning.workload import Workload

Ints = npt.NDArray[np.int64]

CLUSTERS = 256
TREE_PAIRS, GRID_PAIRS = 100_000, 400_000  # looked at for one cut of the tree, and for one grid
GRID_EVENTS, GRID_BOXES = 4_000, 1_000  # of one cell, at most
UNSEEN = 0.1  # of all events, thought to come where none was seen
BETWEEN = 64  # events between those of a cell


def boundary(
    workload: Workload,
    bits: int,
    attributes: Collection[int] | None = None,
    clusters: int = CLUSTERS,
    epoch: int = 0,
    seed: int = 1,
) -> ContentIndex:
    """An index of up to `clusters` tiles, each with a grid of its own, on these attributes (all unless told).

    Codes are shorter than `bits` where no further cut would save anything. Costs seconds: the work is bounded by the
    clusters and by samples of pairs, not by events times subscriptions.
    """
    if not 0 <= bits <= MAX_LENGTH:
        raise ContentIndexError(f"an index takes 0 to {MAX_LENGTH} bits, not {bits}")
    schema = workload.schema
    chosen = range(len(schema.attributes)) if attributes is None else attributes
    load = ranked(workload.points, workload.offsets, workload.bounds, frozenset(chosen))
    random = np.random.default_rng(seed)
    tiles = tree(load, bits, clusters, seed)
    return ContentIndex(
        schema, tuple(_tile(schema, load, id, region, bits, random) for id, region in tiles), epoch
    )


def tree(load: Ranked, bits: int, clusters: int, seed: int) -> list[tuple[Dz, Region]]:
    """Cells that tile the space, those with most false pairs cut first, at most `bits` cuts deep."""
    widths = np.diff(load.first)
    whole = Region(np.full(len(widths), -1), widths, np.arange(len(load.events)), np.arange(len(load.low)))
    waiting: list[tuple[float, Dz, Region, Pairs]] = []
    settled: list[tuple[Dz, Region]] = []

    def arrive(id: Dz, region: Region) -> None:
        pairs, count = false_pairs(load, region, TREE_PAIRS, seed)
        if len(pairs.event) and id.length < bits:
            heappush(waiting, (-count, id, region, pairs))
        else:
            settled.append((id, region))

    arrive(WHOLE, whole)
    while waiting and len(waiting) + len(settled) < clusters:
        _, id, region, pairs = heappop(waiting)
        a, k = best_cut(load, region, pairs)
        if a < 0:
            settled.append((id, region))
            continue
        for bit, half in enumerate(halves(load, region, a, k)):
            arrive(id.child(bit), half)
    return settled + [(id, region) for _, id, region, _ in waiting]


@kernel
def best_cut(load: Ranked, region: Region, pairs: Pairs) -> tuple[Int, Int]:
    """The attribute and the cut that save most; of those that save alike the one that straddles fewest boxes."""
    attribute, cut, most, fewest = -1, -1, 0, 0
    for a in range(len(region.low)):
        saved = savings(load, pairs, a, region.low[a], region.high[a])
        across = straddled(load, region, a)
        for k in range(region.low[a] + 1, region.high[a]):
            gain, torn = saved[k - region.low[a]], across[k - region.low[a]]
            if gain > most or (gain == most and gain > 0 and torn < fewest):
                attribute, cut, most, fewest = a, k, gain, torn
    return attribute, cut


def _tile(
    schema: Schema, load: Ranked, id: Dz, region: Region, bits: int, random: np.random.Generator
) -> Cluster:
    order, cuts = grid(_close_up(load, region, random), region, bits - id.length)
    ends = [load.candidates(a) for a in range(len(schema.attributes))]
    box = Box(
        tuple(float(e[k]) if k >= 0 else -inf for e, k in zip(ends, region.low, strict=True)),
        tuple(float(e[k]) if k < len(e) else inf for e, k in zip(ends, region.high, strict=True)),
    )
    parted = tuple(_cuts(schema, a, ends[a], cuts[a]) for a in range(len(ends)))
    return Cluster(id, box, order, parted, _share(load, id, region))


def _share(load: Ranked, id: Dz, region: Region) -> float:
    """The part of the events that is expected in a cell: nearly what was seen, since what was not may still come."""
    seen = len(region.events) / max(1, len(load.events))
    return (1 - UNSEEN) * seen + UNSEEN * 0.5**id.length


def _cuts(schema: Schema, a: int, ends: npt.NDArray[np.float64], cuts: Ints) -> Cuts:
    if len(cuts) == 2:
        return equal_cuts(schema.attributes[a], 0)
    return explicit_cuts(schema.attributes[a], ends[np.clip(cuts[1:-1], 0, len(ends) - 1)])


def _close_up(load: Ranked, region: Region, random: np.random.Generator) -> tuple[Ranked, Region]:
    """Some of the region's boxes with some of its events, and events between the events."""
    events = load.events[_some(region.events, GRID_EVENTS)]
    if len(events):
        one, other = random.integers(0, len(events), (2, BETWEEN))
        share = random.random((BETWEEN, 1))
        between = np.rint(events[one] * (1 - share) + events[other] * share)
    else:
        between = random.integers(region.low + 1, region.high + 1, (BETWEEN, len(region.low)))
    boxes = _some(region.boxes, GRID_BOXES)
    seen = np.concatenate((events, between.astype(np.int32)))
    return load._replace(events=seen), region._replace(events=np.arange(len(seen)), boxes=boxes)


def _some(rows: Ints, most: int) -> Ints:
    """All, or about `most` of them evenly."""
    return np.ascontiguousarray(rows[:: -(-len(rows) // most)]) if len(rows) > most else rows


def grid(near: tuple[Ranked, Region], region: Region, bits: int) -> tuple[tuple[int, ...], list[Ints]]:
    """A bit order, and for each attribute its cuts with both ends of the region."""
    load, around = near
    cuts = [np.array(ends) for ends in zip(region.low, region.high, strict=True)]
    pairs, _ = false_pairs(load, around, GRID_PAIRS, 1)
    order: list[int] = []
    while len(order) < bits and len(pairs.event):
        a, fresh = _next_bit(load, pairs, cuts, order)
        if a < 0:
            break
        cuts[a] = np.sort(np.concatenate((cuts[a], fresh)))
        pairs = unparted(load, pairs, a, cuts[a])
        order.append(a)
    return tuple(order), cuts


def _next_bit(load: Ranked, pairs: Pairs, cuts: list[Ints], order: list[int]) -> tuple[int, Ints]:
    """The attribute on which one more cut in each part saves most, and these cuts; -1 when none saves."""
    best, most, where = -1, 0, cuts[0]
    for a, placed in enumerate(cuts):
        if placed[-1] - placed[0] < 2 or order.count(a) == MAX_EXPLICIT_BITS:
            continue
        fresh, saved = best_cuts(savings(load, pairs, a, placed[0], placed[-1]), placed)
        if saved > most:
            best, most, where = a, saved, fresh
    return best, where
