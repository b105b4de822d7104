"""The figures on updates: workloads that drift, stories told by time, and verdicts that can go either way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from plerion.experiments import closed_loop, update_index
from plerion.experiments.closed_loop import CARELESS, LOOP, MISSED, WASTED
from plerion.experiments.drift import Drift, shared_out
from plerion.experiments.figure import Point, Row
from plerion.experiments.figures import FIGURES
from plerion.experiments.torus_site import OPTIONS, SHAPES, Site, learned
from plerion.experiments.update_index import (
    AT_REST,
    CUSTOM,
    EPOCH,
    IP,
    MEAN,
    RATED,
    UNRATED,
    VERSIONING,
    WORST,
)
from plerion.experiments.update_room import LIGHT, REST
from plerion.experiments.update_story import AFTER, BEFORE, BrokenPromise, over_time, story
from plerion.experiments.update_tree import CUSTOMISED, LINES
from plerion.simnet.fault import WRONG
from plerion.simnet.traffic import Sample
from plerion.update.plan import Plan
from plerion.update.strategies import STRATEGIES

TREES = LINES[0]
INTERVAL = 0.002


def test_events_drift_and_interests_stay() -> None:
    drift = Drift.drawn(subscriptions=7, events=400, hosts=3, seed=1)
    assert drift.before.bounds is drift.after.bounds
    assert np.bincount(drift.before.hosts).tolist() == [3, 2, 2]
    assert not np.array_equal(drift.before.points, drift.after.points)
    again = Drift.drawn(subscriptions=7, events=400, hosts=3, seed=1)
    assert np.array_equal(drift.after.points, again.after.points)


@pytest.mark.parametrize("publishers", [1, 5, 8])
def test_territories_share_out_all_events_evenly_and_do_not_meet(publishers: int) -> None:
    load = Drift.drawn(4, 400, 2, seed=3).before
    territory = shared_out(load, publishers)
    low, high = territory.boxes[..., 0], territory.boxes[..., 1]
    inside = np.asarray(((low <= load.points[:, None]) & (load.points[:, None] < high)).all(axis=2))
    assert inside.any(axis=0).all()
    assert (inside.sum(axis=1) == 1).all()
    assert np.array_equal(inside.argmax(axis=1), territory.sender)
    sizes = np.bincount(territory.sender, minlength=publishers)
    assert sizes.max() <= 2.5 * sizes.min()


@pytest.fixture(scope="module")
def site() -> Site:
    return Site.drawn(8, seed=1, events=400, budget=16)


@pytest.fixture(scope="module")
def change(site: Site) -> tuple[Plan, list[Sample]]:
    old, new = (learned(load, site.budget, "regular", "cs") for load in (site.drift.before, site.drift.after))
    plan = STRATEGIES["epoch"].make(site.state(old), site.state(new), site.topology, OPTIONS)
    return plan, site.samples(old, new)


def test_half_of_the_hosts_publish_what_they_advertised_and_the_others_want_it(
    site: Site, change: tuple[Plan, list[Sample]]
) -> None:
    plan, samples = change
    assert sorted((*site.publishers, *site.subscribers)) == sorted(site.topology.hosts)
    assert len(site.publishers) == len(site.subscribers) == 4
    assert set(site.hosts()) == set(site.subscribers)
    assert {sample.publisher for sample in samples} == set(site.publishers)
    for sample in samples:
        assert sample.wanted <= set(site.subscribers)
        assert sample.old is not None
        assert sample.new is not None
        assert plan.old.sent[sample.publisher].covers(sample.old)
        assert plan.new.sent[sample.publisher].covers(sample.new)
    assert site.topology.attachment(site.publishers[0]).node == site.root != site.far


def test_a_story_tells_what_was_held_and_what_became_of_each_event(
    change: tuple[Plan, list[Sample]],
) -> None:
    plan, samples = change
    told = story(plan, samples, 1, INTERVAL)
    old, new = len(plan.old.tables), len(plan.new.tables)
    assert told.most_held(-1.0, -0.001) == told.most_held(-0.001, -0.0005) == old
    assert told.most_held(-1.0, 1.0) == old + new
    assert told.most_held(0.9, 1.0) == new
    every = told.between(-1.0, 1.0)
    assert every.all()
    assert told.missed(every) == 0
    assert (told.packets[told.delivered > 0] > told.delivered[told.delivered > 0]).all()
    assert told.waste(every) == pytest.approx(1 - (told.wanted.sum() / told.delivered.sum()))
    assert told.packets_each(told.between(2.0, 3.0)) == 0
    dots = list(over_time(told, INTERVAL, lambda first, last: float(told.between(first, last).sum())))
    assert len(dots) == BEFORE + AFTER
    assert dots[0][0] == 1e3 * INTERVAL * (0.5 - BEFORE)
    assert sum(y for _, y in dots) <= len(told.at)


def test_a_strategy_that_does_not_keep_its_word_makes_no_figure(
    change: tuple[Plan, list[Sample]],
) -> None:
    plan, samples = change
    with pytest.raises(BrokenPromise, match=r"epoch, seed 1: .*lost"):
        story(WRONG["all at once"](plan), samples, 1, INTERVAL)


def test_a_rate_of_a_switch_is_what_its_counters_say(change: tuple[Plan, list[Sample]]) -> None:
    plan, samples = change
    sent = update_index.rates(plan.old, samples, "transmission-rate")
    dropped = update_index.rates(plan.old, samples, "filter-rate")
    assert sent.keys() == dropped.keys() == set(plan.old.tables.fabric.topology.switches)
    assert max(sent.values()) > len(samples) / 8
    assert all(0 <= share <= 1 for share in dropped.values())
    assert max(dropped.values()) > 0


@pytest.mark.slow
def test_the_same_point_gives_the_same_rows() -> None:
    point = Point("004-14c", WASTED, LOOP, scale=0.1)
    found = closed_loop.rows(point)
    closed_loop._loop.cache_clear()
    assert found == closed_loop.rows(point)
    assert {row.y for row in closed_loop.rows(Point("004-14c", MISSED, LOOP, scale=0.1))} == {0.0}
    assert max(row.y for row in closed_loop.rows(Point("004-14c", MISSED, CARELESS, scale=0.1))) > 0


def timed(panel: str, ys: Mapping[str, Sequence[float]], step: float = 10.0) -> list[Row]:
    """The first dot lies before the update, the others after its beginning."""
    return [Row(panel, line, (x - 0.5) * step, y) for line, dots in ys.items() for x, y in enumerate(dots)]


def sized(panels: Sequence[str], ys: Mapping[str, Sequence[float]]) -> list[Row]:
    return [
        Row(panel, line, x, y)
        for panel in panels
        for line, dots in ys.items()
        for x, y in zip(SHAPES, dots, strict=True)
    ]


def flat(line: str, y: float) -> dict[str, tuple[float, ...]]:
    return {line: (y, y, y, y)}


def looped(rates: Sequence[float], missed: float) -> list[Row]:
    """Rates before the drift, after it, meanwhile and in the end."""
    xs = (50.0, 200.0, 370.0, 490.0)
    return [
        row
        for line in closed_loop.LOOPS
        for x, y in zip(xs, rates, strict=True)
        for row in (Row(WASTED, line, x, y), Row(MISSED, line, x, missed))
    ]


LARGE = "64 switches"
CASES = {
    "004-10": (
        sized([""], flat(REST, 100) | flat(VERSIONING, 190) | flat(LIGHT, 120) | flat(EPOCH, 190)),
        sized([""], flat(REST, 1000) | flat(VERSIONING, 1100) | flat(LIGHT, 1900) | flat(EPOCH, 1900)),
    ),
    "004-14c": (looped((0.1, 0.6, 0.9, 0.1), 0.0), looped((0.6, 0.1, 0.1, 0.1), 0.1)),
    "001-6.3": (
        timed(LARGE, {VERSIONING: (9, 19, 10), IP: (9, 10, 10), CUSTOM: (9, 10, 10), EPOCH: (9, 19, 10)}),
        timed(LARGE, {VERSIONING: (9, 11, 10), IP: (9, 19, 10), CUSTOM: (9, 19, 10), EPOCH: (9, 19, 10)}),
    ),
    "001-6.4": (
        sized((MEAN, WORST), flat(AT_REST, 2) | flat(IP, 9) | flat(CUSTOM, 5) | flat(EPOCH, 2)),
        sized((MEAN, WORST), flat(AT_REST, 2) | flat(IP, 5) | flat(CUSTOM, 5) | flat(EPOCH, 2)),
    ),
    "001-6.6": (
        timed(
            LARGE,
            dict.fromkeys(RATED, (5, 20, 5)) | dict.fromkeys(UNRATED, (5, 30, 9)) | {EPOCH: (5, 5)},
        ),
        timed(
            LARGE,
            dict.fromkeys(RATED, (5, 30, 9)) | dict.fromkeys(UNRATED, (5, 20, 5)) | {EPOCH: (5, 5)},
        ),
    ),
    "001-6.7": (
        timed(LARGE, {CUSTOM: (0.5, 0.8, 0.1), IP: (0.5, 0.9, 0.1), EPOCH: (0.5, 0.5, 0.1)}),
        timed(LARGE, {CUSTOM: (0.5, 0.5, 0.5), IP: (0.5, 0.5, 0.5), EPOCH: (0.5, 0.5, 0.1)}),
    ),
    "001-6.5": (
        sized([""], flat(TREES, 90) | flat(CUSTOMISED, 20) | flat(EPOCH, 50)),
        sized([""], flat(TREES, 20) | flat(CUSTOMISED, 90) | flat(EPOCH, 50)),
    ),
    "001-6.8": (
        timed(LARGE, {TREES: (0.1, 0.1), CUSTOMISED: (0.1, 0.19), EPOCH: (0.1, 0.1)}),
        timed(LARGE, {TREES: (0.1, 0.3), CUSTOMISED: (0.1, 0.3, 0.0, 0.0), EPOCH: (0.1, 0.1)}),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_verdict_can_go_either_way(name: str) -> None:
    good, bad = CASES[name]
    verdict = FIGURES[name].verdict
    assert verdict(good).holds == "holds", verdict(good)
    assert verdict(bad).holds == "does not hold", verdict(bad)
    assert verdict(good).because != verdict(bad).because


def test_figures_on_updates_are_played_here_and_need_neither_spark_nor_switches() -> None:
    assert all(FIGURES[name].emulated and FIGURES[name].here and not FIGURES[name].lab for name in CASES)
