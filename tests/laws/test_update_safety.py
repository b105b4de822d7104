"""What strategies promise holds on random networks, workloads and delays; and a strategy that is wrong is found out."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from plerion.simnet.check import Report, check
from plerion.simnet.fault import WRONG, exchanged
from plerion.simnet.scene import Scene, scene
from plerion.simnet.traffic import Conditions
from plerion.simnet.trial import conditions, known, options, planned, trial
from plerion.update.paths import arrivals, paths
from plerion.update.plan import Plan, extra, peaks, same
from plerion.update.state import NotApplicable, Options, Stamp
from plerion.update.strategies import MOVES, STRATEGIES

SEEDS = 500
SAFE = [name for name, one in {**STRATEGIES, **MOVES}.items() if one.promise.safe]
QUICK = Conditions(install_seconds=0.0002, confirm_seconds=0.0001, notice_seconds=0.0002, gap_seconds=0.0002)
SLOW = replace(QUICK, slowest=True)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", SAFE)
def test_no_event_is_lost_or_doubled(strategy: str) -> None:
    total, refused = Report(), 0
    for seed in range(SEEDS):
        found = trial(seed, strategy)
        if found.plan is None:
            refused += 1
            continue
        assert found.report.keeps(known(strategy).promise), (seed, found.report.examples)
        total.add(found.report)
    assert total.runs == SEEDS - refused
    assert refused < SEEDS / 2
    assert total.deliveries > 50 * total.runs


@pytest.mark.parametrize("strategy", [name for name, one in STRATEGIES.items() if one.promise.safe])
def test_events_that_are_tagged_already_are_not_lost_either(strategy: str) -> None:
    """After `versioning` every event carries a tag, which no host may see."""
    total = Report()
    for seed in range(60):
        found = scene(seed, "index")
        tagged = found.old.stamped(Stamp(found.old.stamp.epoch, 1 + seed, lifted=seed % 2 == 0))
        try:
            plan = known(strategy).make(tagged, found.new, found.topology, options(seed))
        except NotApplicable:
            continue
        report = check(plan, found.samples, [seed], conditions(seed))
        assert report.keeps(known(strategy).promise), (seed, report.examples)
        total.add(report)
    assert total.runs > 30


def test_an_ordered_update_that_makes_first_loses_nothing_and_doubles_where_trees_move() -> None:
    total = Report()
    for seed in range(60):
        total.add(trial(seed, "ordered").report)
    assert total.lost == 0
    assert total.doubled > 0
    still = Report()
    for seed in range(0, 60, 4):
        still.add(trial(seed, "ordered", "index").report)
    assert still.lost == 0


def test_direct_is_caught_losing() -> None:
    total = Report()
    for seed in range(30):
        total.add(trial(seed, "direct").report)
    assert total.lost > 0
    assert "seed" in total.examples[0]


@pytest.mark.parametrize("strategy", [*STRATEGIES, *MOVES])
def test_a_plan_ends_in_the_new_state(strategy: str) -> None:
    for seed in range(25):
        try:
            _, _, plan = planned(seed, strategy)
        except NotApplicable:
            continue
        assert same(plan.outcome(), plan.after()), seed


@pytest.mark.parametrize("strategy", ["epoch", "versioning"])
def test_two_states_side_by_side_are_at_most_twice_the_entries(strategy: str) -> None:
    """With the entry that keeps tagged events from untagged ones, where tags are new."""
    for seed in range(200):
        _, _, plan = planned(seed, strategy)
        old, new = (np.diff(state.tables.first) for state in (plan.old, plan.new))
        guard = (old > 0) * (strategy == "versioning")
        assert (extra(plan) <= np.minimum(old, new) + guard).all()
        assert (peaks(plan) <= 2 * np.maximum(old, new) + guard).all()


def test_versioning_needs_no_more_than_twice_the_entries_once_events_are_tagged() -> None:
    for seed in range(40):
        found = scene(seed)
        tagged = found.old.stamped(Stamp(found.old.stamp.epoch, 4094))
        plan = known("versioning").make(tagged, found.new, found.topology, Options())
        assert plan.new.stamp.vlan == 1
        assert (peaks(plan) <= 2 * np.maximum(*(np.diff(s.tables.first) for s in (plan.old, plan.new)))).all()
        assert check(plan, found.samples, [seed]).keeps(known("versioning").promise), seed


def test_the_light_weight_approach_needs_at_most_an_entry_an_in_port() -> None:
    """An in-port is one that events come in by, in the old state or in the new one; and for each region anew."""
    single = several = 0
    for seed in range(120):
        try:
            _, _, plan = planned(seed, "custom-multicast")
        except NotApplicable:
            continue
        cells = set(plan.rounds[0].changes.added.dz)
        ways = [paths(state) for state in (plan.old, plan.new)]
        came = arrivals(ways[0]) | arrivals(ways[1])
        switches = len(plan.old.tables.first) - 1
        in_ports = np.bincount(ways[0].fabric.switch_of[came], minlength=switches)
        assert (extra(plan) <= in_ports * len(cells)).all(), seed
        single, several = single + (len(cells) == 1), several + (len(cells) > 1)
    assert single > 60
    assert several > 3


@pytest.mark.parametrize("strategy", [*STRATEGIES, *MOVES])
def test_a_switch_that_forwards_nothing_in_either_state_forwards_nothing_meanwhile(strategy: str) -> None:
    idle = 0
    for seed in range(60):
        try:
            _, _, plan = planned(seed, strategy)
        except NotApplicable:
            continue
        larger = np.maximum(*(np.diff(state.tables.first) for state in (plan.old, plan.new)))
        idle += int((larger == 0).sum())
        assert (peaks(plan)[larger == 0] == 0).all(), seed
    assert idle > 10


SPOILT = ("epoch", "versioning", "custom-multicast", "ip-multicast", "bridge", *MOVES)
TAGGED = ("versioning", *MOVES)
WIDENED = ("custom-multicast", "ip-multicast", "customised-versioning")
TELLING = ("epoch", "versioning", "custom-multicast", "ip-multicast", "bridge")
APPLIES = {
    "no acknowledgements": TELLING,
    "a publisher untold": TELLING,
    "tagged at hosts": TAGGED,
    "any tag": TAGGED,
    "no tags": tuple(MOVES),
    "no priority": WIDENED,
}
"""Which strategies do what the fault spoils; all, where nothing is said."""

HARMLESS = {
    ("ip-multicast", "no priority")
}  # groups have addresses of their own, so nothing competes with them


def alike(one: Plan, other: Plan) -> bool:
    """Whether nothing is told otherwise, nor at another time."""
    return len(one.rounds) == len(other.rounds) and all(
        (a.notice, a.wait_seconds) == (b.notice, b.wait_seconds)
        and same(a.changes.removed, b.changes.removed)
        and same(a.changes.added, b.changes.added)
        for a, b in zip(one.rounds, other.rounds, strict=True)
    )


def is_found_out(plan: Plan, found: Scene, seed: int) -> bool:
    """Whether the checker objects, in a quick network or in one that is as slow as it may be."""
    promise = known(plan.strategy).promise
    try:
        return not all(check(plan, found.samples, [seed], c).keeps(promise) for c in (QUICK, SLOW))
    except AssertionError as more_than_it_said:
        return "more entries than it says" in str(more_than_it_said)


@pytest.mark.parametrize(("strategy", "fault"), list(product(SPOILT, WRONG)))
def test_a_fault_that_is_put_into_a_strategy_is_found(strategy: str, fault: str) -> None:
    tried = 0
    for seed in range(100):
        try:
            _, found, plan = planned(seed, strategy)
        except NotApplicable:
            continue
        spoilt = WRONG[fault](plan)
        if alike(spoilt, plan):
            continue
        tried += 1
        if is_found_out(spoilt, found, seed):
            assert (strategy, fault) not in HARMLESS
            return
    assert (tried == 0) == (strategy not in APPLIES.get(fault, SPOILT))
    assert tried == 0 or (strategy, fault) in HARMLESS, "goes unnoticed"


FREE = {
    "narrow": "no event of the old language is on its way any more, so wide entries may go in any order",
    "admit no old events": "nobody sends any, and what goes next is for those who do",
    "4-6: tag as old": "what is widened next is for tags, and nobody's event is tagged before it",
    "8: remove what is widened": "it and the next are about different switches",
    "13: widen where the trees agree": "what is removed next is still covered by the union of both trees",
    "13: remove the old trees": "so is what is added next",
}
"""Rounds that may change places with the next one, and why."""


@pytest.mark.parametrize("strategy", SPOILT)
def test_rounds_that_change_places_need_more_entries_or_are_found(strategy: str) -> None:
    unnoticed: set[str] = set()
    noticed: set[str] = set()
    for seed in range(60):
        try:
            _, found, plan = planned(seed, strategy)
        except NotApplicable:
            continue
        for number, one in enumerate(plan.rounds[:-1]):
            name = "narrow" if one.name.startswith("narrow") else one.name
            if name not in noticed | FREE.keys():
                turned = exchanged(plan, number)
                worse = (peaks(turned) > peaks(plan)).any() or is_found_out(turned, found, seed)
                (noticed if worse else unnoticed).add(name)
    assert noticed
    assert unnoticed <= noticed
