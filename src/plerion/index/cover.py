"""The dz that enclose an interest, at most `budget` of them, in work that the budget bounds (design §4.2).

A cover starts as the one smallest cell around all boxes and grows best-first: the cell that wastes most is
replaced by its two halves, each at once shrunk to the smallest cell around what it must keep. It ends when
the budget is spent or no cell can be split with profit. Every cell that meets a box stays in, so a cover
never misses a matching event, whatever the budget; only the waste depends on it.

Waste is the part of a cell's volume that no box asks for; where a sample of events is known, the events in
the cell take the place of its volume. Boxes come as ranges of cell numbers (`Cuts.cells_of`), so the kernel
works on whole numbers alone. What would break it: a cell function that decreases somewhere.
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
from plerion.index.dzset import DzColumns, DzSet
from plerion.index.encode import CellPlan, Codes, cell_plan, fill_cells
from plerion.index.split import EventSample, Grid, cover_many
from plerion.kernel import kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DEFAULT_BUDGET = 32
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
    """The cover of one interest given by its boxes (m, attributes, 2), in the interest's home cluster."""
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
    if len(index.clusters) == 1 and index.whole:
        return _covers_in(index.clusters[0], offsets, bounds, budget, sample)
    parts = []
    for first, last in pairwise(offsets.tolist()):
        boxes = bounds[first:last]
        parts.append(_covers_in(index.home(boxes), np.array([0, len(boxes)]), boxes, budget, sample))
    return Covers.of([part.dz for part in parts])


def advertised(
    index: ContentIndex, bounds: Floats, budget: int = DEFAULT_BUDGET, sample: EventSample = NO_SAMPLE
) -> DzSet:
    """Every code that an event in the boxes can have: their cover in each cluster that they meet."""
    cells: list[Dz] = []
    for cluster in index.clusters:
        clipped = bounds.copy()
        np.maximum(clipped[:, :, 0], np.array(cluster.box.lows), out=clipped[:, :, 0])
        np.minimum(clipped[:, :, 1], np.array(cluster.box.highs), out=clipped[:, :, 1])
        met = clipped[(clipped[:, :, 0] < clipped[:, :, 1]).all(axis=1)]
        cells += _covers_in(cluster, np.array([0, len(met)]), met, budget, sample)[0]
    return DzSet.of(cells)


def _covers_in(cluster: Cluster, offsets: Ints, bounds: Floats, budget: int, sample: EventSample) -> Covers:
    if not 1 <= budget <= MAX_BUDGET:
        raise ContentIndexError(f"a cover takes a budget of 1 to {MAX_BUDGET} dz, not {budget}")
    ranges = cell_ranges(cell_plan(cluster), np.ascontiguousarray(bounds, np.float64))
    count, high, low, length = cover_many(_grid(cluster), offsets, ranges, budget, sample)
    return Covers(np.concatenate(([0], np.cumsum(count))), DzColumns(high, low, length))


@lru_cache(maxsize=64)
def _grid(cluster: Cluster) -> Grid:
    plan = cell_plan(cluster)
    place = {int(a): j for j, a in enumerate(plan.attribute)}
    order = [place[a] for a in cluster.order]
    size = [plan.cells.copy()]
    for j in order:
        size.append(size[-1].copy())
        size[-1][j] >>= 1
    high, low = cluster.id.key()
    return Grid(
        np.uint64(high),
        np.uint64(low),
        cluster.id.length,
        np.array(order, np.int64),
        np.array(size, np.int64),
    )


@kernel
def cell_ranges(plan: CellPlan, bounds: Floats) -> Ints:
    """First and last cell number of each box (row) on each attribute that has bits."""
    ranges = np.empty((len(bounds), len(plan.attribute), 2), np.int64)
    last = np.empty(len(bounds), np.float64)
    for j in range(len(plan.attribute)):
        for box in range(len(bounds)):
            high = bounds[box, plan.attribute[j], 1]
            whole = plan.discrete[j] and np.isfinite(high)
            last[box] = np.ceil(high) - 1.0 if whole else np.nextafter(high, -np.inf)
        fill_cells(plan, j, bounds[:, plan.attribute[j], 0], ranges[:, j, 0])
        fill_cells(plan, j, last, ranges[:, j, 1])
    return ranges
