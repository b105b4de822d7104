"""A stream that stays as it is raises hardly an alarm, whatever its windows hold; one that changes does, and soon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plerion.content.schema import MISSING, Enumeration, Number, Schema
from plerion.index.cuts import equal_cuts, useful_bits
from plerion.learning.drift import (
    BIN_BITS,
    BINS,
    REFERENCE_WINDOWS,
    Comparison,
    Figures,
    Finding,
    bins,
    unexplained,
)
from tests.laws.indexes import Floats, law, points, schemas

SCHEMA = Schema(
    (
        Number("x", 0.0, 100.0),
        Number("price", 1, 1000, scale="log"),
        Enumeration("city", ("oslo", "rome", "bonn", "lima")),
    )
)
LIMIT = 0.2
WINDOWS = 300
Draw = Callable[[np.random.Generator, int], Floats]


def around(centre: float) -> Draw:
    """Events whose x is near a centre; the rest is as it always is."""

    def draw(random: np.random.Generator, events: int) -> Floats:
        x = np.clip(random.normal(centre, 8.0, events), 0, 100)
        price, city = np.exp(random.uniform(0, np.log(1000), events)), random.integers(0, 4, events)
        return np.stack((x, price, city.astype(np.float64)), axis=1)

    return draw


def figures(
    found: Floats, deliveries: Floats, false_positives: Floats, weight: float = 1.0, schema: Schema = SCHEMA
) -> Figures:
    """What a window of these events says, each with its deliveries, by the definition."""
    numbers = bins(schema, found)
    histogram = np.stack([np.bincount(column, minlength=BINS) for column in numbers.T]).astype(np.float64)
    each = deliveries * weight
    count = len(found)
    return Figures(
        count * weight,
        count * weight**2,
        histogram * weight,
        float(each.sum()),
        float((false_positives * weight).sum()),
        float((each**2).sum()),
    )


def window(
    random: np.random.Generator, events: int, draw: Draw, rate: float, fan: int = 1, weight: float = 1.0
) -> Figures:
    """Every event is delivered `fan` times, and all of its deliveries are right or wrong together."""
    wrong = (random.random(events) < rate).astype(np.float64)
    return figures(draw(random, events), np.full(events, float(fan)), wrong * fan, weight)


def findings(stream: Iterator[Figures], limit: float = LIMIT) -> list[Finding]:
    comparison, found = Comparison(), []
    for one in stream:
        comparison, finding = comparison.step(one, limit)
        found.append(finding)
    return found


def alarms(found: list[Finding]) -> list[int]:
    return [at for at, finding in enumerate(found) if finding.changed]


@law
@given(schemas().flatmap(lambda s: st.tuples(st.just(s), points(s))))
def test_an_event_lies_in_the_bin_of_its_cell_and_a_missing_value_in_its_own(
    given: tuple[Schema, Floats],
) -> None:
    schema, found = given
    for row, numbers in zip(found, bins(schema, found), strict=True):
        for attribute, position, number in zip(schema.attributes, row, numbers, strict=True):
            cuts = equal_cuts(attribute, min(BIN_BITS, useful_bits(attribute)))
            assert number == (BINS - 1 if position == MISSING else cuts.cell(position))


def test_figures_of_two_windows_add_up_to_those_of_both() -> None:
    random = np.random.default_rng(1)
    one, other = around(20)(random, 40), around(60)(random, 70)
    parts = [(part, random.integers(0, 5, len(part)).astype(np.float64)) for part in (one, other)]
    total = figures(*parts[0], parts[0][1] / 2) + figures(*parts[1], parts[1][1] / 2)
    both = np.concatenate([counts for _, counts in parts])
    whole = figures(np.concatenate((one, other)), both, both / 2)
    assert (total.histogram == whole.histogram).all()
    assert total.size == pytest.approx(whole.size)
    assert total.rate == pytest.approx(whole.rate)
    assert total.rate_error == pytest.approx(whole.rate_error)


@pytest.mark.parametrize("events", [30, 300, 5_000])
@pytest.mark.parametrize("fan", [1, 50])
def test_a_stream_that_stays_as_it_is_raises_no_alarm(events: int, fan: int) -> None:
    random = np.random.default_rng(events + fan)
    stream = (window(random, events, around(40), 0.3, fan) for _ in range(WINDOWS))
    assert len(alarms(findings(stream))) <= 1


def test_without_regard_to_chance_it_would() -> None:
    random = np.random.default_rng(3)
    one, other = (window(random, 30, around(40), 0.3) for _ in range(2))
    apart = np.abs(one.histogram / one.events - other.histogram / other.events).sum(axis=1) / 2
    assert (apart > LIMIT).any()
    assert not unexplained(one, other).any()
    alarmed = 0
    for _ in range(10):
        stream = (window(random, 50, around(40), 0.3, fan=50) for _ in range(50))
        alarmed += bool(alarms(findings(replace(one, delivery_squares=0.0) for one in stream)))
    assert alarmed > 5


@pytest.mark.parametrize("events", [200, 5_000])
def test_other_values_are_told_at_once_with_their_attribute(events: int) -> None:
    random = np.random.default_rng(events)
    stream = (window(random, events, around(40 if at < 20 else 70), 0.3) for at in range(60))
    found = findings(stream)
    assert alarms(found) == [20], "once, in the first window after the change"
    assert found[20].attribute == 0
    assert found[20].drift > LIMIT
    assert found[20].changed.startswith("drift")


@pytest.mark.parametrize(("rise", "windows"), [(0.3, 1), (0.1, 3), (0.05, 8)])
def test_a_rate_that_rises_is_told_within_a_few_windows(rise: float, windows: int) -> None:
    for seed in range(5):
        random = np.random.default_rng(seed)
        stream = (window(random, 10_000, around(40), 0.2 + rise * (at >= 20)) for at in range(60))
        told = alarms(findings(stream))
        assert len(told) == 1
        assert 20 <= told[0] < 20 + windows


def test_a_rate_that_falls_or_hardly_rises_is_no_reason_for_a_new_index() -> None:
    for later in (0.05, 0.205, 0.215):
        random = np.random.default_rng(7)
        stream = (window(random, 20_000, around(40), 0.2 if at < 20 else later) for at in range(200))
        assert alarms(findings(stream)) == []


@pytest.mark.parametrize("weight", [1.0, 10.0, 1000.0])
def test_a_sample_says_as_much_as_its_events_not_as_those_it_stands_for(weight: float) -> None:
    random = np.random.default_rng(11)
    quiet = findings(window(random, 100, around(40), 0.3, weight=weight) for _ in range(WINDOWS))
    assert alarms(quiet) == []
    changed = (window(random, 400, around(40 if at < 9 else 80), 0.3, weight=weight) for at in range(20))
    assert alarms(findings(changed)) == [9]


def test_a_window_of_few_events_says_nothing_and_the_first_ones_are_the_reference() -> None:
    random = np.random.default_rng(13)
    comparison = Comparison()
    for _ in range(5):
        comparison, finding = comparison.step(window(random, 5, around(99), 1.0), LIMIT)
        assert finding == Finding()
    assert comparison.windows == 0
    for _ in range(REFERENCE_WINDOWS):
        assert comparison.learning
        comparison, _ = comparison.step(window(random, 100, around(40), 0.1), LIMIT)
    assert not comparison.learning
    nobody = replace(window(random, 100, around(40), 0.0), deliveries=0.0, delivery_squares=0.0)
    assert not comparison.step(nobody, LIMIT)[1].changed, "no deliveries are no rate"
