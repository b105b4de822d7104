"""Laws of the topology value: round trips, symmetry, and what survives a failure."""

import json
import pickle
from ipaddress import IPv6Address, IPv6Network

from hypothesis import given
from hypothesis import strategies as st

from plerion.topology import Port, SwitchId, Topology, ipv6, mac, parse_topology
from plerion.topology.graph import mac_beside
from tests.laws.topologies import topologies


@given(topologies())
def test_a_topology_survives_json_and_pickle(topology: Topology) -> None:
    text = json.dumps(topology.to_json(), allow_nan=False)
    assert Topology.from_json(json.loads(text)) == topology
    assert parse_topology(text.encode()).topology == topology
    copy = pickle.loads(pickle.dumps(topology))
    assert copy == topology
    assert hash(copy) == hash(topology)
    assert [copy.neighbours(node) for node in copy.switches] == [
        topology.neighbours(n) for n in topology.switches
    ]


@given(topologies())
def test_the_peer_of_a_peer_is_the_port_itself(topology: Topology) -> None:
    seen = set()
    for node in (*topology.switches, *topology.hosts):
        for number, peer, peer_port, link in topology.neighbours(node):
            assert topology.peer(node, number) == Port(peer, peer_port)
            assert topology.peer(peer, peer_port) == Port(node, number)
            assert set(link.ends) == {Port(node, number), Port(peer, peer_port)}
            seen.add(Port(node, number))
    assert seen == {end for link in topology.links for end in link.ends}
    assert len(seen) == 2 * len(topology.links)


@given(topologies())
def test_neighbours_and_ports_come_in_port_order(topology: Topology) -> None:
    for switch in topology.switches:
        numbers = [neighbour.port for neighbour in topology.neighbours(switch)]
        assert numbers == sorted(set(numbers))
        assert topology.ports(switch) == tuple(numbers)


@given(topologies())
def test_a_host_hangs_on_the_switch_port_whose_peer_it_is(topology: Topology) -> None:
    for host in topology.hosts:
        port = topology.attachment(host)
        assert port.node in topology.switches
        assert topology.peer(port.node, port.number) == Port(host, 1)


@given(topologies())
def test_no_two_hosts_share_an_address(topology: Topology) -> None:
    macs = {mac(topology, host) for host in topology.hosts}
    addresses = {IPv6Address(ipv6(topology, host)) for host in topology.hosts}
    assert len(macs) == len(addresses) == len(topology.hosts)
    assert all(int(address.split(":")[0], 16) & 0b11 == 0b10 for address in macs)
    assert all(address in IPv6Network("fd00::/8") for address in addresses)
    assert {mac_beside(address) for address in addresses} == macs


@given(st.integers(0, 2**128 - 1))
def test_an_address_that_no_host_can_have_has_no_mac_beside_it(number: int) -> None:
    of_a_host = IPv6Address("fd00::1") <= IPv6Address(number) <= IPv6Address("fd00::ffff:ffff")
    assert (mac_beside(IPv6Address(number)) is not None) == of_a_host
    assert mac_beside(IPv6Address("fd00::")) is None
    assert mac_beside(IPv6Address("fd00::1:0:0")) is None


def reachable(topology: Topology, start: SwitchId) -> frozenset[str]:
    """Components by definition: walk until nothing new is found."""
    found = {str(start)}
    while new := {n.peer for node in found for n in topology.neighbours(node)} - found:
        found |= new
    return frozenset(found) & frozenset(topology.switches)


@given(topologies(), st.data())
def test_components_are_what_walking_reaches(topology: Topology, data: st.DataObject) -> None:
    assert topology.components() == (frozenset(topology.switches),)
    ports = [port for link in topology.links for port in link.ends]
    rest = topology.without(links=data.draw(st.lists(st.sampled_from(ports))))
    parts = rest.components()
    assert sorted(switch for part in parts for switch in part) == sorted(rest.switches)
    assert all(reachable(rest, switch) == part for part in parts for switch in part)
    firsts = [min(map(rest.switches.index, part)) for part in parts]
    assert firsts == sorted(firsts)


@given(topologies(), st.data())
def test_what_survives_is_exactly_what_touches_no_failure(topology: Topology, data: st.DataObject) -> None:
    failed = data.draw(st.sets(st.sampled_from(topology.switches)))
    cut = data.draw(st.sets(st.sampled_from(topology.links)))
    rest = topology.without(failed, [data.draw(st.sampled_from(link.ends)) for link in cut])
    assert rest.switches == tuple(s for s in topology.switches if s not in failed)
    assert rest.links == tuple(
        link for link in topology.links if link not in cut and not {link.a, link.b} & failed
    )
    assert set(rest.hosts) == {
        h for h in topology.hosts if {h} & {e for link in rest.links for e in (link.a, link.b)}
    }
    assert all(rest.attachment(host) == topology.attachment(host) for host in rest.hosts)


@given(topologies(), st.data())
def test_failures_may_come_one_by_one_or_at_once(topology: Topology, data: st.DataObject) -> None:
    failed = data.draw(st.lists(st.sampled_from(topology.switches), unique=True))
    one_by_one = topology
    for switch in failed:
        one_by_one = one_by_one.without([switch])
    assert one_by_one == topology.without(failed)
    assert topology.without() == topology
