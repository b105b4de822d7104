"""The machine by hand: what it orders when, and that answers to an earlier round are not taken for this one's."""

from __future__ import annotations

import pytest

from plerion.simnet.trial import planned
from plerion.topology import SwitchId
from plerion.update.machine import (
    TRANSITIONS,
    Acknowledged,
    BarrierIn,
    Began,
    Cut,
    Drain,
    Drained,
    Finish,
    LeaseOver,
    Lost,
    Notify,
    Order,
    Phase,
    Refused,
    Returned,
    Run,
    Signal,
    Tell,
    resumed,
    started,
    step,
)
from plerion.update.plan import Plan


@pytest.fixture
def plan() -> Plan:
    return planned(5, "epoch")[2]


def through_barriers(run: Run) -> tuple[Run, tuple[Order, ...]]:
    orders: tuple[Order, ...] = ()
    for switch in sorted(run.switches):
        run, orders = step(run, BarrierIn(switch, run.token))
    return run, orders


def through_round(run: Run) -> tuple[Run, tuple[Order, ...]]:
    run, orders = through_barriers(run)
    for host in sorted(run.publishers):
        run, orders = step(run, Acknowledged(host, run.token))
    return step(run, Drained(run.token)) if run.phase == Phase.DRAINING else (run, orders)


def test_every_phase_but_the_last_can_be_left_and_only_by_what_the_table_says() -> None:
    assert TRANSITIONS.keys() == set(Phase)
    assert TRANSITIONS[Phase.FINISHED] == {}
    assert all(Signal.TURNED in ways for phase, ways in TRANSITIONS.items() if phase != Phase.FINISHED)


def test_a_round_is_written_down_before_anything_of_it_is_told(plan: Plan) -> None:
    _, orders = started(plan)
    assert orders[0] == Began(0, back=False)
    assert {type(order) for order in orders[1:]} == {Tell}


def test_publishers_are_notified_when_the_last_barrier_is_in_and_the_drain_begins_when_the_last_acknowledged(
    plan: Plan,
) -> None:
    run, _ = started(plan)
    run, orders = through_barriers(run)
    assert [type(order) for order in orders] == [Notify] * len(plan.publishers)
    for host in sorted(run.publishers):
        run, orders = step(run, Acknowledged(host, run.token))
    assert [type(order) for order in orders] == [Drain]
    run, orders = step(run, Drained(run.token))
    assert orders[0] == Began(1, back=False)


def test_a_plan_ends_after_its_last_round(plan: Plan) -> None:
    run, orders = started(plan)
    for _ in plan.rounds:
        run, orders = through_round(run)
    assert run.phase == Phase.FINISHED
    assert orders == (Finish(back=False),)


def test_an_answer_to_another_round_changes_nothing(plan: Plan) -> None:
    run, _ = started(plan)
    switch = min(run.switches)
    assert step(run, BarrierIn(switch, run.token + 1)) == (run, ())


def test_a_lost_switch_turns_the_plan_before_and_waits_after_the_point_of_no_return(plan: Plan) -> None:
    run, _ = started(plan)
    turned, orders = step(run, Lost(SwitchId("s1")))
    assert turned.back
    assert orders[0] == Began(0, back=True)
    late, _ = through_round(run)
    assert late.number == plan.no_return
    waiting, orders = step(late, Lost(min(late.switches)))
    assert (waiting.back, orders) == (False, ())
    _, orders = step(waiting, Returned(min(late.switches)))
    assert [type(order) for order in orders] == [Tell]


def test_who_refuses_on_the_way_back_does_not_turn_it_again(plan: Plan) -> None:
    run, _ = step(started(plan)[0], Refused(SwitchId("s1")))
    again, orders = step(run, Refused(SwitchId("s1")))
    assert (again, orders) == (run, ())


def test_a_publisher_whose_lease_is_over_is_cut_off_and_waited_for_no_more(plan: Plan) -> None:
    run, _ = through_barriers(started(plan)[0])
    orders: tuple[Order, ...] = ()
    cut = []
    for host in sorted(run.publishers):
        run, orders = step(run, LeaseOver(host, run.token))
        cut += [order for order in orders if isinstance(order, Cut)]
    assert len(cut) == len(plan.publishers)
    assert run.phase == Phase.DRAINING


def test_a_crash_leads_back_before_and_on_after_the_point_of_no_return(plan: Plan) -> None:
    assert resumed(plan, Began(plan.no_return - 1, back=False))[0].back
    run, orders = resumed(plan, Began(plan.no_return, back=False))
    assert not run.back
    assert orders[0] == Began(plan.no_return, back=False)
    assert resumed(plan, Began(0, back=True))[0].back
