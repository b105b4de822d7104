"""The dz that enclose an interest, at most `budget` of them, in work that the budget bounds (design §4.2).

A cover starts as the smallest cell around all boxes and grows best-first: the cell that wastes most is
replaced by its two halves, each at once shrunk to the smallest cell around what it must keep. It grows to
twice the budget; then pairs of cells go back to the cell that they came from, those first that cost least. So a
split that saves nothing by itself can still pay for what it makes possible, and one that did not pay is undone.
Every cell that meets a box stays in, so a cover never misses a matching event, whatever the budget; only the
waste depends on it.

Waste is the part of a cell's volume that no box asks for, where every bit halves the volume; a cluster that knows its
share of the events has that as its volume, and where events are known, those in the cell take its place. Boxes come as
ranges of cell numbers (`Cuts.cells_of`), so the kernel works on whole numbers alone. What would break it: a cell
function that decreases somewhere.

Where the clusters tile the space an interest is covered in all that it meets; elsewhere in its home alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from plerion.index.content_index import Cluster, ContentIndex
from plerion.index.cuts import ContentIndexError
from plerion.index.dz import Dz
from plerion.index.dzset import DzColumns, DzSet, Lengths, Words
from plerion.index.encode import CellPlan, Codes, cell_at, cell_plan, joint_plan
from plerion.index.nodes import Asked, EventSample, Forest, workplace_for
from plerion.index.split import cover_one
from plerion.index.tiles import ONE_TILE, TileTree, tile_tree
from plerion.index.words import grown
from plerion.kernel import Int, kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DEFAULT_BUDGET = 128
MAX_BUDGET = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Covers:
    """The covers of many interests: `dz[offsets[i]:offsets[i + 1]]` is that of interest i."""

    offsets: Ints
    dz: DzColumns

    @classmethod
    def of(cls, cells: Sequence[DzColumns]) -> Covers:
        """One cover after the other."""
        return cls(np.cumsum([0, *map(len, cells)]).astype(np.int64), DzColumns.joined(cells))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> DzColumns:
        return self.dz[self.offsets[row] : self.offsets[row + 1]]

    def sets(self) -> list[DzSet]:
        return [DzSet(tuple(self[row])) for row in range(len(self))]


NO_SAMPLE = EventSample(np.empty(0, np.uint64), np.empty(0, np.uint64))


def sample_of(codes: Codes) -> EventSample:
    """The codes of events that were seen, for covers to weigh waste by."""
    order = np.lexsort((codes.dz.low, codes.dz.high))
    return EventSample(codes.dz.high[order], codes.dz.low[order])


def cover(
    index: ContentIndex, bounds: Floats, budget: int = DEFAULT_BUDGET, sample: EventSample = NO_SAMPLE
) -> DzSet:
    """The cover of one interest given by its boxes (m, attributes, 2)."""
    offsets = np.array([0, len(bounds)], np.int64)
    return DzSet(tuple(covers(index, offsets, bounds, budget, sample)[0]))


def covers(
    index: ContentIndex,
    offsets: Ints,
    bounds: Floats,
    budget: int = DEFAULT_BUDGET,
    sample: EventSample = NO_SAMPLE,
) -> Covers:
    """Covers of many interests; interest i has the boxes `bounds[offsets[i]:offsets[i + 1]]`."""
    if not 1 <= budget <= MAX_BUDGET:
        raise ContentIndexError(f"a cover takes a budget of 1 to {MAX_BUDGET} dz, not {budget}")
    tree, forest, plan = _prepared(index)
    bounds = np.ascontiguousarray(bounds, np.float64)
    if tree is None:
        homes = [index.home(bounds[a:b]) for a, b in pairwise(offsets.tolist())]
        return Covers.of(
            [
                _covers_in(home, np.array([0, b - a]), bounds[a:b], budget, sample).dz
                for home, (a, b) in zip(homes, pairwise(offsets.tolist()), strict=True)
            ]
        )
    return _columns(cover_many(forest, plan, tree, offsets, bounds, budget, sample))


def advertised(
    index: ContentIndex, bounds: Floats, budget: int = DEFAULT_BUDGET, sample: EventSample = NO_SAMPLE
) -> DzSet:
    """Every code that an event in the boxes can have: their cover, or that in each cluster that they meet."""
    if tile_tree(index) is not None:
        return cover(index, bounds, budget, sample)
    cells: list[Dz] = []
    for cluster in index.clusters:
        clipped = bounds.copy()
        np.maximum(clipped[:, :, 0], np.array(cluster.box.lows), out=clipped[:, :, 0])
        np.minimum(clipped[:, :, 1], np.array(cluster.box.highs), out=clipped[:, :, 1])
        met = clipped[(clipped[:, :, 0] < clipped[:, :, 1]).all(axis=1)]
        cells += _covers_in(cluster, np.array([0, len(met)]), met, budget, sample)[0]
    return DzSet.of(cells)


def _covers_in(cluster: Cluster, offsets: Ints, bounds: Floats, budget: int, sample: EventSample) -> Covers:
    """Covers in one cluster, as if it were everywhere."""
    if not 1 <= budget <= MAX_BUDGET:
        raise ContentIndexError(f"a cover takes a budget of 1 to {MAX_BUDGET} dz, not {budget}")
    bounds = np.ascontiguousarray(bounds, np.float64)
    return _columns(
        cover_many(_trees(cluster), cell_plan(cluster), ONE_TILE, offsets, bounds, budget, sample)
    )


def _columns(found: tuple[Ints, Words, Words, Lengths]) -> Covers:
    offsets, high, low, length = found
    return Covers(offsets, DzColumns(high, low, length))


@lru_cache(maxsize=16)
def _prepared(index: ContentIndex) -> tuple[TileTree | None, Forest, CellPlan]:
    return tile_tree(index), forest(index.clusters), joint_plan(index.clusters)


@lru_cache(maxsize=256)
def _trees(cluster: Cluster) -> Forest:
    return forest((cluster,))


def forest(clusters: Sequence[Cluster]) -> Forest:
    """The clusters as columns."""
    rows = [[a for a, cuts in enumerate(cluster.cuts) if cuts.bits] for cluster in clusters]
    depth = [len(cluster.order) for cluster in clusters]
    order = np.zeros((len(clusters), max(depth)), np.int64)
    size = np.ones((len(clusters), max(depth) + 1, max(map(len, rows))), np.int64)
    for c, (cluster, active) in enumerate(zip(clusters, rows, strict=True)):
        place = {a: row for row, a in enumerate(active)}
        size[c, :, : len(active)] = [cluster.cuts[a].cells for a in active]
        for bit, a in enumerate(cluster.order):
            order[c, bit] = place[a]
            size[c, bit + 1 :, place[a]] >>= 1
    keys = [cluster.id.key() for cluster in clusters]
    spaces = [0.5**cluster.id.length for cluster in clusters]
    shares = [space if c.share is None else c.share for c, space in zip(clusters, spaces, strict=True)]
    by_id = sorted(range(len(keys)), key=lambda c: keys[c])
    return Forest(
        np.array([high for high, _ in keys], np.uint64),
        np.array([low for _, low in keys], np.uint64),
        np.array([cluster.id.length for cluster in clusters], np.int64),
        np.array(depth, np.int64),
        order,
        size,
        np.cumsum([0, *map(len, rows)]),
        np.array([list(zip(c.box.lows, c.box.highs, strict=True)) for c in clusters]),
        np.array(shares) / np.array(spaces),
        EventSample(*(np.array(words, np.uint64) for words in zip(*(keys[c] for c in by_id), strict=True))),
        np.cumsum([0.0, *(shares[c] for c in by_id)]),
    )


@kernel
def cover_many(
    forest: Forest,
    plan: CellPlan,
    tree: TileTree,
    offsets: Ints,
    bounds: Floats,
    budget: Int,
    sample: EventSample,
) -> tuple[Ints, Words, Words, Lengths]:
    """Where each cover begins, and all their cells."""
    first = np.zeros(len(offsets), np.int64)
    room: Int = min(budget, 64) * (len(offsets) - 1)
    high, low, length = np.empty(room, np.uint64), np.empty(room, np.uint64), np.empty(room, np.uint8)
    workplace, used = workplace_for(forest, budget), 0
    for i in range(len(offsets) - 1):
        if offsets[i] < offsets[i + 1]:
            asked = _asked(forest, plan, tree, bounds[offsets[i] : offsets[i + 1]])
            one_high, one_low, one_length = cover_one(forest, asked, budget, sample, workplace)
            if used + len(one_high) > len(high):
                room = 2 * (used + len(one_high))
                high, low, length = grown(high, room), grown(low, room), grown(length, room)
            for k in range(len(one_high)):
                high[used], low[used], length[used] = one_high[k], one_low[k], one_length[k]
                used += 1
        first[i + 1] = used
    return first, high[:used], low[:used], length[:used]


@kernel
def _asked(forest: Forest, plan: CellPlan, tree: TileTree, bounds: Floats) -> Asked:
    """The clusters that the boxes meet, by the order of their ids, with the cells that each box asks for."""
    cluster, box = _meetings(tree, bounds)
    if len(tree.cut):
        order = np.argsort(forest.low[cluster], kind="mergesort")
        order = order[np.argsort(forest.high[cluster[order]], kind="mergesort")]
        cluster, box = cluster[order], box[order]
    ranges = np.empty((len(cluster), forest.size.shape[2], 2), np.int64)
    first, roots = np.empty(len(cluster) + 1, np.int64), np.empty(len(cluster), np.int64)
    used = 0
    for i in range(len(cluster)):
        if i == 0 or cluster[i] != cluster[i - 1]:
            first[used], roots[used] = i, cluster[i]
            used += 1
        begin = forest.first_row[cluster[i]]
        for j in range(begin, forest.first_row[cluster[i] + 1]):
            a = plan.attribute[j]
            low = max(bounds[box[i], a, 0], forest.box[cluster[i], a, 0])
            high = min(bounds[box[i], a, 1], forest.box[cluster[i], a, 1])
            ranges[i, j - begin, 0], ranges[i, j - begin, 1] = cells_between(plan, j, low, high)
    first[used] = len(cluster)
    return Asked(roots[:used], first[: used + 1], ranges)


@kernel
def _meetings(tree: TileTree, bounds: Floats) -> tuple[Ints, Ints]:
    """All pairs of a cluster and a box that meet."""
    cluster, box = np.empty(len(bounds), np.int64), np.empty(len(bounds), np.int64)
    stack = np.empty(2 * len(tree.cut) + 1, np.int64)
    used = 0
    for b in range(len(bounds)):
        stack[0], waiting = 0 if len(tree.cut) else ~0, 1
        while waiting > 0:
            waiting -= 1
            node = stack[waiting]
            if node < 0:
                if used == len(cluster):
                    cluster, box = grown(cluster, 2 * used), grown(box, 2 * used)
                cluster[used], box[used] = ~node, b
                used += 1
                continue
            low, high = bounds[b, tree.attribute[node]]
            if low < tree.cut[node]:
                stack[waiting] = tree.lower[node]
                waiting += 1
            if high > tree.cut[node]:
                stack[waiting] = tree.upper[node]
                waiting += 1
    return cluster[:used], box[:used]


@kernel
def cells_between(plan: CellPlan, j: Int, low: float, high: float) -> tuple[Int, Int]:
    """First and last cell that a position in [low, high) can lie in: the twin of `Cuts.cells_of`."""
    whole = plan.discrete[j] and np.isfinite(high)
    last = np.ceil(high) - 1.0 if whole else np.nextafter(high, -np.inf)
    return cell_at(plan, j, low), cell_at(plan, j, last)
