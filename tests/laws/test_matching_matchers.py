"""Whatever stands behind `Matcher` gives the answers that the definition of filters gives."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plerion.content.box import bounds, boxes
from plerion.content.event import point
from plerion.content.schema import Schema
from plerion.content.semantics import matches
from plerion.matching.bitset import STRIDE, BitsetMatcher
from plerion.matching.matcher import Flags, Matcher
from plerion.matching.naive import NaiveMatcher
from tests.laws.indexes import Floats, costly_law, events, filters, law, schemas

Ints = npt.NDArray[np.int64]
Make = Callable[[Ints, Floats], Matcher]

MATCHERS: dict[str, Make] = {"naive": NaiveMatcher, "bitset": BitsetMatcher.of}
every_matcher = pytest.mark.parametrize("make", MATCHERS.values(), ids=MATCHERS.keys())


def disagreements(found: Flags, expected: list[list[bool]]) -> list[tuple[int, int]]:
    """(event, interest) pairs on which the matcher and the definition differ."""
    right = np.array(expected, np.bool_).reshape(found.shape)
    return [(int(i), int(j)) for i, j in np.argwhere(found != right)]


@every_matcher
@costly_law
@given(schema=schemas(), data=st.data())
def test_a_matcher_finds_exactly_the_filters_that_match(
    make: Make, schema: Schema, data: st.DataObject
) -> None:
    asked = data.draw(st.lists(filters(schema), max_size=5))
    sent = data.draw(st.lists(events(schema), max_size=8))
    parts = [bounds(boxes(filter), schema) for filter in asked]
    offsets = np.cumsum([0, *map(len, parts)])
    matcher = make(offsets, np.concatenate([np.empty((0, len(schema.names), 2)), *parts]))
    places = np.array([point(schema, event) for event in sent]).reshape(-1, len(schema.names))
    expected = [[matches(filter, event) for filter in asked] for event in sent]
    found = matcher.matches(places)
    assert found.shape == (len(sent), len(asked))
    assert disagreements(found, expected) == []


def crowd(seed: int, count: int, attributes: int) -> tuple[Ints, Floats, Floats]:
    """Boxes on a coarse grid, so that most ends coincide, some infinite; events on the same grid or MISSING."""
    random = np.random.default_rng(seed)
    grid = np.array([-np.inf, 0.0, 1.0, 2.0, 3.0, np.inf])
    low = random.integers(0, 5, (count, attributes))
    high = random.integers(low + 1, 6)
    asked = np.stack((grid[low], grid[high]), axis=-1)
    cuts = np.sort(random.integers(0, count + 1, max(0, count // 2)))
    points = np.array([-np.inf, 0.0, 0.5, 1.0, 2.0, 3.0, 9.0])[random.integers(0, 7, (12, attributes))]
    return np.concatenate(([0], cuts, [count])).astype(np.int64), asked, points


@law
@given(
    st.integers(0, 2**32),
    st.sampled_from([0, 1, 63, 64, 65, 127, 128, 129, 255, 256, 257, 300, 384, 512, 700]),
    st.integers(1, 3),
)
def test_the_bit_set_matcher_agrees_with_the_naive_one_on_crowds(seed: int, count: int, width: int) -> None:
    offsets, asked, points = crowd(seed, count, width)
    found = BitsetMatcher.of(offsets, asked).matches(points)
    assert disagreements(found, NaiveMatcher(offsets, asked).matches(points).tolist()) == []


@every_matcher
def test_no_interests_no_boxes_and_no_events_are_answered_with_nothing(make: Make) -> None:
    nothing = np.empty((0, 2, 2))
    event = np.array([[0.0, 1.0]])
    assert make(np.array([0]), nothing).matches(event).shape == (1, 0)
    assert make(np.array([0, 0, 0]), nothing).matches(event).tolist() == [[False, False]]
    assert make(np.array([0, 1]), np.array([[[0.0, 1.0]] * 2])).matches(np.empty((0, 2))).shape == (0, 1)


@every_matcher
def test_a_box_has_its_low_end_and_not_its_high_end(make: Make) -> None:
    asked = np.array([[[1.0, 2.0]], [[2.0, 3.0]], [[-np.inf, np.inf]], [[-np.inf, 1.0]]])
    found = make(np.arange(5), asked).matches(
        np.array([[1.0], [2.0], [3.0], [-np.inf], [np.nextafter(2, 0)]])
    )
    assert found.tolist() == [
        [True, False, True, False],
        [False, True, True, False],
        [False, False, True, False],
        [False, False, True, True],
        [True, False, True, False],
    ]


@every_matcher
def test_an_interest_of_several_boxes_matches_where_one_of_them_does(make: Make) -> None:
    asked = np.array([[[0.0, 1.0]], [[5.0, 6.0]], [[0.0, 6.0]]])
    found = make(np.array([0, 2, 2, 3]), asked).matches(np.array([[0.5], [3.0], [5.0]]))
    assert found.tolist() == [[True, False, True], [False, False, True], [True, False, True]]


def test_a_checkpoint_stands_at_the_very_last_end() -> None:
    """2 · boxes ends fill the strides exactly; an event past all of them looks at the last checkpoint."""
    asked = np.array([[[float(i), float(i + 1)]] for i in range(STRIDE)])
    matcher = BitsetMatcher.of(np.arange(STRIDE + 1), asked)
    found = matcher.matches(np.array([[-1.0], [0.0], [STRIDE - 1.0], [float(STRIDE)], [1e9]]))
    assert [np.flatnonzero(row).tolist() for row in found] == [[], [0], [STRIDE - 1], [], []]


def test_the_oracle_sees_one_wrong_answer() -> None:
    offsets, asked, points = crowd(1, 300, 2)
    right = NaiveMatcher(offsets, asked).matches(points)
    wrong = right.copy()
    wrong[3, 5] ^= True
    assert disagreements(wrong, right.tolist()) == [(3, 5)]
    closed = asked.copy()
    closed[:, :, 1] = np.nextafter(closed[:, :, 1], np.inf)  # boxes that have their high ends
    assert disagreements(NaiveMatcher(offsets, closed).matches(points), right.tolist()) != []
