"""Whatever happens to a plan on its way, it ends in the old or in the new state, and the events do not notice."""

from __future__ import annotations

from random import Random

import pytest

from plerion.simnet.check import AtRest, Report, check, judged
from plerion.simnet.fault import Faults
from plerion.simnet.timeline import Timeline
from plerion.simnet.traffic import Course
from plerion.simnet.trial import conditions, known, planned
from plerion.topology import SwitchId
from plerion.update.plan import Plan
from plerion.update.state import NotApplicable
from plerion.update.strategies import MOVES, STRATEGIES

SAFE = [name for name, one in {**STRATEGIES, **MOVES}.items() if one.promise.safe]


def played(seed: int, strategy: str, faults: Faults) -> tuple[Plan, Course, Report] | None:
    try:
        _, found, plan = planned(seed, strategy)
    except NotApplicable:
        return None
    course = Timeline(plan, found.samples, conditions(seed), seed, faults).play()
    return plan, course, judged(course, AtRest(plan), seed)


def _certain(outcome: tuple[Plan, Course, Report] | None) -> tuple[Plan, Course, Report]:
    assert outcome is not None, "the strategy applies"
    return outcome


@pytest.mark.parametrize("strategy", SAFE)
def test_a_controller_killed_at_any_moment_ends_in_one_of_the_states(strategy: str) -> None:
    ends = set()
    for seed in range(60):
        outcome = played(seed, strategy, Faults(kill_after=Random(seed).uniform(0.0, 0.05)))
        if outcome is None:
            continue
        _, course, report = outcome
        assert report.residue == 0, seed
        assert (report.lost, report.doubled, report.looping) == (0, 0, 0), (seed, report.examples)
        ends.add(course.back)
    assert ends == {True, False}


@pytest.mark.slow
@pytest.mark.parametrize("strategy", SAFE)
def test_a_controller_killed_at_every_round_boundary_ends_in_one_of_the_states(strategy: str) -> None:
    """A hundred runs, and in half of them the next controller dies, too: at its first line, or on its way."""
    runs, ends, boundaries = 0, set(), set()
    for seed in range(1_000):
        try:
            rounds = len(planned(seed, strategy)[2].rounds)
        except NotApplicable:
            continue
        kills = {runs % rounds} | ({rounds + runs % 5} if runs % 2 else set())
        plan, course, report = _certain(played(seed, strategy, Faults(kill_rounds=frozenset(kills))))
        boundaries.add(runs % rounds)
        assert "killed" in {entry for _, entry in course.log}
        assert course.back == (runs % rounds < plan.no_return)
        assert report.residue == 0, (seed, kills)
        assert (report.lost, report.doubled, report.looping) == (0, 0, 0), (seed, kills, report.examples)
        ends.add(course.back)
        runs += 1
        if runs == 100:
            break
    assert (runs, ends) == (100, {True, False})
    assert boundaries >= set(range(plan.no_return + 1))


@pytest.mark.parametrize("strategy", SAFE)
def test_a_plan_that_is_stopped_before_there_is_no_way_back_leads_back(strategy: str) -> None:
    ends = set()
    for seed in range(40):
        outcome = played(seed, strategy, Faults(stop_after=Random(seed).uniform(0.0, 0.03)))
        if outcome is None:
            continue
        _, course, report = outcome
        assert report.residue == 0, seed
        assert report.keeps(known(strategy).promise), (seed, report.examples)
        ends.add(course.back)
    assert True in ends


@pytest.mark.parametrize("strategy", SAFE)
def test_a_switch_that_refuses_rolls_the_plan_back(strategy: str) -> None:
    back = 0
    for seed in range(25):
        topology_switch = SwitchId("s1")
        outcome = played(seed, strategy, Faults(full={topology_switch: 0}))
        if outcome is None:
            continue
        plan, course, report = outcome
        told = 0 in plan.rounds[0].changes.switches()
        assert course.back == told
        assert report.residue == 0, seed
        assert (report.lost, report.doubled) == (0, 0), (seed, report.examples)
        back += course.back
    assert back > 5


@pytest.mark.parametrize("strategy", ["epoch", "versioning", "custom-multicast", "ip-multicast"])
def test_a_publisher_that_is_not_heard_of_is_shut_out_and_holds_nobody_up(strategy: str) -> None:
    for seed in range(20):
        try:
            _, found, plan = planned(seed, strategy)
        except NotApplicable:
            continue
        silent = frozenset(plan.publishers[:1])
        report = check(plan, found.samples, [seed], conditions(seed), Faults(mute=silent))
        assert (report.lost, report.doubled) == (0, 0), (seed, report.examples)
