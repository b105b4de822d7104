"""Every fault is found, with an event that shows it when it is walked alone."""

from __future__ import annotations

import numpy as np
import pytest

from plerion.flow.atoms import net, scratch, walk
from plerion.flow.entry import FlowEntry, Tables, no_tables, tables_of
from plerion.flow.fabric import fabric
from plerion.flow.verify import CounterExample, Proof, verify
from plerion.index.dz import MAX_LENGTH, WHOLE, Dz
from plerion.index.dzset import EVERYTHING, DzSet
from plerion.routing.interest import Advertisement, AdvertisementId, Subscription, SubscriptionId
from plerion.topology import HostId, Link, SwitchId, Topology, fat_tree, line, ring, star, torus
from tests.laws.networks import Deployment, shows, unwritten, written

RING = ring(4)
S1, S2, S3, S4 = RING.switches
H1, H2, H3, H4 = RING.hosts


def deployed(network: Topology, sent: dict[HostId, DzSet], asked: dict[HostId, DzSet]) -> Deployment:
    advertised = tuple(Advertisement(AdvertisementId(h), h, dz) for h, dz in sent.items())
    wanted = tuple(Subscription(SubscriptionId(h), h, dz) for h, dz in asked.items())
    return Deployment(network, network, advertised, wanted)


def port_to(node: SwitchId, peer: str, network: Topology = RING) -> int:
    return next(n.port for n in network.neighbours(node) if n.peer == peer)


EVERY_HOST = deployed(RING, dict.fromkeys((H1, H3), EVERYTHING), dict.fromkeys(RING.hosts, DzSet.parse("10")))


def proof(case: Deployment, tables: Tables) -> Proof:
    return verify(tables, case.covers, case.hosts, case.advertised, case.alive)


def fault(case: Deployment, tables: Tables) -> CounterExample:
    example = proof(case, tables).counter_example
    assert example is not None
    assert shows(example, case, tables)
    return example


def test_a_proof_takes_memory_for_the_ways_of_an_event_and_not_for_pairs_of_hosts() -> None:
    count = 20_000
    hosts = tuple(HostId(f"h{i}") for i in range(1, count + 1))
    links = tuple(Link(S1, i, host, 1) for i, host in enumerate(hosts, start=1))
    whole = Topology((S1,), hosts, links)
    assert sum(part.nbytes for part in scratch(net(fabric(whole), whole))) < 4_000_000


@pytest.mark.parametrize("network", [line(1), ring(5), torus(3, 3), star(6), fat_tree(4)])
def test_a_walk_of_the_fullest_tables_stays_within_its_memory(network: Topology) -> None:
    made = fabric(network)
    flood = tables_of(made, {s: [FlowEntry(WHOLE, frozenset(network.ports(s)))] for s in network.switches})
    paths = net(made, network)
    memory = scratch(paths)
    for publisher in range(len(network.hosts)):
        walk(paths, flood.ports, np.arange(made.switches, dtype=np.int32), publisher, memory)
        assert memory.trail_length[0] < len(memory.trail)


def test_right_tables_are_proven() -> None:
    found = proof(EVERY_HOST, EVERY_HOST.definition())
    assert found
    assert (found.atoms, found.deliveries, found.unwanted) == (3, 6, 0)


@pytest.mark.parametrize("switch", [S1, S2, S3, S4])
def test_a_dropped_table_loses_events(switch: SwitchId) -> None:
    entries = written(EVERY_HOST.definition())
    assert entries[switch]
    entries[switch].clear()
    assert fault(EVERY_HOST, unwritten(EVERY_HOST.fabric, entries)).fault == "lost"


def test_a_removed_port_loses_the_events_of_the_host_behind_it() -> None:
    entries = written(EVERY_HOST.definition())
    (dz,) = entries[S2]
    entries[S2][dz] -= {port_to(S2, H2)}
    example = fault(EVERY_HOST, unwritten(EVERY_HOST.fabric, entries))
    assert (example.fault, example.host) == ("lost", H2)
    assert str(example).startswith("lost: the event 1")
    assert str(example).endswith("to h2")


def test_a_loop_on_the_ring_is_found() -> None:
    """Each switch passes 10 on to the next: what h1 sends comes round to s1 again."""
    entries = {
        s: {Dz.parse("10"): frozenset({port_to(s, f"s{i % 4 + 1}")})} for i, s in enumerate(RING.switches, 1)
    }
    example = fault(EVERY_HOST, unwritten(EVERY_HOST.fabric, entries))
    assert example.fault == "looping"
    assert example.host is None
    assert str(example).endswith("from h1")


def test_a_second_way_to_a_host_doubles() -> None:
    """s1 sends both ways round, and s3, where the two ways meet, serves its host from each."""
    entries = {
        S1: {WHOLE: frozenset({port_to(S1, "s2"), port_to(S1, "s4")})},
        S2: {WHOLE: frozenset({port_to(S2, "s3"), port_to(S2, H2)})},
        S4: {WHOLE: frozenset({port_to(S4, "s3"), port_to(S4, H4)})},
        S3: {WHOLE: frozenset({port_to(S3, H3)})},
    }
    case = deployed(RING, {H1: EVERYTHING}, dict.fromkeys((H2, H3, H4), EVERYTHING))
    example = fault(case, unwritten(case.fabric, entries))
    assert (example.fault, example.publisher, example.host) == ("doubled", H1, H3)


def test_a_double_that_nobody_wants_is_a_fault_too_and_a_single_one_is_counted() -> None:
    case = deployed(RING, {H1: EVERYTHING}, {H2: DzSet.parse("1")})
    entries = written(case.definition())
    entries[S2][Dz.parse("0")] = frozenset({port_to(S2, H2)})
    entries[S1][Dz.parse("0")] = frozenset({port_to(S1, "s2")})
    found = proof(case, unwritten(case.fabric, entries))
    assert found
    assert (found.deliveries, found.unwanted) == (1, 1)


def test_a_fault_in_a_single_cell_of_the_whole_address_space_is_found() -> None:
    cell = Dz((0x9EADBEEF << 80) | 0x1234567, MAX_LENGTH)
    entries = written(EVERY_HOST.definition())
    entries[S2][cell] = frozenset({port_to(S2, "s3")})
    found = fault(EVERY_HOST, unwritten(EVERY_HOST.fabric, entries))
    assert (found.fault, found.code) == ("lost", cell)


def test_a_want_for_a_single_cell_is_checked() -> None:
    cell = DzSet.of([Dz((1 << MAX_LENGTH) - 1, MAX_LENGTH)])
    case = deployed(RING, {H1: EVERYTHING}, {H3: cell})
    assert proof(case, case.definition())
    assert fault(case, no_tables(case.fabric)).code == cell.cells[0]


def test_a_fault_outside_what_is_advertised_is_none() -> None:
    case = deployed(RING, {H1: DzSet.parse("0")}, {H3: EVERYTHING})
    entries = written(case.definition())
    entries[S1][Dz.parse("1")] = frozenset({port_to(S1, "s2"), port_to(S1, "s4")})
    entries[S3][Dz.parse("1")] = frozenset({port_to(S3, H3)})
    assert proof(case, unwritten(case.fabric, entries))


def test_a_table_over_its_limit_is_found_before_any_event_is_sent() -> None:
    tables = EVERY_HOST.definition()
    sizes = tables.sizes()
    asked = (tables, EVERY_HOST.covers, EVERY_HOST.hosts, EVERY_HOST.advertised, None)
    assert verify(*asked, sizes)
    assert verify(*asked, {S1: sizes[S1]})
    found = verify(*asked, {S2: sizes[S2] - 1})
    assert str(found.counter_example) == "table full: s2 has 1 entries and room for 0"


def test_who_is_cut_off_is_neither_sent_to_nor_expected_to_send() -> None:
    case = deployed(line(3), {HostId("h1"): EVERYTHING}, {HostId("h3"): EVERYTHING})
    assert fault(case, no_tables(case.fabric)).fault == "lost"
    for alive in (
        case.topology.without([SwitchId("s2")]),
        case.topology.without([SwitchId("s1")]),
        case.topology.without([SwitchId("s3")]),
        case.topology.without(case.topology.switches),
    ):
        apart = Deployment(case.topology, alive, case.advertisements, case.subscriptions)
        found = proof(apart, no_tables(case.fabric))
        assert found
        assert found.deliveries == 0


def test_a_failed_switch_on_the_way_is_a_loss_where_another_way_is_left() -> None:
    case = deployed(RING, {H1: EVERYTHING}, {H3: EVERYTHING})
    tables = case.definition()
    (on_the_way,) = {S2, S4} & {s for s, table in written(tables).items() if table}
    alive = RING.without([on_the_way])
    after = Deployment(RING, alive, case.advertisements, case.subscriptions)
    assert fault(after, tables).fault == "lost"
    assert proof(after, after.definition())


def test_nothing_deployed_is_proven() -> None:
    case = deployed(RING, {}, {})
    assert proof(case, no_tables(case.fabric)) == Proof(atoms=1)
    assert proof(deployed(RING, {}, {H1: EVERYTHING}), no_tables(case.fabric))
    assert proof(deployed(RING, {H1: EVERYTHING}, {}), no_tables(case.fabric))
