"""What a request may say, what it is told when it says something else, and workloads with next to nothing in them."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from plerion.content.errors import InputError
from plerion.content.schema import Enumeration, Number, Schema
from plerion.index.cover import covers
from plerion.index.encode import encode
from plerion.learning.boundary import boundary
from plerion.learning.propose import (
    METHODS,
    Request,
    Trial,
    combinations,
    histograms,
    is_better,
    propose,
    summaries,
)
from plerion.learning.selection import SelectionError
from plerion.learning.summaries import workload_axes, workload_histogram
from plerion.learning.workload import Floats, Workload
from plerion.matching.bitset import BitsetMatcher, match_counts
from plerion.matching.evaluate import evaluate

SCHEMA = Schema(
    (
        Number("temperature", 0, 63, integer=True),
        Number("humidity", 0.0, 1.0),
        Enumeration("city", ("oslo", "rome", "lima")),
    )
)
EVERYTHING = [[-inf, inf]] * 3


def crowd(events: int = 40, subscriptions: int = 12) -> Workload:
    """Subscriptions to four degrees of temperature and half of the humidity."""
    random = np.random.default_rng(1)
    points = np.stack(
        (
            random.integers(0, 64, events).astype(np.float64),
            random.random(events),
            random.integers(0, 3, events).astype(np.float64),
        ),
        axis=-1,
    )
    low = random.integers(0, 60, subscriptions).astype(np.float64)
    boxes = np.tile(np.array(EVERYTHING), (subscriptions, 1, 1))
    boxes[:, 0] = np.stack((low, low + 4), axis=-1)
    boxes[:, 1] = (0.0, 0.5)
    return Workload.of_boxes(SCHEMA, points, boxes)


def boxed(points: Floats, *boxes: list[list[float]]) -> Workload:
    return Workload.of_boxes(SCHEMA, points, np.array(boxes, np.float64).reshape(-1, 3, 2))


def asked(load: Workload, request: Request) -> Trial:
    """The winning trial; its index misses nothing."""
    found = propose(load, summaries(load), request)
    matcher = BitsetMatcher.of(load.offsets, load.bounds)
    cells = covers(found.index, load.offsets, load.bounds, request.budget)
    whole = evaluate(load.points, encode(found.index, load.points), matcher, cells, load.hosts)
    assert whole.false_negatives == 0
    assert found.tried
    return found.won


SEEN = crowd()
SIDE: list[list[float]] = [[3.0, 9.0], [0.0, 0.5], [-inf, inf]]
CONSTANT = SEEN.points * [0, 1, 1] + [7, 0, 0]
DEGENERATE = {
    "no events": crowd(events=0),
    "one event": crowd(events=1),
    "two events": crowd(events=2),
    "no subscriptions": crowd(subscriptions=0),
    "nothing at all": crowd(events=0, subscriptions=0),
    "one subscription": crowd(subscriptions=1),
    "identical subscriptions": boxed(SEEN.points, SIDE, SIDE, SIDE),
    "subscriptions to everything": boxed(SEEN.points, EVERYTHING, EVERYTHING),
    "subscriptions that no event matches": boxed(CONSTANT, [[60.0, 64.0], [0.0, 0.5], [-inf, inf]]),
    "subscriptions that can match nothing": Workload(
        SCHEMA, SEEN.points, np.zeros(4, np.int64), np.empty((0, 3, 2)), np.arange(3)
    ),
    "a constant attribute": SEEN.with_points(CONSTANT),
    "equal events": SEEN.with_points(np.repeat(SEEN.points[:1], 9, axis=0)),
    "events without values": SEEN.with_points(np.full((9, 3), -inf)),
    "one attribute": Workload.of_boxes(
        Schema(SCHEMA.attributes[:1]), SEEN.points[:, :1].copy(), SEEN.bounds[:, :1].copy()
    ),
    "one value": Workload.of_boxes(
        Schema((Number("x", 5, 5, integer=True),)), np.full((4, 1), 5.0), np.array([[[5.0, 6.0]]])
    ),
}


@pytest.mark.parametrize("workload", DEGENERATE)
@pytest.mark.parametrize("method", [method for method in METHODS if method != "best"])
def test_a_workload_with_next_to_nothing_in_it_gets_an_index(method: str, workload: str) -> None:
    for select in ("none", "evs", "emcs", "cs", "pca", "greedy"):
        won = asked(DEGENERATE[workload], Request(bits=6, budget=8, method=method, select=select))
        assert 0.0 <= won.rate <= 1.0


def test_a_subscription_that_no_event_matches_is_sent_none() -> None:
    load = DEGENERATE["subscriptions that no event matches"]
    assert asked(load, Request(bits=6, budget=8)).rate == 0.0


@pytest.mark.parametrize(
    ("request_", "line"),
    [
        ({"method": "bondary"}, "--method 'bondary' is none; did you mean 'boundary'?"),
        (
            {"method": "x"},
            "--method 'x' is none; there are 'regular', 'adaptive', 'selective', 'boundary', 'best'",
        ),
        ({"bits": 113}, "--bits 113 is out of bounds; give a number from 0 to 112"),
        ({"bits": -1}, "--bits -1 is out of bounds; give a number from 0 to 112"),
        ({"budget": 0}, "--budget 0 is out of bounds; give a number from 1 to 65536"),
        ({"clusters": 0}, "--clusters 0 is out of bounds; give a number from 1 to 256"),
        ({"clusters": 257}, "--clusters 257 is out of bounds; give a number from 1 to 256"),
        ({"dimensions": 0}, "--dimensions 0 is out of bounds; give a number from 1 to 1024"),
    ],
)
def test_a_request_out_of_bounds_is_refused_in_one_line(request_: dict[str, object], line: str) -> None:
    with pytest.raises(InputError) as refused:
        Request(**request_)  # type: ignore[arg-type]  # one of each kind
    assert str(refused.value) == line


KINDS = "none, evs, emcs, cs, pca, greedy, brute"


@pytest.mark.parametrize(
    ("select", "line"),
    [
        ("greddy", f"--select 'greddy' is neither an attribute nor one of {KINDS}; did you mean 'greedy'?"),
        (
            "humidty",
            f"--select 'humidty' is neither an attribute nor one of {KINDS}; did you mean 'humidity'?",
        ),
        (
            "city,wind",
            f"--select 'wind' is neither an attribute nor one of {KINDS}; there are 'temperature', ",
        ),
        ("", f"--select '' is neither an attribute nor one of {KINDS}; there are 'temperature', "),
        ("city,\n", f"--select '' is neither an attribute nor one of {KINDS}; there are "),
        ("a\x1b[2J", f"--select 'a·[2J' is neither an attribute nor one of {KINDS}; there are "),
    ],
)
def test_an_unknown_selection_is_refused_in_one_line(select: str, line: str) -> None:
    with pytest.raises(InputError) as refused:
        asked(SEEN, Request(select=select))
    assert str(refused.value).startswith(line)
    assert "\n" not in str(refused.value)


def test_brute_force_over_many_attributes_is_refused() -> None:
    schema = Schema(tuple(Number(f"x{i}", 0, 1) for i in range(17)))
    load = Workload.of_boxes(schema, np.zeros((2, 17)), np.tile([0.0, 1.0], (1, 17, 1)))
    with pytest.raises(SelectionError, match="use greedy"):
        asked(load, Request(bits=2, method="regular", select="brute"))


@pytest.mark.parametrize("method", ["regular", "adaptive", "selective", "boundary"])
def test_bits_are_spent_on_the_attributes_that_are_named(method: str) -> None:
    request = Request(bits=6, method=method, select=" city , humidity,city", clusters=4)
    found = propose(SEEN, summaries(SEEN), request)
    assert found.won.attributes == (2, 1)
    assert {a for cluster in found.index.clusters for a in cluster.order} <= {1, 2}
    assert asked(SEEN, replace(request, dimensions=1)).attributes == (2,)


def test_an_attribute_may_be_called_like_a_selection() -> None:
    schema = Schema((Number("x", 0, 63, integer=True), Number("greedy", 0, 63, integer=True)))
    load = Workload.of_boxes(schema, SEEN.points[:, [0, 0]].copy(), SEEN.bounds[:, [0, 0]].copy())
    assert asked(load, Request(bits=4, method="regular", select="greedy")).attributes == (1,)


@pytest.mark.parametrize("select", ["none", "evs", "emcs", "cs", "pca", "greedy", "brute"])
@pytest.mark.parametrize("dimensions", [1, 2, 3, 9])
def test_as_many_dimensions_are_kept_as_asked_for(select: str, dimensions: int) -> None:
    request = Request(bits=6, budget=8, method="regular", select=select, dimensions=dimensions)
    found = propose(SEEN, summaries(SEEN), request)
    assert len(found.won.attributes) == min(dimensions, 3)
    if select in ("greedy", "brute") and found.selection is not None:
        tried = [step for step in found.selection.trail if len(step.attributes) == len(found.won.attributes)]
        assert found.won.rate == min(step.rate for step in tried)


def test_selections_prefer_the_attribute_that_tells_events_apart() -> None:
    for select in ("emcs", "cs", "greedy", "brute"):
        request = Request(bits=4, budget=8, method="regular", select=select, dimensions=1)
        assert asked(SEEN, request).attributes == (0,)


def test_the_number_of_attributes_is_the_one_that_filters_best() -> None:
    for select in ("evs", "emcs", "cs"):
        request = Request(bits=5, budget=8, method="regular", select=select)
        found = propose(SEEN, summaries(SEEN), request)
        assert found.selection is not None
        assert found.won.rate == min(step.rate for step in found.selection.trail)
        assert len(found.selection.trail) == 3


FEW = crowd(events=12, subscriptions=4)


def test_best_tries_every_combination_once_and_returns_the_least_rate() -> None:
    found = propose(FEW, summaries(FEW), Request(bits=4, budget=4, method="best", clusters=2))
    kinds = list(combinations())
    assert len(kinds) == len(set(kinds)) == 24
    assert [(trial.method, trial.select) for trial in found.tried] == kinds
    assert found.won.rate == min(trial.rate for trial in found.tried)
    assert found.won == next(trial for trial in found.tried if trial.rate == found.won.rate)
    assert (found.selection is None) == (found.won.select == "none")


@pytest.mark.parametrize("left", [0, 1, 3])
def test_best_stops_when_no_seconds_are_left_but_not_before_one_combination(left: int) -> None:
    clock: Iterator[float] = iter([*range(left, 0, -1), 0.0])
    request = Request(bits=4, budget=4, method="best", clusters=2)
    found = propose(FEW, summaries(FEW), request, seconds_left=clock.__next__)
    assert [(t.method, t.select) for t in found.tried] == list(combinations())[: left + 1]


def test_one_method_is_tried_whatever_the_clock_says() -> None:
    found = propose(FEW, summaries(FEW), Request(bits=4, method="regular"), seconds_left=lambda: -1.0)
    assert len(found.tried) == 1


def test_a_pool_gives_the_proposal_that_one_thread_gives() -> None:
    request = Request(bits=6, budget=8, method="boundary", select="greedy")
    alone = propose(FEW, summaries(FEW), request)
    with ThreadPoolExecutor(2) as pool:
        together = propose(FEW, summaries(FEW), request, over=pool.map)
    assert (together.index, together.tried) == (alone.index, alone.tried)


def test_the_winner_is_made_from_all_events_that_may_choose() -> None:
    found = propose(SEEN, summaries(SEEN), Request(bits=6, method="boundary", clusters=3))
    assert found.index == boundary(SEEN, 6, (0, 1, 2), 3)
    assert found.index != boundary(SEEN.halves()[0], 6, (0, 1, 2), 3)


def test_binned_workloads_stand_for_the_exact_ones() -> None:
    counts = match_counts(SEEN.bounds, SEEN.points)
    bins = workload_histogram(SEEN.points, counts, workload_axes(SCHEMA))
    binned, exact = histograms(SCHEMA, bins), summaries(SEEN).histograms
    for (places, mass), (_, weight) in zip(binned, exact, strict=True):
        assert len(places) == len(mass)
        assert mass.sum() == weight.sum()
    known = replace(summaries(SEEN), histograms=binned)
    request = Request(bits=6, budget=8, method="adaptive", clusters=1)
    rate = propose(SEEN, known, request).won.rate
    assert abs(rate - propose(SEEN, summaries(SEEN), request).won.rate) < 0.2


def test_a_new_index_is_better_only_by_the_margin() -> None:
    assert is_better(0.1, 0.2, 0.02)
    assert not is_better(0.2, 0.2, 0.0)
    assert not is_better(0.197, 0.2, 0.02)
    assert is_better(0.195, 0.2, 0.02)
    assert not is_better(0.0, 0.0, 0.02)
    assert not is_better(0.3, 0.2, 0.02)
