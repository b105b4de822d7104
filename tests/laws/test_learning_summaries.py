"""Each summary is what its definition, written as a loop over events and subscriptions, gives; parts of it add up."""

from collections.abc import Iterable
from functools import reduce
from itertools import pairwise
from math import inf, isclose
from operator import add

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from plerion.content.box import bounds
from plerion.content.schema import MISSING, Number, Schema
from plerion.index.cuts import Cuts
from plerion.learning.projection import Projections
from plerion.learning.similarity import attribute_pairs, similarity
from plerion.learning.summaries import (
    AttributeMoments,
    WMoments,
    attribute_moments,
    interval_counts,
    match_totals,
    w_moments,
    workload_axes,
    workload_histogram,
)
from plerion.matching.bitset import match_counts
from tests.laws.indexes import Floats, boxes, costly_law, cuts, law, points, schemas

Ints = npt.NDArray[np.int64]
Asked = list[Floats]  # the boxes (m, attributes, 2) of each subscription


def matched(asked: Asked, places: Floats) -> npt.NDArray[np.bool_]:
    """(attributes, events, subscriptions): who is in S_e^d, one subscription after the other, by the definition."""
    found = np.zeros((places.shape[1], len(places), len(asked)), np.bool_)
    for d, positions in enumerate(places.T):
        for s, some in enumerate(asked):
            for low, high in some[:, d]:
                found[d, :, s] |= (low <= positions) & (positions < high)
    return found


def columns(asked: Asked, width: int) -> tuple[Ints, Floats]:
    offsets = np.cumsum([0, *map(len, asked)]).astype(np.int64)
    return offsets, np.concatenate([np.empty((0, width, 2)), *asked])


def projections(asked: Asked, width: int) -> Projections:
    return Projections.of(*columns(asked, width))


@st.composite
def workloads(draw: st.DrawFn) -> tuple[Schema, Asked, Floats]:
    """Subscriptions of none to three boxes that may overlap, and events on and beside their ends."""
    schema = draw(schemas())
    asked = [bounds(some, schema) for some in draw(st.lists(st.lists(boxes(schema), max_size=3), max_size=6))]
    everything = columns(asked, len(schema.attributes))[1]
    return schema, asked, draw(points(schema, everything))


GRID = [-inf, 0.0, 1.0, 2.5, 3.0, 4.0, 7.0, inf]


@st.composite
def crowds(draw: st.DrawFn) -> tuple[Asked, Floats]:
    """Many at once: ends that coincide, up to a dozen boxes a subscription, unbounded sides, values twice, MISSING."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    width, fine = draw(st.integers(1, 4)), draw(st.booleans())
    axis = np.sort(np.concatenate((GRID, random.normal(3, 3, 200)))) if fine else np.array(GRID)
    asked = []
    for _ in range(draw(st.sampled_from([0, 1, 2, 20, 60]))):
        low = random.integers(0, len(axis) - 1, (random.choice([0, 1, 1, 1, 2, 12]), width))
        asked.append(axis[np.stack((low, random.integers(low + 1, len(axis))), axis=-1)])
    events = np.concatenate((axis[:-1], [0.5, 1.0, 9.0]))
    return asked, random.choice(events, (draw(st.sampled_from([0, 1, 7, 40, 300])), width))


@st.composite
def partitions(draw: st.DrawFn, places: Floats) -> list[Floats]:
    """The events in four parts, some of which may be empty."""
    part = np.array(draw(st.lists(st.integers(0, 3), min_size=len(places), max_size=len(places))), np.int64)
    return [places[part == p] for p in range(4)]


either = workloads().map(lambda drawn: drawn[1:]) | crowds()


@costly_law
@given(either)
def test_totals_and_similarities_are_those_of_the_definition(drawn: tuple[Asked, Floats]) -> None:
    asked, places = drawn
    inside = matched(asked, places)
    made = projections(asked, places.shape[1])
    assert match_totals(made, places).tolist() == inside.sum(axis=(1, 2)).tolist()
    assert similarity(made, places).tolist() == [[int((a & b).sum()) for b in inside] for a in inside]


@costly_law
@given(either)
def test_the_moments_of_w_are_exact(drawn: tuple[Asked, Floats]) -> None:
    asked, places = drawn
    w = matched(asked, places).sum(axis=2)
    found = w_moments(projections(asked, places.shape[1]), places)
    assert found == WMoments(
        len(places), tuple(w.sum(axis=1).tolist()), tuple(map(tuple, (w @ w.T).tolist()))
    )
    centred = w - w.mean(axis=1, keepdims=True) if len(places) else np.zeros(w.shape)
    np.testing.assert_allclose(found.covariance(), centred @ centred.T / max(1, len(places)), atol=1e-9)


@costly_law
@given(either)
def test_a_rank_is_the_number_of_ends_that_are_not_above(drawn: tuple[Asked, Floats]) -> None:
    asked, places = drawn
    made = projections(asked, places.shape[1])
    for d, counts in enumerate(interval_counts(made, places)):
        ends = sorted({end for some in asked for end in some[:, d].ravel().tolist()})
        assert made.along[d].ends.tolist() == ends
        ranks = [sum(end <= place[d] for end in ends) for place in places]
        assert made.ranks(places)[d].tolist() == ranks
        assert counts.tolist() == [ranks.count(rank) for rank in range(len(ends) + 1)]


@law
@given(crowds())
def test_matches_are_counted_by_sorted_low_and_high_ends(drawn: tuple[Asked, Floats]) -> None:
    asked, places = drawn
    made, inside = projections(asked, places.shape[1]), matched(asked, places)
    for d in range(places.shape[1]):
        opened = np.searchsorted(made.lows(d), places[:, d], side="right")
        closed = np.searchsorted(made.highs(d), places[:, d], side="right")
        assert (opened - closed).tolist() == inside[d].sum(axis=1).tolist()


def described(places: Floats) -> AttributeMoments:
    """Moments by definition, in two passes."""
    values = [column[column > MISSING] for column in places.T]
    means = [column.mean() if len(column) else 0.0 for column in values]
    return AttributeMoments(
        np.array([len(column) for column in values]),
        np.array([len(places) - len(column) for column in values]),
        np.array(means),
        np.array([((column - mean) ** 2).sum() for column, mean in zip(values, means, strict=True)]),
        np.array([column.min(initial=inf) for column in values]),
        np.array([column.max(initial=-inf) for column in values]),
    )


def differences(one: AttributeMoments, other: AttributeMoments, scale: float = 1.0) -> list[str]:
    exact = [
        name
        for name in ("values", "missing", "least", "greatest")
        if getattr(one, name).tolist() != getattr(other, name).tolist()
    ]
    rounded = [
        name
        for name in ("mean", "squares")
        for a, b in zip(getattr(one, name).tolist(), getattr(other, name).tolist(), strict=True)
        if not isclose(a, b, rel_tol=1e-9, abs_tol=1e-9 * scale)
    ]
    return exact + rounded


@law
@given(crowds(), st.data())
def test_moments_are_those_of_the_definition_and_those_of_parts_add_up(
    drawn: tuple[Asked, Floats], data: st.DataObject
) -> None:
    places = drawn[1]
    found = attribute_moments(places)
    assert differences(found, described(places)) == []
    assert differences(reduce(add, map(attribute_moments, data.draw(partitions(places)))), found) == []


def test_a_great_mean_does_not_drown_the_variance() -> None:
    random = np.random.default_rng(1)
    far = 1e9 + random.normal(0, 1, (1000, 1))
    parts = reduce(add, (attribute_moments(part) for part in np.array_split(far, 7)))
    for found in (attribute_moments(far), parts):
        assert isclose(found.variance[0], far.var(), rel_tol=1e-6)


@law
@given(schemas().flatmap(points), st.data())
def test_no_moment_is_nan(places: Floats, data: st.DataObject) -> None:
    """Some attributes reach from -8e307 to 8e307."""
    whole = reduce(add, map(attribute_moments, data.draw(partitions(places))))
    for found in (whole, attribute_moments(places)):
        assert not np.isnan([found.mean, found.squares, found.variance]).any()
        assert (found.variance >= 0).all()


def summed(parts: Iterable[tuple[Ints, ...]]) -> list[list[int]]:
    return [sum(part).tolist() for part in zip(*parts, strict=True)]


@costly_law
@given(either, st.data())
def test_exact_summaries_of_parts_add_up_to_that_of_the_whole(
    drawn: tuple[Asked, Floats], data: st.DataObject
) -> None:
    asked, places = drawn
    made, parts = projections(asked, places.shape[1]), data.draw(partitions(places))
    assert sum(match_totals(made, part) for part in parts).tolist() == match_totals(made, places).tolist()  # type: ignore[union-attr]  # there are parts
    assert sum(similarity(made, part) for part in parts).tolist() == similarity(made, places).tolist()  # type: ignore[union-attr]  # there are parts
    assert reduce(add, (w_moments(made, part) for part in parts)) == w_moments(made, places)
    whole = [counts.tolist() for counts in interval_counts(made, places)]
    assert summed(interval_counts(made, part) for part in parts) == whole


@law
@given(crowds(), st.data())
def test_similarities_of_some_pairs_of_attributes_add_up_to_all(
    drawn: tuple[Asked, Floats], data: st.DataObject
) -> None:
    asked, places = drawn
    made, pairs = projections(asked, places.shape[1]), attribute_pairs(places.shape[1])
    mine = set(data.draw(st.lists(st.sampled_from(pairs))))
    others = [pair for pair in pairs if pair not in mine]
    added = similarity(made, places, list(mine)) + similarity(made, places, others)
    assert added.tolist() == similarity(made, places).tolist()


@law
@given(schemas(), st.data())
def test_the_workload_of_a_bin_is_what_its_events_match(schema: Schema, data: st.DataObject) -> None:
    places = data.draw(points(schema))
    counts = np.array([data.draw(st.integers(0, 9)) for _ in places], np.int64)
    axes = tuple(data.draw(cuts(a, data.draw(st.integers(0, 4)), (-inf, inf))) for a in schema.attributes)
    for chosen in (axes, workload_axes(schema)):
        found = workload_histogram(places, counts, chosen)
        for d, axis in enumerate(chosen):
            assert found[d].tolist() == binned(axis, places[:, d], counts)
        halves = (workload_histogram(places[s::2], counts[s::2], chosen) for s in (0, 1))
        assert summed(halves) == [bins.tolist() for bins in found]


def binned(axis: Cuts, positions: Floats, counts: Ints) -> list[int]:
    found = [0] * axis.cells
    for position, count in zip(positions.tolist(), counts.tolist(), strict=True):
        found[axis.cell(position)] += count
    return found


def test_few_whole_values_have_a_bin_each() -> None:
    schema = Schema((Number("x", 3, 6, integer=True),))
    places = np.array([[3.0], [5.0], [5.0], [6.0], [MISSING]])
    (bins,) = workload_histogram(places, np.array([1, 2, 4, 8, 16]), workload_axes(schema))
    assert bins.tolist() == [17, 0, 6, 8]


def test_the_workload_is_that_of_the_matcher() -> None:
    schema = Schema((Number("x", 0, 7, integer=True), Number("y", 0, 7, integer=True)))
    asked = np.array([[[0.0, 4.0], [0.0, 8.0]], [[2.0, 6.0], [4.0, 8.0]]])
    places = np.array([[3.0, 5.0], [3.0, 1.0], [5.0, 5.0], [7.0, 7.0]])
    x, y = workload_histogram(places, match_counts(asked, places), workload_axes(schema))
    assert x.tolist() == [0, 0, 0, 3, 0, 1, 0, 0]
    assert y.tolist() == [0, 1, 0, 0, 0, 3, 0, 0]


def test_a_subscription_of_several_boxes_counts_once() -> None:
    asked = [
        np.array([[[0.0, 4.0], [0.0, 1.0]], [[2.0, 6.0], [5.0, 6.0]]]),
        np.array([[[6.0, 8.0], [0.0, 9.0]]]),
    ]
    made = projections(asked, 2)
    places = np.array([[3.0, 5.5], [5.0, 3.0], [6.0, 0.5]])
    assert match_totals(made, places).tolist() == [3, 5]
    assert similarity(made, places).tolist() == [[3, 2], [2, 5]]
    assert [projection.ends.tolist() for projection in made.along] == [[0, 2, 4, 6, 8], [0, 1, 5, 6, 9]]


def test_many_ranks_in_many_blocks_are_counted_right() -> None:
    random = np.random.default_rng(2)
    low = random.uniform(0, 100, (400, 3))
    asked = list(np.stack((low, low + random.choice([0.5, 5, 50, inf], low.shape)), axis=-1)[:, np.newaxis])
    places = random.uniform(0, 100, (2000, 3))
    inside = matched(asked, places)
    expected = [[int((a & b).sum()) for b in inside] for a in inside]
    assert similarity(projections(asked, 3), places).tolist() == expected


def test_missing_lies_only_in_what_reaches_down_to_it() -> None:
    asked = [np.array([[side]]) for side in ([-inf, inf], [0.0, 9.0], [-inf, 0.0], [-8.0, inf])]
    made = projections(asked, 1)
    assert match_totals(made, np.array([[MISSING]])).tolist() == [2]
    assert match_totals(made, np.array([[3.0]])).tolist() == [3]


def test_no_events_and_no_subscriptions_give_zeros() -> None:
    nobody, nothing = projections([], 2), np.empty((0, 2))
    somebody = projections([np.array([[[0.0, 1.0], [0.0, 1.0]]]), np.empty((0, 2, 2))], 2)
    for made, places in ((nobody, np.zeros((3, 2))), (somebody, nothing), (nobody, nothing)):
        assert match_totals(made, places).tolist() == [0, 0]
        assert similarity(made, places).tolist() == [[0, 0], [0, 0]]
        assert w_moments(made, places).covariance().tolist() == [[0, 0], [0, 0]]
    assert [counts.tolist() for counts in interval_counts(nobody, np.zeros((3, 2)))] == [[3], [3]]
    assert attribute_moments(nothing).variance.tolist() == [0, 0]


def test_a_box_that_is_empty_anywhere_asks_for_nothing() -> None:
    made = projections([np.array([[[0.0, 9.0], [5.0, 5.0]], [[1.0, 2.0], [1.0, 2.0]]])], 2)
    assert match_totals(made, np.array([[0.5, 1.0], [1.5, 5.0]])).tolist() == [1, 1]


def test_extreme_ends_are_ranked_like_any_other() -> None:
    """The finite ends span more than a double can say, or less than it can halve."""
    tiny, great = 5e-324, 1.7e308
    for ends in (
        [-great, 0.0, great],
        [0.0, tiny, 2 * tiny],
        [1e15, 1e15 + 0.125],
        [-inf, inf],
        [0.0, great],
    ):
        asked = [np.array([[[low, high]]]) for low, high in pairwise(ends)]
        places = np.array([[-inf], [-great], [-tiny], [0.0], [tiny], [2 * tiny], [1e15], [1e16], [great]])
        expected = [[sum(end <= place for end in ends) for place in places[:, 0]]]
        assert projections(asked, 1).ranks(places).tolist() == expected


def test_sums_of_products_past_64_bits_are_exact() -> None:
    half = WMoments(1, (3 * 10**18,), ((9 * 10**36,),))
    both = half + WMoments(1, (10**18,), ((10**36,),))
    assert both == WMoments(2, (4 * 10**18,), ((10**37,),))
    assert both.covariance().tolist() == [[1e36]]


def test_the_oracles_see_what_is_wrong() -> None:
    asked = [np.array([[[0.0, 2.0]], [[1.0, 3.0]]]), np.array([[[2.0, 3.0]]])]
    places = np.array([[1.5], [2.0], [MISSING]])
    right = matched(asked, places).sum(axis=(1, 2)).tolist()
    assert right == [3]
    boxes_counted_twice = [box[np.newaxis] for some in asked for box in some]
    assert match_totals(projections(boxes_counted_twice, 1), places).tolist() != right
    closed = [asked[0], np.nextafter(asked[1], inf)]
    assert match_totals(projections(closed, 1), places).tolist() != right
    one, other = described(places), described(places[:2])
    assert set(differences(one, other)) == {"missing"}
    assert set(differences(one, described(places + 1))) == {"least", "greatest", "mean"}
    assert "squares" in differences(one, described(places * 2))
    assert differences(one + one, one)
