"""Law 1: a filter matches an event exactly when one of its boxes contains it, and then exactly one."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from plerion.content.box import MAX_BOXES, Box, bounds, boxes
from plerion.content.event import Event, point
from plerion.content.filter import (
    And,
    Between,
    Comparison,
    Constant,
    Expression,
    Filter,
    FilterError,
    Membership,
    Not,
    Operator,
    Or,
    Pattern,
    canonical,
)
from plerion.content.like import matcher, matches_pattern
from plerion.content.parse import parse
from plerion.content.schema import Enumeration, Number, Schema
from plerion.content.semantics import matches

SCHEMA = Schema(
    (
        Number("t", -3.0, 3.0),
        Number("n", -2, 3, integer=True),
        Enumeration("city", ("oslo", "bergen", "a\\b", "it's", "50%")),
        Number("PM2.5", 1e-3, 1e3, scale="log"),
        Number("and", 0, 1),
        Number("odd ` name", 5, 5, integer=True),
    )
)
NUMBERS = (0, 1, 3, 4, 5)
TEXTS = ("oslo", "bergen", "a\\b", "it's", "50%", "rome", "", '"', "\\", "\\'")

# Near each other and near the bounds, so that intervals touch, overlap and fall outside.
values = st.one_of(
    st.sampled_from(
        [-3.0, -2.5, -2.0, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 5e-324, 1e-3, 1e3, 1e300]
    ),
    st.sampled_from([math.nextafter(bound, way) for bound in (-3.0, 0.0, 3.0) for way in (-9.0, 9.0)]),
    st.floats(allow_nan=False, allow_infinity=False),
)
patterns = st.one_of(st.text("%_\\o'5ab", max_size=6), st.sampled_from(TEXTS))


def leaves() -> st.SearchStrategy[Expression]:
    numeric = st.sampled_from(NUMBERS)
    orders = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
    return st.one_of(
        st.builds(Comparison, numeric, orders, values),
        st.builds(Between, numeric, values, values),
        st.builds(Membership, numeric, st.lists(values, min_size=1, max_size=4, unique=True).map(tuple)),
        st.builds(Comparison, st.just(2), st.sampled_from(["=", "!="]), st.sampled_from(TEXTS)),
        st.builds(
            Membership,
            st.just(2),
            st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4, unique=True).map(tuple),
        ),
        st.builds(Pattern, st.just(2), patterns),
        st.builds(Constant, st.booleans()),
    )


def flat(kind: type[And] | type[Or]) -> Callable[[list[Expression]], Expression]:
    """What the parser builds: a part of the same kind is replaced by its own parts."""

    def build(parts: list[Expression]) -> Expression:
        spliced: list[Expression] = []
        for part in parts:
            spliced.extend(part.parts if isinstance(part, kind) else [part])
        return kind(tuple(spliced))

    return build


def expressions() -> st.SearchStrategy[Expression]:
    def around(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        several = st.lists(inner, min_size=2, max_size=4)
        return st.one_of(st.builds(Not, inner), several.map(flat(And)), several.map(flat(Or)))

    return st.recursive(leaves(), around, max_leaves=10)


def filters() -> st.SearchStrategy[Filter]:
    return expressions().map(lambda expression: Filter(canonical(expression, SCHEMA), expression, SCHEMA))


def events() -> st.SearchStrategy[Event]:
    within: dict[str, st.SearchStrategy[Any]] = {
        "t": values.filter(lambda value: -3 <= value <= 3) | st.floats(-3, 3),
        "n": st.integers(-2, 3),
        "city": st.sampled_from(["oslo", "bergen", "a\\b", "it's", "50%"]),
        "PM2.5": values.filter(lambda value: 1e-3 <= value <= 1e3) | st.floats(1e-3, 1e3),
        "and": st.sampled_from([0, 1, 0.5, 5e-324]),
        "odd ` name": st.just(5),
    }
    missing = st.sampled_from([None, math.nan])
    return st.fixed_dictionaries({}, optional={name: value | missing for name, value in within.items()})


def disagreement(filter: Filter, event: Event, split: Callable[[Filter], tuple[Box, ...]]) -> str | None:
    """How boxes and definition differ on an event, or None."""
    containing = [box for box in split(filter) if box.contains(point(filter.schema, event))]
    if len(containing) != int(matches(filter, event)):
        return f"{filter}: matches is {matches(filter, event)}, but {len(containing)} boxes contain {event}"
    return None


@settings(max_examples=200)
@given(filters(), st.lists(events(), min_size=1, max_size=12))
def test_a_filter_matches_exactly_when_one_of_its_boxes_contains_the_event(
    filter: Filter, sample: list[Event]
) -> None:
    try:
        boxes(filter)
    except FilterError:
        assume(False)
    for event in sample:
        assert disagreement(filter, event, boxes) is None


@settings(max_examples=100)
@given(filters())
def test_boxes_are_disjoint_and_none_is_empty(filter: Filter) -> None:
    try:
        found = boxes(filter)
    except FilterError:
        assume(False)
    for at, box in enumerate(found):
        assert all(low < high for low, high in zip(box.lows, box.highs, strict=True))
        for other in found[:at]:
            sides = zip(box.lows, box.highs, other.lows, other.highs, strict=True)
            assert any(max(a, c) >= min(b, d) for a, b, c, d in sides)


@settings(max_examples=100)
@given(filters())
def test_every_interval_of_a_box_is_free_or_of_values_or_reaches_down_to_missing(filter: Filter) -> None:
    try:
        found = boxes(filter)
    except FilterError:
        assume(False)
    for box in found:
        for low, high, attribute in zip(box.lows, box.highs, SCHEMA.attributes, strict=True):
            free = low == -math.inf and high == math.inf
            assert free or high <= attribute.end
            assert low == -math.inf or attribute.start <= low
            if not isinstance(attribute, Number) or attribute.integer:
                assert all(bound == math.floor(bound) for bound in (low, high) if math.isfinite(bound))


def _closed_above(filter: Filter) -> tuple[Box, ...]:
    """Wrong on purpose: `<=` treated as `<`."""
    match filter.expression:
        case Comparison(attribute, "<=", value):
            return boxes(Filter("", Comparison(attribute, "<", value), filter.schema))
    return boxes(filter)


def _two_valued(_: Filter) -> tuple[Box, ...]:
    """Wrong on purpose: what is not below 1 is taken to be everything else, missing values included."""
    return (Box((1.0,) + (-math.inf,) * 5, (math.inf,) * 6), Box((-math.inf,) * 6, (-3.0,) + (math.inf,) * 5))


def _overlapping(filter: Filter) -> tuple[Box, ...]:
    """Wrong on purpose: the same boxes twice."""
    return boxes(filter) * 2


@pytest.mark.parametrize(
    ("text", "event", "wrong"),
    [
        ("t <= 1", {"t": 1.0}, _closed_above),
        ("NOT t < 1", {"n": 2}, _two_valued),
        ("t < 1", {"t": 0}, _overlapping),
    ],
)
def test_the_law_notices_boxes_that_are_wrong(
    text: str, event: Event, wrong: Callable[[Filter], tuple[Box, ...]]
) -> None:
    filter = parse(text, SCHEMA)
    assert disagreement(filter, event, boxes) is None
    assert disagreement(filter, event, wrong) is not None


@settings(max_examples=200)
@given(filters())
def test_parsing_the_canonical_text_gives_the_expression_again(filter: Filter) -> None:
    again = parse(str(filter), SCHEMA)
    assert again.expression == filter.expression
    assert str(again) == str(filter)


@settings(max_examples=200)
@given(st.text("%_\\ab", max_size=8), st.lists(st.text("ab%_\\", max_size=8), max_size=6))
def test_the_fast_pattern_matcher_equals_its_definition_and_a_naive_one(
    pattern: str, texts: list[str]
) -> None:
    for text in texts:
        assert matcher(pattern)(text) == matches_pattern(text, pattern) == _naive(text, pattern)


def _naive(text: str, pattern: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(_naive(text[skipped:], pattern[1:]) for skipped in range(len(text) + 1))
    if pattern[0] == "\\" and pattern[1:2] in ("%", "_", "\\"):
        return text[:1] == pattern[1] and _naive(text[1:], pattern[2:])
    return bool(text) and pattern[0] in ("_", text[0]) and _naive(text[1:], pattern[1:])


def test_a_tautology_over_one_attribute_still_needs_its_value() -> None:
    (box,) = boxes(parse("t < 1 OR t >= 1", SCHEMA))
    assert (box.lows[0], box.highs[0]) == (SCHEMA.starts[0], SCHEMA.ends[0])
    assert not matches(parse("t < 1 OR t >= 1", SCHEMA), {"n": 1})


def test_leaves_on_one_attribute_become_few_intervals() -> None:
    assert len(boxes(parse("n = 1 OR n = 2 OR n = 3 OR n > 1.5", SCHEMA))) == 1
    assert len(boxes(parse("city IN ('oslo', 'bergen')", SCHEMA))) == 1
    assert len(boxes(parse("city NOT IN ('bergen') AND n != 0", SCHEMA))) == 4
    assert boxes(parse("city = 'rome'", SCHEMA)) == ()


def test_bounds_hold_the_boxes_in_order() -> None:
    found = boxes(parse("t < 1 OR n > 2", SCHEMA))
    array = bounds(found, SCHEMA)
    assert array.shape == (len(found), 6, 2)
    for row, box in zip(array, found, strict=True):
        assert tuple(row[:, 0]) == box.lows
        assert tuple(row[:, 1]) == box.highs
    assert bounds((), SCHEMA).shape == (0, 6, 2)


def test_a_filter_of_too_many_boxes_is_refused_and_one_at_the_limit_is_not() -> None:
    wide = Schema(tuple(Number(f"x{at}", 0, 9) for at in range(11)))
    avoided = [f"x{at} != 5" for at in range(11)]
    assert len(boxes(parse(" AND ".join(avoided[:10]), wide))) == MAX_BOXES
    with pytest.raises(FilterError, match=r"more than 1,024 boxes; split it"):
        boxes(parse(" AND ".join(avoided), wide))


def test_a_condition_on_whole_numbers_holds_for_those_that_it_holds_for() -> None:
    """Every literal on, between and next to the numbers, so that no rounding is left to chance."""
    numbers = range(-2, 4)
    schema = Schema((Number("n", numbers[0], numbers[-1], integer=True),))
    literals = [k / 2 for k in range(-7, 10)]
    literals += [math.nextafter(float(n), way) for n in numbers for way in (-9.0, 9.0)]
    orders: tuple[Operator, ...] = ("=", "!=", "<", "<=", ">", ">=")
    leaves: list[Expression] = [Comparison(0, order, value) for order in orders for value in literals]
    leaves += [Between(0, low, high) for low in literals for high in literals]
    leaves += [Membership(0, (one, other)) for one in literals for other in literals]
    for leaf in (*leaves, *map(Not, leaves)):
        filter = Filter("", leaf, schema)
        found = boxes(filter)
        for n in numbers:
            assert sum(box.contains((n,)) for box in found) == matches(filter, {"n": n}), (leaf, n)
