"""Seed 001 Figures 4.1 to 4.3: when the replicator shifts, every untagged order doubles or drops.

The publisher h1 is at s1, subscribers are at s2 and s3. In the old state s1 replicates to s2 and s3; in the new one s2
does, for its own host and for s3.
"""

from __future__ import annotations

from itertools import permutations

import pytest

from plerion.flow.entry import FlowEntry, tables_of
from plerion.flow.fabric import fabric
from plerion.index.dz import WHOLE, Dz
from plerion.index.dzset import EVERYTHING
from plerion.simnet.check import Report, check
from plerion.simnet.traffic import Sample
from plerion.topology import HostId, SwitchId, ring
from plerion.update.entries import Side, changes
from plerion.update.plan import Plan, Round, standing
from plerion.update.state import NetworkState, NotApplicable, Options, Stamp
from plerion.update.strategies import STRATEGIES

NETWORK = ring(3)
S1, S2, S3 = NETWORK.switches
H1, H2, H3 = NETWORK.hosts
SEEDS = range(12)
EVENTS = [Sample(H1, Dz(i, 3), Dz(i, 3), frozenset({H2, H3})) for i in range(8)]


def port(switch: SwitchId, peer: str) -> int:
    return next(near.port for near in NETWORK.neighbours(switch) if near.peer == peer)


def state(ways: dict[SwitchId, tuple[str, ...]]) -> NetworkState:
    entries = {s: [FlowEntry(WHOLE, frozenset(port(s, peer) for peer in to))] for s, to in ways.items()}
    return NetworkState(tables_of(fabric(NETWORK), entries), {HostId("h1"): EVERYTHING}, Stamp(epoch=0))


OLD = state({S1: (S2, S3), S2: (H2,), S3: (H3,)})
NEW = state({S1: (S2,), S2: (H2, S3), S3: (H3,)})


def verdict(strategy: str, options: Options = Options(epoch_bits=1)) -> Report:  # noqa: B008 - a frozen value
    return check(STRATEGIES[strategy].make(OLD, NEW, NETWORK, options), EVENTS, SEEDS)


def one_by_one(order: tuple[SwitchId, ...]) -> Plan:
    """Each switch from its old table to its new one at once, in this order, with time to drain in between."""
    whole = changes(standing(OLD, Side.OLD), standing(NEW, Side.NEW))
    number = OLD.tables.fabric.switch_number
    rounds = tuple(Round(f"update {s}", whole.at(number[s]), wait_seconds=0.01) for s in order)
    return Plan("by hand", OLD, NEW, rounds, 0)


def test_figure_4_2_the_replicator_to_be_goes_first_and_events_are_doubled() -> None:
    report = check(one_by_one((S2, S1, S3)), EVENTS, SEEDS)
    assert report.doubled > 0
    assert report.lost == 0


def test_figure_4_3_the_replicator_that_was_goes_first_and_events_are_dropped() -> None:
    report = check(one_by_one((S1, S2, S3)), EVENTS, SEEDS)
    assert report.lost > 0
    assert report.doubled == 0


@pytest.mark.parametrize("order", list(permutations((S1, S2, S3))))
def test_figure_4_1_no_order_is_both(order: tuple[SwitchId, ...]) -> None:
    report = check(one_by_one(order), EVENTS, SEEDS)
    assert report.lost or report.doubled


def test_ordered_chooses_which() -> None:
    making = verdict("ordered")
    breaking = verdict("ordered", Options(care="break-first"))
    assert making.doubled > 0
    assert making.lost == 0
    assert breaking.doubled == 0
    assert breaking.lost > 0


def test_direct_is_caught() -> None:
    assert not verdict("direct").flawless


@pytest.mark.parametrize("strategy", ["epoch", "versioning", "ip-multicast", "bridge"])
def test_strategies_that_tag_or_go_round_shift_the_replicator_unnoticed(strategy: str) -> None:
    report = verdict(strategy)
    assert report.flawless
    assert report.events > 500


def test_widening_is_not_for_trees_that_move() -> None:
    with pytest.raises(NotApplicable, match="cycle"):
        verdict("custom-multicast")


def test_at_rest_both_states_are_right() -> None:
    for rest in (OLD, NEW):
        nothing = Plan("rest", rest, rest, (), 0)
        assert check(nothing, EVENTS, [0]).flawless
