"""Small sums over events from which every choice of attributes follows (seed 004 §III-B, §IV; seed 000 §5).

Each is a sum over events, so the results of parts of the events add up to the result of all; exactly, but for moments
of positions, which round. None grows with the events. What an event matches along one attribute is the depth at its
rank (`projection`), so what is summed over events is a sum over ranks. `similarity` has the one that is not as simple.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from plerion.content.box import Box
from plerion.content.schema import Schema
from plerion.index.content_index import Cluster
from plerion.index.cuts import MAX_EXPLICIT_BITS, Cuts, equal_cuts, useful_bits
from plerion.index.dz import WHOLE
from plerion.index.encode import CellPlan, cell_plan, fill_cells
from plerion.kernel import Int, kernel
from plerion.learning.projection import Floats, Ints, Projections

_SAFE = 1 << 62  # partial sums of products stay under it
_BLOCK = 256


@dataclass(frozen=True, slots=True, eq=False)
class AttributeMoments:
    """By attribute: events with and without a value, and mean, squared deviations, least and greatest of the values.

    Without a value the mean is 0, the least is inf and the greatest -inf.
    """

    values: Ints
    missing: Ints
    mean: Floats
    squares: Floats  # the sum of squared deviations from the mean
    least: Floats
    greatest: Floats

    def __add__(self, other: AttributeMoments) -> AttributeMoments:
        """Of both parts (Chan, Golub and LeVeque), equal to that of the whole up to rounding."""
        values = self.values + other.values
        share = other.values / np.maximum(values, 1)
        apart = np.where((self.values > 0) & (other.values > 0), other.mean - self.mean, 0.0)
        with np.errstate(over="ignore"):  # a variance past the greatest double is inf
            squares = self.squares + other.squares + apart * apart * (self.values * share)
        return AttributeMoments(
            values,
            self.missing + other.missing,
            np.where(self.values > 0, self.mean + apart * share, other.mean),
            squares,
            np.minimum(self.least, other.least),
            np.maximum(self.greatest, other.greatest),
        )

    @property
    def variance(self) -> Floats:
        """Of the values, as a population; 0 where there are none."""
        return self.squares / np.maximum(self.values, 1)


def attribute_moments(points: Floats) -> AttributeMoments:
    """Moments of axis positions; MISSING is left out."""
    return AttributeMoments(*_moments(np.ascontiguousarray(points, np.float64)))


@kernel
def _moments(points: Floats) -> tuple[Ints, Ints, Floats, Floats, Floats, Floats]:
    width = points.shape[1]
    values, mean, squares = np.zeros(width, np.int64), np.zeros(width), np.zeros(width)
    least, greatest = np.full(width, np.inf), np.full(width, -np.inf)
    for event in range(len(points)):
        for a in range(width):
            position = points[event, a]
            if position == -np.inf:
                continue
            values[a] += 1
            above = position - mean[a]
            mean[a] += above / values[a]
            squares[a] += above * (position - mean[a])
            least[a] = min(least[a], position)
            greatest[a] = max(greatest[a], position)
    return values, len(points) - values, mean, squares, least, greatest


def interval_counts(projections: Projections, points: Floats) -> tuple[Ints, ...]:
    """For each attribute the events by rank: under the first end, between each two, and from the last one on."""
    found = zip(projections.along, projections.ranks(points), strict=True)
    return tuple(np.bincount(ranks, minlength=len(along.depth)) for along, ranks in found)


def match_totals(projections: Projections, points: Floats) -> Ints:
    """The sum over events of |S_e^d|, for each attribute d."""
    counts = interval_counts(projections, points)
    totals = [count @ along.depth for count, along in zip(counts, projections.along, strict=True)]
    return np.array(totals, np.int64)


@dataclass(frozen=True, slots=True)
class WMoments:
    """Sums and sums of products of the rows of W, w_{d,e} = |S_e^d| (seed 000 §5), in whole numbers of any size."""

    events: int
    sums: tuple[int, ...]
    products: tuple[tuple[int, ...], ...]

    def __add__(self, other: WMoments) -> WMoments:
        rows = zip(self.products, other.products, strict=True)
        return WMoments(
            self.events + other.events,
            tuple(a + b for a, b in zip(self.sums, other.sums, strict=True)),
            tuple(tuple(a + b for a, b in zip(*row, strict=True)) for row in rows),
        )

    def covariance(self) -> Floats:
        """Of the rows of W, each centred by its mean; rounded once, all 0 without events."""
        n = max(1, self.events)
        rows = zip(self.sums, self.products, strict=True)
        found = [[(n * ab - a * b) / n**2 for b, ab in zip(self.sums, row, strict=True)] for a, row in rows]
        return np.array(found, np.float64)


def w_moments(projections: Projections, points: Floats) -> WMoments:
    """The moments of the rows of W; no sum overflows."""
    ranks = projections.ranks(points)
    step = max(1, _SAFE // max(1, projections.subscriptions) ** 2)
    products = np.zeros((projections.attributes, projections.attributes), np.object_)
    sums = np.zeros(projections.attributes, np.object_)
    for begin in range(0, len(points), step):
        parts = zip(projections.along, ranks[:, begin : begin + step], strict=True)
        matched = np.stack([along.depth[part] for along, part in parts])
        sums += matched.sum(axis=1).astype(np.object_)
        products += (matched @ matched.T).astype(np.object_)
    return WMoments(len(points), tuple(sums.tolist()), tuple(map(tuple, products.tolist())))


def workload_axes(schema: Schema) -> tuple[Cuts, ...]:
    """At most 2**16 equal bins an attribute; one for each value where there are no more values."""
    return tuple(equal_cuts(a, min(useful_bits(a), MAX_EXPLICIT_BITS)) for a in schema.attributes)


def workload_histogram(points: Floats, counts: Ints, axes: Sequence[Cuts]) -> tuple[Ints, ...]:
    """For each attribute the workload by bin: the sum of the events' counts of exact matches (seed 004 §III-B).

    MISSING lies in the first bin, as it lies in the first cell of an index.
    """
    points, found = np.ascontiguousarray(points, np.float64), []
    for a, cuts in enumerate(axes):
        if cuts.bits:
            alone = Cluster(WHOLE, Box((-inf,), (inf,)), (0,) * cuts.bits, (cuts,))
            found.append(_binned(cell_plan(alone), cuts.cells, points, a, counts))
        else:
            found.append(counts.sum(keepdims=True, dtype=np.int64))
    return tuple(found)


@kernel
def _binned(plan: CellPlan, cells: Int, points: Floats, attribute: Int, counts: Ints) -> Ints:
    found, cell = np.zeros(cells, np.int64), np.empty(_BLOCK, np.int64)
    for begin in range(0, len(points), _BLOCK):
        part = points[begin : begin + _BLOCK, attribute]
        fill_cells(plan, 0, part, cell)
        for i in range(len(part)):
            found[cell[i]] += counts[begin + i]
    return found
