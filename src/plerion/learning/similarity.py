"""How alike two attributes are: the sum over events of |S_e^i ∩ S_e^j| (Algorithm 3 of seed 004, times |S|).

It counts pairs of an event and a rectangle: the projections of a subscription on i and j span a rectangle for each
pair of their intervals, and no two of them overlap. Sweep along i: a rectangle opens at its low side and closes at its
high side, each an addition to a range of ranks on j, and every event on the way adds to the total what stands at its
own rank. Ranks are kept in blocks of about the square root of their number, so a range costs two broken blocks and
the whole ones between, and an event two look-ups. For n events and m subscriptions that is about n + m·√m steps a
pair instead of n·m.

Ranks without an event are left out first, so few events are cheap, too. A subscription of so many intervals that it
takes less to look at every event is counted that way, so none costs more than the definition.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plerion.kernel import Int, kernel, lean
from plerion.learning.projection import Floats, Ints, Projection, Projections, Ranks

_EVENTS_A_RECTANGLE = 16  # as many events are looked at in the time that a rectangle takes to open and close


def attribute_pairs(attributes: int) -> list[tuple[int, int]]:
    """Every pair i <= j once."""
    return list(combinations_with_replacement(range(attributes), 2))


def similarity(
    projections: Projections, points: Floats, pairs: Sequence[tuple[int, int]] | None = None
) -> Ints:
    """(attributes, attributes): the sum over events of |S_e^i ∩ S_e^j|.

    Given some of `attribute_pairs`, the others stay 0: parts of the pairs, too, add up to the whole.
    """
    found = np.zeros((projections.attributes, projections.attributes), np.int64)
    ranks = projections.ranks(points)
    spans = [_spans(along, row) for along, row in zip(projections.along, ranks, strict=True)]
    for i, j in attribute_pairs(projections.attributes) if pairs is None else pairs:
        if i == j:
            found[i, i] = projections.along[i].depth[ranks[i]].sum()
        else:
            found[i, j] = found[j, i] = _met(spans[i], spans[j])
    return found


class Spans(NamedTuple):
    """A projection over the ranks that events have, numbered without gaps, and those events."""

    events: Ranks  # the rank of each
    by_rank: Ranks  # the events in order of rank
    start: Ints  # by rank, where its events begin there
    first: Ints  # by subscription, where its intervals begin
    sides: Ranks  # (intervals, 2): from the first rank up to the second
    end: Ranks  # the sides of intervals with an event, in order of rank
    whose: Ints  # by end, the subscription, as ~s if the interval ends there


@kernel
def _spans(projection: Projection, ranks: Ranks) -> Spans:
    place = np.zeros(len(projection.depth) + 1, np.int64)
    for rank in ranks:
        place[rank + 1] += 1
    under, start = np.zeros(len(place), np.int32), [0]
    for r in range(len(projection.depth)):
        under[r + 1] = under[r] + (place[r + 1] > 0)
        place[r + 1] += place[r]
        if under[r + 1] > under[r]:
            start.append(place[r + 1])
    by_rank = np.empty(len(ranks), np.int32)
    for event in range(len(ranks)):
        by_rank[place[ranks[event]]] = event
        place[ranks[event]] += 1
    sides = np.stack((under[projection.low], under[projection.high]), axis=1)
    end, whose = _ends(projection.first, sides, len(start))
    return Spans(under[ranks], by_rank, np.array(start), projection.first, sides, end, whose)


@kernel
def _ends(first: Ints, sides: Ranks, ranks: Int) -> tuple[Ranks, Ints]:
    """The sides of intervals that are not empty, in order of rank, and whose they are."""
    place = np.zeros(ranks + 1, np.int64)
    for low, high in sides:
        if low < high:
            place[low + 1] += 1
            place[high + 1] += 1
    place = np.cumsum(place)
    end, whose = np.empty(place[-1], np.int32), np.empty(place[-1], np.int64)
    for s in range(len(first) - 1):
        for low, high in sides[first[s] : first[s + 1]]:
            if low < high:
                for rank, owner in ((low, s), (high, ~s)):
                    end[place[rank]] = rank
                    whose[place[rank]] = owner
                    place[rank] += 1
    return end, whose


@kernel
def _met(i: Spans, j: Spans) -> Int:
    """How many pairs of an event and a subscription there are that meet on both attributes."""
    swept, total = np.empty(len(i.first) - 1, np.bool_), np.int64(0)
    for s in range(len(swept)):
        rectangles = (i.first[s + 1] - i.first[s]) * (j.first[s + 1] - j.first[s])
        swept[s] = rectangles * _EVENTS_A_RECTANGLE <= len(i.events) + len(i.start) + len(j.start)
        if not swept[s]:
            total += _met_by(i, j, s)
    return total + _sweep(i, j, swept)


@kernel
def _met_by(i: Spans, j: Spans, s: Int) -> Int:
    """The events that one subscription meets on both, one after the other."""
    on_i, on_j, total = np.zeros(len(i.start), np.int64), np.zeros(len(j.start), np.int64), np.int64(0)
    for t in range(i.first[s], i.first[s + 1]):
        on_i[i.sides[t, 0] : i.sides[t, 1]] = 1
    for t in range(j.first[s], j.first[s + 1]):
        on_j[j.sides[t, 0] : j.sides[t, 1]] = 1
    for event in range(len(i.events)):
        total += on_i[i.events[event]] & on_j[j.events[event]]
    return total


@kernel
def _sweep(i: Spans, j: Spans, swept: npt.NDArray[np.bool_]) -> Int:
    shift = 1
    while 1 << (2 * shift) < len(j.start):
        shift += 1
    blocks = np.zeros((len(j.start) >> shift) + 1, np.int32)
    cells = np.zeros(len(blocks) << shift, np.int32)
    passed, total = 0, np.int64(0)
    for rank in range(len(i.start) - 1):
        while passed < len(i.end) and i.end[passed] <= rank:
            whose = i.whose[passed]
            s, amount = (whose, np.int32(1)) if whose >= 0 else (~whose, np.int32(-1))
            passed += 1
            if swept[s]:
                for t in range(j.first[s], j.first[s + 1]):
                    _add(cells, blocks, shift, np.int64(j.sides[t, 0]), np.int64(j.sides[t, 1]), amount)
        for event in i.by_rank[i.start[rank] : i.start[rank + 1]]:
            total += cells[j.events[event]] + blocks[j.events[event] >> shift]
    return total


@lean
def _add(cells: Ranks, blocks: Ranks, shift: Int, low: Int, high: Int, amount: Int) -> None:
    """Adds to the ranks from low to high - 1; what stands at a rank is the sum of its cell and its block."""
    first, last = low >> shift, high >> shift
    if first == last:
        for rank in range(low, high):
            cells[rank] += amount
        return
    for rank in range(low, (first + 1) << shift):
        cells[rank] += amount
    for block in range(first + 1, last):
        blocks[block] += amount
    for rank in range(last << shift, high):
        cells[rank] += amount
