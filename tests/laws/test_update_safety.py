"""What strategies promise holds on random networks, workloads and delays; and a strategy that is wrong is found out."""

from __future__ import annotations

import pytest

from plerion.simnet.check import Report, check
from plerion.simnet.fault import WRONG
from plerion.simnet.scene import scene
from plerion.simnet.traffic import Conditions
from plerion.simnet.trial import conditions, known, options, planned, trial
from plerion.update.plan import extra, same
from plerion.update.state import NotApplicable, Stamp
from plerion.update.strategies import MOVES, STRATEGIES

SEEDS = 500
SAFE = [name for name, one in {**STRATEGIES, **MOVES}.items() if one.promise.safe]
QUICK = Conditions(install_seconds=0.0002, confirm_seconds=0.0001, notice_seconds=0.0002, gap_seconds=0.0002)


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
    for seed in range(40):
        _, _, plan = planned(seed, strategy)
        sizes = [state.tables.sizes() for state in (plan.old, plan.new)]
        guard = 1 if strategy == "versioning" else 0  # from a state without tags
        most = [min(a, b) + guard for a, b in zip(*(s.values() for s in sizes), strict=True)]
        assert (extra(plan) <= most).all()


def test_the_light_weight_approach_needs_at_most_an_entry_an_in_port() -> None:
    tried = 0
    for seed in range(80):
        try:
            _, found, plan = planned(seed, "custom-multicast", "index")
        except NotApplicable:
            continue
        wide = plan.rounds[0].changes.added
        if (wide.dz.length > 0).any():  # several trees: an entry an in-port and region
            continue
        tried += 1
        ports = [len(found.topology.ports(s)) for s in found.topology.switches]
        assert (extra(plan) <= ports).all()
    assert tried > 40


HARM = {
    "epoch": [
        "no drain",
        "no acknowledgements",
        "all at once",
        "backwards",
        "a port too few",
        "a port too many",
    ],
    "versioning": ["no drain", "no acknowledgements", "a port too few", "a port too many"],
    "custom-multicast": [
        "no drain",
        "no acknowledgements",
        "a port too few",
        "a port too many",
        "no priority",
    ],
    "ip-multicast": ["no drain", "no acknowledgements", "all at once", "a port too few", "a port too many"],
    "tree-versioning": ["no drain", "a port too few", "a port too many"],
    "customised-versioning": ["no drain", "a port too few", "a port too many"],
    "bridge": [
        "no drain",
        "no acknowledgements",
        "all at once",
        "backwards",
        "a port too few",
        "a port too many",
    ],
}


@pytest.mark.parametrize(
    ("strategy", "fault"), [(s, fault) for s, all_of in HARM.items() for fault in all_of]
)
def test_a_fault_that_is_put_into_a_strategy_is_found(strategy: str, fault: str) -> None:
    for seed in range(100):
        try:
            _, found, plan = planned(seed, strategy)
        except NotApplicable:
            continue
        if not check(WRONG[fault](plan), found.samples, [seed], QUICK).keeps(known(strategy).promise):
            return
    pytest.fail(f"{strategy} with {fault} goes unnoticed")
