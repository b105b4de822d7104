"""What each subscription asks for along one attribute, whatever it asks for along the others (seed 004 §IV).

Algorithms 2 and 3 of the seed look at S_e^d, the subscriptions whose *projection* on attribute d has event e's
position. A subscription's projection is the union of its boxes' intervals, so one of several boxes counts once.
Intervals are half-open; MISSING is -inf, so it lies in those that reach down to -inf and in no other.

The ends of all boxes part the axis, and between two neighbouring ends the set S_e^d does not change. So an event
is no more than its *rank*, the number of distinct ends at or below its position; an end of rank k has at or above it
exactly the events of rank k and more. Whatever is summed over events is then a function of small whole numbers.

A rank is found without a long binary search: equal cells over the finite ends say between which two ends to
look. That is right whatever the rounding, because the cell of a position never decreases as the position grows.
What would break it: a position that is NaN, of which events have none.
"""

from __future__ import annotations

from dataclasses import dataclass
from sys import float_info
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plerion.kernel import Int, kernel, lean

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Ranks = npt.NDArray[np.int32]

_CELLS_AN_END = 2


class Guide(NamedTuple):
    """`first[c]` ends lie in cells under c of this many to a unit from `low`."""

    first: Ranks
    low: float
    factor: float


class Projection(NamedTuple):
    """One attribute: subscription s asks for the disjoint intervals `first[s]:first[s + 1]`, in order, by rank."""

    ends: Floats  # of all boxes, sorted, each once
    depth: Ints  # by rank: how many subscriptions ask for it
    first: Ints
    low: Ranks  # by interval, which has the ranks low to high - 1
    high: Ranks
    guide: Guide


@dataclass(frozen=True, slots=True, eq=False)
class Projections:
    """The projections of all subscriptions; `along[d]` are those on attribute d."""

    subscriptions: int
    along: tuple[Projection, ...]

    @classmethod
    def of(cls, offsets: Ints, bounds: Floats) -> Projections:
        """Subscription i has the boxes `bounds[offsets[i]:offsets[i + 1]]`; empty boxes ask for nothing."""
        asked = (bounds[:, :, 0] < bounds[:, :, 1]).all(axis=1)
        owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))[asked]
        bounds, count = bounds[asked], len(offsets) - 1
        sides = (bounds[:, a] for a in range(bounds.shape[1]))
        return cls(count, tuple(_projection(count, owner, side) for side in sides))

    @property
    def attributes(self) -> int:
        return len(self.along)

    def lows(self, attribute: int) -> Floats:
        """The low ends of all intervals on the attribute, in order."""
        found = self.along[attribute]
        return found.ends[np.sort(found.low) - 1]

    def highs(self, attribute: int) -> Floats:
        """The high ends of all intervals on the attribute, in order."""
        found = self.along[attribute]
        return found.ends[np.sort(found.high) - 1]

    def ranks(self, points: Floats) -> Ranks:
        """(attributes, n): how many distinct ends lie at or below each position. A few nanoseconds each."""
        points = np.ascontiguousarray(points, np.float64)
        found = np.empty((self.attributes, len(points)), np.int32)
        for a, projection in enumerate(self.along):
            fill_ranks(projection, points, a, found[a])
        return found


def _projection(count: int, owner: Ints, bounds: Floats) -> Projection:
    """From the intervals (m, 2) of all boxes, by owner."""
    ends, rank = np.unique(bounds, return_inverse=True)
    low, high = (side.astype(np.int32) for side in rank.reshape(bounds.shape).T + 1)
    if (owner[1:] == owner[:-1]).any():
        order = np.lexsort((low, owner))
        owner, low, high = owner[order], low[order], high[order]
        left = _united(owner, low, high)
        owner, low, high = owner[:left], low[:left], high[:left]
    first = np.searchsorted(owner, np.arange(count + 1)).astype(np.int64)
    opened, closed = (np.bincount(side, minlength=len(ends) + 1) for side in (low, high))
    return Projection(ends, np.cumsum(opened - closed), first, low, high, _guide(ends))


def _guide(ends: Floats) -> Guide:
    finite = ends[np.isfinite(ends)].tolist() or [0.0]
    cells = 1 << (_CELLS_AN_END * len(ends)).bit_length()
    half = finite[-1] / 2 - finite[0] / 2  # the whole may be more than a double holds
    factor = min(cells / 2 / half, float_info.max) if half > 0 else 1.0
    return Guide(_cells_under(ends, cells, finite[0], factor), finite[0], factor)


@kernel
def _united(owner: Ints, low: Ranks, high: Ranks) -> Int:
    """Joins, in place, what overlaps or touches; the intervals are in order of owner and low end. How many are left."""
    n = 0
    for i in range(len(owner)):
        if n > 0 and owner[n - 1] == owner[i] and low[i] <= high[n - 1]:
            high[n - 1] = max(high[n - 1], high[i])
        else:
            owner[n], low[n], high[n] = owner[i], low[i], high[i]
            n += 1
    return n


@lean
def _cell(position: float, low: float, factor: float, cells: Int) -> Int:
    scaled = (position - low) * factor
    if not scaled > 0:
        return 0
    return np.int64(scaled) if scaled < cells - 1 else cells - 1


@kernel
def _cells_under(ends: Floats, cells: Int, low: float, factor: float) -> Ranks:
    first = np.zeros(cells + 1, np.int32)
    for end in ends:
        first[_cell(end, low, factor, cells) + 1] += 1
    for c in range(cells):
        first[c + 1] += first[c]
    return first


@kernel
def fill_ranks(projection: Projection, points: Floats, attribute: Int, found: Ranks) -> None:
    """The ranks of one column of the points."""
    ends, (first, low, factor) = projection.ends, projection.guide
    cells = len(first) - 1
    for event in range(len(points)):
        position = points[event, attribute]
        cell = _cell(position, low, factor, cells)
        begin, stop = np.int64(first[cell]), np.int64(first[cell + 1])
        while begin < stop:
            middle = (begin + stop) >> 1
            if ends[middle] <= position:
                begin = middle + 1
            else:
                stop = middle
        found[event] = begin
