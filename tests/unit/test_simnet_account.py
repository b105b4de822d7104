"""Bulk forwarding and its account on small examples, and on tables that are wrong on purpose."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from plerion.content.schema import Number, Schema
from plerion.flow.entry import Tables, no_tables
from plerion.flow.fabric import fabric
from plerion.index.cover import covers
from plerion.index.dz import WHOLE, Dz
from plerion.index.dzset import EVERYTHING, DzColumns
from plerion.index.encode import encode
from plerion.index.propose import regular
from plerion.matching.bitset import BitsetMatcher
from plerion.routing.interest import Advertisement, AdvertisementId, Subscription, SubscriptionId
from plerion.simnet.account import Account, account
from plerion.simnet.bulk import BulkNetwork
from plerion.topology import HostId, SwitchId, Topology, line, ring, star
from tests.laws.networks import Deployment, unwritten, written

SCHEMA = Schema((Number("x", 0, 15, integer=True),))
INDEX = regular(SCHEMA, 4)
EVENTS = np.arange(16.0).reshape(-1, 1)
FIRST_HOST = np.zeros(16, np.int64)


def deployed(topology: Topology, wanted: dict[str, tuple[int, int]], budget: int = 8) -> Deployment:
    """The first host sends everything; the others want x in [low, high)."""
    sets = covers(INDEX, np.arange(len(wanted) + 1), bounds_of(wanted), budget).sets()
    asked = [Subscription(SubscriptionId(h), HostId(h), dz) for h, dz in zip(wanted, sets, strict=True)]
    sent = Advertisement(AdvertisementId("a"), topology.hosts[0], EVERYTHING)
    return Deployment(topology, topology, (sent,), tuple(asked))


def bounds_of(wanted: dict[str, tuple[int, int]]) -> npt.NDArray[np.float64]:
    return np.array([[ends] for ends in wanted.values()], np.float64).reshape(-1, 1, 2)


def counted(case: Deployment, tables: Tables, wanted: dict[str, tuple[int, int]]) -> Account:
    codes = encode(INDEX, EVENTS)
    network = BulkNetwork(tables, case.alive)
    numbers = case.fabric.host_number
    return account(
        network.forward(codes.dz, FIRST_HOST),
        EVENTS,
        codes,
        FIRST_HOST,
        BitsetMatcher.of(np.arange(len(wanted) + 1), bounds_of(wanted)),
        case.covers,
        np.array([numbers[HostId(host)] for host in wanted], np.int64),
        network.reachable(),
    )


WANTED = {"h2": (0, 6), "h3": (4, 9)}


def test_exact_covers_deliver_exactly() -> None:
    case = deployed(line(3), WANTED)
    found = counted(case, case.definition(), WANTED)
    assert found.events == 16
    assert found.host_deliveries.tolist() == [0, 6, 5]
    assert found.subscription_deliveries.tolist() == [6, 5]
    assert found.link_loads.sum() == 9 + (6 + 5) + 5
    assert found.false_positive_rate == 0
    for nothing in (found.lost, found.doubled, found.host_false_positives, found.link_false_positives):
        assert not nothing.any()


def test_a_coarse_cover_costs_false_positives_at_hosts_and_on_links() -> None:
    case = deployed(line(3), WANTED, budget=1)
    found = counted(case, case.definition(), WANTED)
    assert found.host_deliveries.tolist() == [0, 8, 16]
    assert found.host_false_positives.tolist() == [0, 2, 11]
    assert found.subscription_false_positives.tolist() == [2, 11]
    assert not found.lost.any()
    assert found.link_false_positives.sum() == 7 + (2 + 11) + 11
    assert found.false_positive_rate == 13 / 24


@pytest.mark.parametrize("switch", ["s1", "s2", "s3"])
def test_a_table_that_was_dropped_makes_losses(switch: str) -> None:
    case = deployed(line(3), WANTED)
    entries = written(case.definition())
    entries[SwitchId(switch)].clear()
    lost = counted(case, unwritten(case.fabric, entries), WANTED).lost.tolist()
    assert lost == {"s1": [0, 6, 5], "s2": [0, 6, 5], "s3": [0, 0, 5]}[switch]


def test_a_second_way_round_makes_doubles() -> None:
    network = ring(4)
    wanted = {"h3": (0, 16)}
    case = deployed(network, wanted)
    to = {(a, n.peer): n.port for a in network.switches for n in network.neighbours(a)}
    both_ways = {
        SwitchId("s1"): {WHOLE: frozenset({to[SwitchId("s1"), "s2"], to[SwitchId("s1"), "s4"]})},
        SwitchId("s2"): {WHOLE: frozenset({to[SwitchId("s2"), "s3"]})},
        SwitchId("s4"): {WHOLE: frozenset({to[SwitchId("s4"), "s3"]})},
        SwitchId("s3"): {WHOLE: frozenset({to[SwitchId("s3"), "h3"]})},
    }
    found = counted(case, unwritten(case.fabric, both_ways), wanted)
    assert found.doubled.tolist() == [0, 0, 16, 0]
    assert found.host_deliveries.tolist() == [0, 0, 16, 0]
    assert found.link_loads.sum() == 16 * 6
    assert not found.lost.any()


def test_a_loop_is_reported_for_the_events_that_are_in_it() -> None:
    network = ring(3)
    whole = fabric(network)
    around = {
        s: {Dz.parse("0"): frozenset({n.port for n in network.neighbours(s) if n.peer == f"s{i % 3 + 1}"})}
        for i, s in enumerate(network.switches, start=1)
    }
    codes = DzColumns.of([Dz(0, 112), Dz((1 << 112) - 1, 112)])
    traffic = BulkNetwork(unwritten(whole, around)).forward(codes, np.zeros(2, np.int64))
    assert traffic.looped[traffic.course].tolist() == [True, False]


def test_hosts_that_are_cut_off_send_nothing_and_miss_nothing() -> None:
    case = deployed(line(3), WANTED)
    for gone, lost in (("s1", [0, 0, 0]), ("s2", [0, 0, 0]), ("s3", [0, 0, 0])):
        alive = case.topology.without([SwitchId(gone)])
        after = Deployment(case.topology, alive, case.advertisements, case.subscriptions)
        found = counted(after, after.definition(), WANTED)
        assert found.lost.tolist() == lost
    alive = case.topology.without([SwitchId("s1")])
    apart = Deployment(case.topology, alive, case.advertisements, case.subscriptions)
    assert not counted(apart, case.definition(), WANTED).host_deliveries.any()


def test_more_hosts_and_ports_than_a_word_has_bits_are_all_reached() -> None:
    network = star(70)
    wanted = {str(host): (i % 16, i % 16 + 1) for i, host in enumerate(network.hosts) if i}
    case = deployed(network, wanted)
    found = counted(case, case.definition(), wanted)
    assert found.host_deliveries.tolist() == [0] + [1] * 70
    assert not found.lost.any()
    assert not found.doubled.any()
    assert not found.link_false_positives.any()


def test_no_events_no_subscriptions_and_no_tables_are_nothing_special() -> None:
    case = deployed(line(2), {})
    assert counted(case, case.definition(), {}).host_deliveries.tolist() == [0, 0]
    network = BulkNetwork(no_tables(case.fabric))
    traffic = network.forward(DzColumns.of(()), np.empty(0, np.int64))
    assert (traffic.deliveries().tolist(), traffic.link_loads().sum()) == ([0, 0], 0)


def test_thousands_of_courses_are_kept_apart() -> None:
    """More (atom, publisher) pairs and more hops than the arrays begin with."""
    network = line(4)
    whole = fabric(network)
    cells = [Dz(i, 11) for i in range(2048)]
    onward = {s: frozenset(network.ports(s)) for s in network.switches}
    entries = {s: dict.fromkeys(cells[i % 2 :: 2], onward[s]) for i, s in enumerate(network.switches)}
    bulk = BulkNetwork(unwritten(whole, entries))
    traffic = bulk.forward(DzColumns.of(cells * 2), np.repeat([0, 3], len(cells)))
    assert len(traffic.events) == 4096
    assert traffic.events.tolist() == [1] * 4096
    assert traffic.deliveries().tolist() == [0, 0, 0, 0], "every second switch drops what the first passes on"
    assert traffic.link_loads().sum() == 1024 + 1024
