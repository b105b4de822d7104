"""The rate of an index is what a loop over every event and every subscription counts."""

from dataclasses import replace
from math import inf, nextafter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from plerion.content.box import Box
from plerion.content.schema import MISSING, Number, Schema
from plerion.index.content_index import ContentIndex
from plerion.index.cover import covers
from plerion.index.encode import encode
from plerion.index.propose import regular
from plerion.learning.judge import Judge
from plerion.learning.selective import selective
from plerion.learning.workload import Floats, Workload, host_numbers
from plerion.matching.bitset import BitsetMatcher
from plerion.matching.evaluate import evaluate
from tests.laws.indexes import costly_law, is_discrete, law, positions, schemas, tilings


@st.composite
def workloads(draw: st.DrawFn, max_attributes: int = 3) -> Workload:
    """Up to 40 events and 12 subscriptions: of no box, of one or of two that do not meet, with and without sides.

    Events lie on and beside the ends of boxes, take few values, and miss some; all may lie beside a box.
    """
    schema = draw(schemas(max_attributes))
    pools = [
        sorted(set(draw(st.lists(positions(a, a.start), min_size=1, max_size=4)))) for a in schema.attributes
    ]
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    asked = [subscription(schema, pools, random) for _ in range(draw(st.sampled_from([5, 12, 12, 2, 1, 0])))]
    count = draw(st.sampled_from([7, 40, 40, 2, 1, 0]))
    columns = [
        random.choice([MISSING, a.start, *pool] if random.random() < 0.5 else pool, count)
        for a, pool in zip(schema.attributes, pools, strict=True)
    ]
    offsets = np.cumsum([0, *map(len, asked)]).astype(np.int64)
    everything = np.concatenate([np.empty((0, len(pools), 2)), *asked])
    return Workload(
        schema, np.array(columns).T.copy(), offsets, everything, random.integers(0, 3, len(asked))
    )


def subscription(schema: Schema, pools: list[list[float]], random: np.random.Generator) -> Floats:
    """Boxes that end at positions of the pools and after them, at the ends of the axis, or nowhere."""
    box = np.empty((1, len(pools), 2))
    for at, (attribute, pool) in enumerate(zip(schema.attributes, pools, strict=True)):
        after = [p + 1 if is_discrete(attribute) else nextafter(p, inf) for p in pool]
        ends = sorted({-inf, attribute.start, *pool, *after, attribute.end, inf})
        low = int(random.integers(0, len(ends) - 1))
        box[0, at] = ends[low], ends[random.integers(low + 1, len(ends))]
        box[0, at] = box[0, at] if random.random() < 0.7 else (-inf, inf)
    count, at = random.choice([0, 1, 1, 2]), int(random.integers(len(pools)))
    low, gap, high = box[0, at, 0], random.choice(pools[at]), box[0, at, 1]
    if count < 2 or not low < gap < high:
        return box[:count]
    after_gap = min(gap + random.integers(0, 2), high)
    both = np.concatenate((box, box))
    both[0, at], both[1, at] = (low, gap), (after_gap, high)
    return both if after_gap < high else both[:1]


def interest(load: Workload, i: int) -> list[Box]:
    some = load.bounds[load.offsets[i] : load.offsets[i + 1]]
    return [Box(tuple(box[:, 0].tolist()), tuple(box[:, 1].tolist())) for box in some]


def wanted_pairs(load: Workload) -> set[tuple[int, int]]:
    """(event, interest) pairs that match, by the definition."""
    return {
        (e, i)
        for i in range(load.interests)
        for e, point in enumerate(load.points.tolist())
        if any(box.contains(point) for box in interest(load, i))
    }


def delivered_pairs(index: ContentIndex, load: Workload, budget: int) -> list[tuple[int, int]]:
    """(event, interest) pairs, once for each code of the event that lies in the cover."""
    found = covers(index, load.offsets, load.bounds, budget).sets()
    return [
        (e, i)
        for e, point in enumerate(load.points.tolist())
        for code in index.codes(point)
        for i, cells in enumerate(found)
        if cells.covers(code)
    ]


def mistakes(load: Workload, delivered: list[tuple[int, int]]) -> list[str]:
    """Pairs that match and were not delivered, and pairs that were delivered twice."""
    missed = sorted(wanted_pairs(load) - set(delivered))
    twice = sorted(pair for pair in set(delivered) if delivered.count(pair) > 1)
    return [f"{pair} missed" for pair in missed] + [f"{pair} twice" for pair in twice]


def faults(index: ContentIndex, load: Workload) -> list[str]:
    """What law 2 forbids, with several budgets, and whether compiled codes are not the defined ones."""
    codes = encode(index, load.points)
    defined = [(e, code) for e, point in enumerate(load.points.tolist()) for code in index.codes(point)]
    found = [] if list(zip(codes.event.tolist(), codes.dz, strict=True)) == defined else ["codes differ"]
    return found + [f for n in (1, 3, 64) for f in mistakes(load, delivered_pairs(index, load, n))]


@st.composite
def judged(draw: st.DrawFn) -> tuple[Workload, ContentIndex]:
    load = draw(workloads())
    attributes = range(len(load.schema.attributes))
    bits = draw(st.integers(3, 12))
    made = st.sampled_from([regular(load.schema, bits), selective(load, bits, attributes, 5)])
    return load, draw(made | tilings(load.schema))


@costly_law
@given(judged(), st.integers(1, 40))
def test_deliveries_and_rate_are_those_of_a_double_loop(
    drawn: tuple[Workload, ContentIndex], budget: int
) -> None:
    load, index = drawn
    judge = Judge.of(load, budget)
    delivered = delivered_pairs(index, load, budget)
    assert judge.wanted == len(wanted_pairs(load))
    assert judge.deliveries(index) == len(delivered)
    false = len(set(delivered) - wanted_pairs(load))
    assert judge.rate(index) == (false / len(delivered) if delivered else 0.0)


@costly_law
@given(judged(), st.integers(1, 40))
def test_the_rate_is_that_of_the_full_evaluation(drawn: tuple[Workload, ContentIndex], budget: int) -> None:
    load, index = drawn
    matcher = BitsetMatcher.of(load.offsets, load.bounds)
    found = covers(index, load.offsets, load.bounds, budget)
    whole = evaluate(load.points, encode(index, load.points), matcher, found, load.hosts)
    assert Judge.of(load, budget).rate(index) == whole.false_positive_rate
    assert whole.false_negatives == 0


@law
@given(workloads())
def test_halves_have_every_event_once_in_turn(load: Workload) -> None:
    one, other = load.halves()
    assert 0 <= len(one.points) - len(other.points) <= 1
    both = np.empty_like(load.points)
    both[::2], both[1::2] = one.points, other.points
    assert both.tolist() == load.points.tolist()
    assert one.bounds is other.bounds is load.bounds


def test_hosts_are_numbered_as_they_appear() -> None:
    assert host_numbers(["h2", "h1", "h2", "h9"]).tolist() == [0, 1, 0, 2]
    assert host_numbers([]).tolist() == []


LINE = Schema((Number("x", 0, 7, integer=True),))


def line(points: list[float], *asked: list[list[float]]) -> Workload:
    """Subscriptions to intervals of one attribute."""
    offsets = np.cumsum([0, *map(len, asked)])
    sides: Floats = np.array([side for some in asked for side in some], np.float64).reshape(-1, 1, 2)
    return Workload(LINE, np.array(points).reshape(-1, 1), offsets, sides, np.arange(len(asked)))


def test_the_rate_is_a_share_of_what_is_delivered() -> None:
    load = line([0.0, 1.0, 3.0, 7.0], [[0, 1], [3, 4]], [[7, 8]])
    whole, halved = regular(LINE, 0), regular(LINE, 1)
    assert Judge.of(load, 8).wanted == 3
    assert (Judge.of(load, 8).deliveries(whole), Judge.of(load, 8).rate(whole)) == (8, 5 / 8)
    assert (Judge.of(load, 8).deliveries(halved), Judge.of(load, 8).rate(halved)) == (4, 1 / 4)
    assert Judge.of(line([]), 8).rate(whole) == 0.0


def test_the_oracles_see_what_is_wrong() -> None:
    load = line([0.0, 1.0, 3.0, 7.0], [[0, 1], [3, 4]], [[7, 8]])
    index = regular(LINE, 3)
    assert faults(index, load) == []
    assert sorted(wanted_pairs(load)) == [(0, 0), (2, 0), (3, 1)]
    closed = replace(load, bounds=np.nextafter(load.bounds, np.inf))
    assert wanted_pairs(closed) != wanted_pairs(load)
    boxes_apart = Workload(LINE, load.points, np.arange(4), load.bounds, np.arange(3))
    assert wanted_pairs(boxes_apart) != wanted_pairs(load)
    assert delivered_pairs(regular(LINE, 1), load, 8) != delivered_pairs(index, load, 8)
    assert delivered_pairs(index, load, 1) != delivered_pairs(index, load, 8)
    right = delivered_pairs(index, load, 8)
    assert mistakes(load, right) == []
    assert mistakes(load, right[1:]) == ["(0, 0) missed"]
    assert mistakes(load, [*right, right[0]]) == ["(0, 0) twice"]
