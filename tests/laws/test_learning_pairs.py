"""Every kernel over ranks is what its definition, a loop over raw positions and boxes, gives."""

from collections.abc import Collection
from itertools import pairwise
from math import inf, isfinite
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plerion.learning.pairs import (
    Pairs,
    Ranked,
    Region,
    best_cuts,
    false_pairs,
    halves,
    is_wanted,
    ranked,
    savings,
    straddled,
    unparted,
)
from tests.laws.indexes import law

Ints = npt.NDArray[np.int64]
AXIS = [-inf, 0.0, 1.0, 2.5, 3.0, 4.0, 7.0, inf]


class Raw(NamedTuple):
    """Positions and boxes as they are; interest i has the boxes from `offsets[i]` to `offsets[i + 1]`."""

    points: list[list[float]]
    boxes: list[list[tuple[float, float]]]
    offsets: list[int]
    attributes: frozenset[int]

    def ranked(self) -> Ranked:
        width = len(self.points[0]) if self.points else len(self.boxes[0]) if self.boxes else 1
        points = np.array(self.points).reshape(-1, width)
        sides = np.array(self.boxes, np.float64).reshape(-1, width, 2)
        return ranked(points, np.array(self.offsets), sides, self.attributes)

    def column(self, a: int) -> list[float]:
        return [point[a] for point in self.points]

    def siblings(self, box: int) -> range:
        return next(range(i, j) for i, j in pairwise(self.offsets) if i <= box < j)


@st.composite
def raws(draw: st.DrawFn) -> Raw:
    """Ends that coincide, sides without end, MISSING, events twice, boxes beside all events, interests of no box."""
    width = draw(st.integers(1, 3))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    counts = random.choice([0, 1, 1, 1, 2, 3], draw(st.sampled_from([1, 3, 7]))).tolist()
    boxes = []
    for _ in range(sum(counts)):
        low = random.integers(0, len(AXIS) - 1, width)
        boxes.append([(AXIS[i], AXIS[random.integers(i + 1, len(AXIS))]) for i in low])
    held = draw(st.sampled_from([AXIS[:-1], [0.5, 2.5, 2.6, 3.0], [-inf, 9.0], [-3.0, -2.0], [3.0], [7.0]]))
    count = draw(st.sampled_from([9, 3, 1, 0]))
    chosen = st.sampled_from([set(range(width))] * 3 + [{width - 1}, set[int]()])
    attributes = frozenset(draw(chosen))
    points = random.choice(held, (count, width)).tolist()
    if not boxes and not points:
        width, attributes = 1, frozenset({0}) & attributes
    return Raw(points, boxes, np.cumsum([0, *counts]).tolist(), attributes)


def candidates(raw: Raw, a: int) -> list[float]:
    """Ends that part events from each other, and of those that part all events from a box the nearest."""
    ends = sorted({end for box in raw.boxes for end in box[a] if isfinite(end)})
    if a not in raw.attributes:
        return []
    if not raw.points:
        return ends
    column = raw.column(a)
    found = {c for c in ends if any(p < c for p in column) and any(p >= c for p in column)}
    below = [box[a][1] for box in raw.boxes if all(p >= box[a][1] for p in column)]
    above = [box[a][0] for box in raw.boxes if all(p < box[a][0] for p in column)]
    return sorted(found | ({max(below)} if below else set()) | ({min(above)} if above else set()))


def wants(raw: Raw, event: int, box: int) -> bool:
    """Whether a box of the same interest holds the event on every attribute that counts."""
    return any(
        all(raw.boxes[b][a][0] <= raw.points[event][a] < raw.boxes[b][a][1] for a in raw.attributes)
        for b in raw.siblings(box)
    )


def parts(raw: Raw, event: int, box: int, a: int, cut: float) -> bool:
    """Whether the event and the whole box lie on different sides of a cut."""
    (low, high), position = raw.boxes[box][a], raw.points[event][a]
    return (position < cut <= low) or (high <= cut <= position)


def sides(raw: Raw, region: Region, a: int) -> tuple[float, float]:
    """The region's raw side: from which position on, and up to which."""
    cuts = candidates(raw, a)
    low, high = int(region.low[a]), int(region.high[a])
    return (cuts[low] if low >= 0 else -inf), (cuts[high] if high < len(cuts) else inf)


def cells(raw: Raw, a: int, low: float, high: float) -> set[int]:
    """The cells between neighbouring candidates that [low, high) has a part of."""
    edges = [-inf, *candidates(raw, a), inf]
    return {x for x, (one, other) in enumerate(pairwise(edges)) if low < other and high > one}


def meeting(raw: Raw, region: Region, boxes: Collection[int]) -> list[int]:
    """The boxes that have a cell of the region, but not all of its cells."""
    kept = []
    for b in boxes:
        mine = [cells(raw, a, *raw.boxes[b][a]) for a in range(len(region.low))]
        here = [cells(raw, a, *sides(raw, region, a)) for a in range(len(region.low))]
        pairs = list(zip(mine, here, strict=True))
        if all(one & other for one, other in pairs) and not all(one >= other for one, other in pairs):
            kept.append(b)
    return kept


def whole(load: Ranked) -> Region:
    widths = np.diff(load.first)
    return Region(np.full(len(widths), -1), widths, np.arange(len(load.events)), np.arange(len(load.low)))


@st.composite
def regions(draw: st.DrawFn) -> tuple[Raw, Ranked, Region]:
    """The whole space, or what a few cuts leave of it, with its events and boxes by definition."""
    raw = draw(raws())
    load = raw.ranked()
    region = whole(load)
    for _ in range(draw(st.integers(0, 3))):
        inner = [
            (a, k) for a in range(len(region.low)) for k in range(region.low[a] + 1, int(region.high[a]))
        ]
        if not inner:
            break
        a, k = draw(st.sampled_from(inner))
        low, high = region.low.copy(), region.high.copy()
        (low if draw(st.booleans()) else high)[a] = k
        shrunk = region._replace(low=low, high=high)
        events = [
            e
            for e in region.events.tolist()
            if all(
                sides(raw, shrunk, b)[0] <= raw.points[e][b] < sides(raw, shrunk, b)[1]
                for b in range(len(low))
            )
        ]
        boxes = meeting(raw, shrunk, region.boxes.tolist())
        region = Region(low, high, np.array(events, np.int64), np.array(boxes, np.int64))
    return raw, load, region


def listed(pairs: Pairs) -> list[tuple[int, int]]:
    return list(zip(pairs.event.tolist(), pairs.box.tolist(), strict=True))


def all_false(raw: Raw, region: Region) -> list[tuple[int, int]]:
    return [(e, b) for e in region.events.tolist() for b in region.boxes.tolist() if not wants(raw, e, b)]


def columns_of(some: list[tuple[int, int]]) -> Pairs:
    return Pairs(np.array([e for e, _ in some], np.int32), np.array([b for _, b in some], np.int32))


@law
@given(raws())
def test_ranks_count_the_candidates_below(raw: Raw) -> None:
    load = raw.ranked()
    for a in range(load.events.shape[1]):
        cuts = candidates(raw, a)
        assert load.candidates(a).tolist() == cuts
        assert load.events[:, a].tolist() == [sum(c <= p for c in cuts) for p in raw.column(a)]
        assert load.low[:, a].tolist() == [sum(c <= box[a][0] for c in cuts) - 1 for box in raw.boxes]
        assert load.high[:, a].tolist() == [sum(c < box[a][1] for c in cuts) for box in raw.boxes]
    assert load.owner.tolist() == [i for i, (a, b) in enumerate(pairwise(raw.offsets)) for _ in range(a, b)]


@law
@given(raws())
def test_a_pair_is_wanted_exactly_when_a_box_of_the_interest_holds_the_event(raw: Raw) -> None:
    load = raw.ranked()
    for e in range(len(raw.points)):
        for b in range(len(raw.boxes)):
            assert is_wanted(load, e, b) == wants(raw, e, b)


@law
@given(regions())
def test_few_false_pairs_are_all_found(drawn: tuple[Raw, Ranked, Region]) -> None:
    raw, load, region = drawn
    pairs, count = false_pairs(load, region, len(region.events) * len(region.boxes), 1)
    assert listed(pairs) == all_false(raw, region)
    assert count == len(pairs.event)


@law
@given(regions(), st.integers(1, 20), st.integers(0, 9))
def test_of_many_false_pairs_some_are_drawn(drawn: tuple[Raw, Ranked, Region], most: int, seed: int) -> None:
    raw, load, region = drawn
    every = len(region.events) * len(region.boxes)
    pairs, count = false_pairs(load, region, most, seed)
    assert set(listed(pairs)) <= set(all_false(raw, region))
    assert len(pairs.event) <= most
    assert count == pytest.approx(len(pairs.event) * max(1.0, every / most))
    assert listed(false_pairs(load, region, most, seed)[0]) == listed(pairs)


def test_drawn_pairs_are_spread_over_all_and_their_number_is_about_right() -> None:
    random = np.random.default_rng(3)
    low = random.integers(0, 90, (80, 2)).astype(np.float64)
    load = ranked(
        random.integers(0, 100, (120, 2)).astype(np.float64),
        np.arange(81),
        np.stack((low, low + 30), axis=-1),
        range(2),
    )
    exact = false_pairs(load, whole(load), 9_600, 1)[1]
    for seed in (1, 2, 3):
        some, count = false_pairs(load, whole(load), 4_000, seed)
        assert count == pytest.approx(exact, rel=0.05)
        assert len(set(some.event.tolist())) == 120
        assert len(set(some.box.tolist())) == 80
    drawn = [listed(false_pairs(load, whole(load), 4_000, seed)[0]) for seed in (1, 2)]
    assert drawn[0] != drawn[1]


@law
@given(regions())
def test_a_cut_saves_the_pairs_that_it_parts(drawn: tuple[Raw, Ranked, Region]) -> None:
    raw, load, region = drawn
    some = all_false(raw, region)
    for a in range(len(region.low)):
        low, high = int(region.low[a]), int(region.high[a])
        saved = savings(load, columns_of(some), a, low, high)
        cuts = candidates(raw, a)
        for k in range(low + 1, high):
            assert saved[k - low] == sum(parts(raw, e, b, a, cuts[k]) for e, b in some)


@law
@given(regions())
def test_a_cut_straddles_the_boxes_that_lie_on_both_sides(drawn: tuple[Raw, Ranked, Region]) -> None:
    raw, load, region = drawn
    for a in range(len(region.low)):
        across, cuts = straddled(load, region, a), candidates(raw, a)
        for k in range(region.low[a] + 1, int(region.high[a])):
            torn = [b for b in region.boxes.tolist() if raw.boxes[b][a][0] < cuts[k] < raw.boxes[b][a][1]]
            assert across[k - region.low[a]] == len(torn)


@law
@given(st.lists(st.integers(0, 5), min_size=2, max_size=12), st.integers(-1, 5), st.data())
def test_each_cell_is_cut_where_that_saves_most(saved: list[int], first: int, data: st.DataObject) -> None:
    last = first + len(saved) - 1
    inner = sorted(data.draw(st.lists(st.integers(first, last), max_size=3)))
    cuts = [first, *inner, last]
    fresh, total = best_cuts(np.array(saved), np.array(cuts))
    sums = 0
    for (low, high), cut in zip(pairwise(cuts), fresh.tolist(), strict=True):
        inside = range(low + 1, high)
        most = max((saved[k - first] for k in inside), default=0)
        sums += most
        if most > 0:
            assert cut == min(k for k in inside if saved[k - first] == most)
        else:
            assert cut == (low + high) // 2
    assert total == sums


@law
@given(regions(), st.data())
def test_pairs_are_unparted_that_no_cut_parts(drawn: tuple[Raw, Ranked, Region], data: st.DataObject) -> None:
    raw, load, region = drawn
    some = all_false(raw, region)
    for a in range(len(region.low)):
        low, high = int(region.low[a]), int(region.high[a])
        places = st.integers(low, max(low, high - 1))
        placed = sorted(data.draw(st.lists(places, max_size=4)))
        cuts = [candidates(raw, a)[k] for k in placed if k > low]
        left = unparted(load, columns_of(some), a, np.array([low, *placed, high]))
        assert listed(left) == [(e, b) for e, b in some if not any(parts(raw, e, b, a, c) for c in cuts)]


@law
@given(regions())
def test_both_halves_have_their_events_and_the_boxes_that_they_share(
    drawn: tuple[Raw, Ranked, Region],
) -> None:
    raw, load, region = drawn
    for a in range(len(region.low)):
        for k in range(region.low[a] + 1, int(region.high[a])):
            cut = candidates(raw, a)[k]
            lower, upper = halves(load, region, a, k)
            for half, is_upper in ((lower, False), (upper, True)):
                inside = [e for e in region.events.tolist() if (raw.points[e][a] >= cut) == is_upper]
                assert half.events.tolist() == inside
                assert half.boxes.tolist() == meeting(raw, half, region.boxes.tolist())
            assert sides(raw, lower, a) == (sides(raw, region, a)[0], cut)
            assert sides(raw, upper, a) == (cut, sides(raw, region, a)[1])
            for b in set(range(len(region.low))) - {a}:
                assert sides(raw, lower, b) == sides(raw, upper, b) == sides(raw, region, b)


def test_boxes_beside_all_events_can_be_parted_from_them() -> None:
    raw = Raw(
        [[5.0], [6.0]],
        [[(7.0, 9.0)], [(8.0, 9.0)], [(0.0, 2.0)], [(1.0, 5.0)]],
        [0, 1, 2, 3, 4],
        frozenset({0}),
    )
    load = raw.ranked()
    assert load.candidates(0).tolist() == [5.0, 7.0]
    pairs, _ = false_pairs(load, whole(load), 100, 1)
    assert len(pairs.event) == 8
    assert savings(load, pairs, 0, -1, 2)[1:3].tolist() == [4, 4]
    assert len(unparted(load, pairs, 0, np.array([-1, 0, 1, 2])).event) == 0


def test_another_box_of_the_same_interest_can_want_the_event() -> None:
    points, boxes = [[1.0], [5.0]], [[(0.0, 2.0)], [(4.0, 6.0)]]
    together, apart = (
        Raw(points, boxes, [0, 2], frozenset({0})),
        Raw(points, boxes, [0, 1, 2], frozenset({0})),
    )
    assert all_false(together, whole(together.ranked())) == []
    assert all_false(apart, whole(apart.ranked())) == [(0, 1), (1, 0)]
    for raw in (together, apart):
        found, _ = false_pairs(raw.ranked(), whole(raw.ranked()), 100, 1)
        assert listed(found) == all_false(raw, whole(raw.ranked()))


def test_the_oracles_see_what_is_wrong() -> None:
    raw = Raw([[1.0], [3.0], [6.0]], [[(3.0, 6.0)], [(-inf, 3.0)]], [0, 1, 2], frozenset({0}))
    load = raw.ranked()
    assert candidates(raw, 0) == load.candidates(0).tolist() == [3.0, 6.0]
    region = whole(load)
    assert all_false(raw, region) == [(0, 0), (1, 1), (2, 0), (2, 1)]
    closed_above = load._replace(high=load.high + 1)
    assert listed(false_pairs(closed_above, region, 100, 1)[0]) != all_false(raw, region)
    assert [parts(raw, 0, 0, 0, cut) for cut in (1.0, 1.5, 3.0, 3.5)] == [False, True, True, False]
    assert [parts(raw, 2, 0, 0, cut) for cut in (5.5, 6.0, 6.5)] == [False, True, False]
    assert meeting(raw, region._replace(high=np.array([0])), [0, 1]) == []
    assert meeting(raw, region._replace(high=np.array([1])), [0, 1]) == [0, 1]
