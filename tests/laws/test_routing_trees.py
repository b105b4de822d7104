"""Laws of trees: they share the advertised space out among them, and each is a shortest-path tree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import inf, isclose

from hypothesis import given, settings
from hypothesis import strategies as st

from plerion.index.dz import Dz
from plerion.index.dzset import DzSet
from plerion.routing.tree import Forest, Tree, forest, sources, spanning
from plerion.topology import HostId, NodeId, Port, SwitchId, Topology
from tests.laws.networks import DEPTH, Deployment, deployments, joined, surviving
from tests.laws.topologies import topologies

EXAMPLES = settings(max_examples=80, deadline=None)


def points(dz: Iterable[Dz], base: Dz) -> frozenset[int]:
    """The smallest cells of the short code space that lie in a set, by number."""
    held = list(dz)
    return frozenset(i for i in range(1 << DEPTH) if any(c.covers(base.append(Dz(i, DEPTH))) for c in held))


def algorithm_1(deployed: Deployment) -> list[tuple[str, frozenset[int]]]:
    """Seed 000, Algorithm 1, lines 1 to 15, on sets of points: (root, what it serves), oldest first."""
    trees: list[tuple[str, frozenset[int]]] = []
    for advertisement in deployed.advertisements:
        if advertisement.host in deployed.alive.hosts:
            served = frozenset[int]().union(*(points for _, points in trees))
            if uncovered := points(advertisement.dz, deployed.base) - served:
                trees.append((deployed.alive.attachment(advertisement.host).node, uncovered))
    return trees


@EXAMPLES
@given(deployments())
def test_trees_are_those_of_algorithm_1(deployed: Deployment) -> None:
    grown = forest(deployed.alive, deployed.advertisements)
    assert [(tree.root, points(tree.dz, deployed.base)) for tree in grown.trees] == algorithm_1(deployed)


@EXAMPLES
@given(deployments())
def test_trees_are_disjoint_and_serve_together_what_is_advertised(deployed: Deployment) -> None:
    trees = deployed.forest.trees
    assert len(trees) <= deployed.max_trees
    for i, tree in enumerate(trees):
        assert tree.dz
        assert not any(tree.dz.overlaps(other.dz) for other in trees[:i])
        assert tree.root in deployed.alive.switches
    sent = [ad.dz for ad in deployed.advertisements if ad.host in deployed.alive.hosts]
    assert DzSet.of(dz for tree in trees for dz in tree.dz) == DzSet.of(dz for dzs in sent for dz in dzs)


@EXAMPLES
@given(deployments())
def test_a_forest_extended_step_by_step_is_the_one_folded_at_once(deployed: Deployment) -> None:
    grown = Forest(max_trees=deployed.max_trees)
    for advertisement in deployed.advertisements:
        grown = grown.with_advertisement(deployed.alive, advertisement)
    assert grown == deployed.forest


@EXAMPLES
@given(deployments())
def test_above_the_threshold_the_newest_tree_goes_where_it_adds_fewest_cells(deployed: Deployment) -> None:
    before = Forest(max_trees=deployed.max_trees)
    for advertisement in deployed.advertisements:
        after = before.with_advertisement(deployed.alive, advertisement)
        free = replace(before, max_trees=64).with_advertisement(deployed.alive, advertisement)
        if len(free.trees) > deployed.max_trees:
            *older, newest = free.trees
            choices = [
                [*older[:i], Tree(tree.root, tree.dz | newest.dz), *older[i + 1 :]]
                for i, tree in enumerate(older)
            ]
            cells = [sum(len(tree.dz) for tree in choice) for choice in choices]
            assert list(after.trees) == choices[cells.index(min(cells))]
        else:
            assert after.trees == free.trees
        before = after


@EXAMPLES
@given(deployments())
def test_the_nearest_source_above_a_code_names_its_tree_and_all_who_may_send_it(deployed: Deployment) -> None:
    listed = sources(deployed.forest, deployed.alive)
    assert [source.dz for source in listed] == sorted({source.dz for source in listed})
    for code in deployed.codes():
        above = [source for source in listed if source.dz.covers(code)]
        senders = {
            ad.host
            for ad in deployed.advertisements
            if ad.host in deployed.alive.hosts and ad.dz.covers(code)
        }
        if not senders:
            assert not above
            continue
        nearest = max(above, key=lambda source: source.dz.length)
        assert nearest.publishers == senders
        assert [nearest.root] == [tree.root for tree in deployed.forest.trees if tree.dz.covers(code)]


def distances(network: Topology, root: SwitchId) -> dict[NodeId, float]:
    """From the root to every switch it reaches, by relaxing all links until nothing changes."""
    near: dict[NodeId, float] = {root: 0.0}
    links = [link for link in network.links if {link.a, link.b} <= set(network.switches)]
    links = [link for link in links if reaches(network, root, link.a)]
    timed = all(link.latency is not None for link in links)
    for _ in network.switches:
        for link in links:
            step = link.latency if timed and link.latency is not None else 1.0
            near[link.b] = min(near.get(link.b, inf), near.get(link.a, inf) + step)
            near[link.a] = min(near.get(link.a, inf), near.get(link.b, inf) + step)
    return {switch: distance for switch, distance in near.items() if distance < inf}


def reaches(network: Topology, root: SwitchId, node: NodeId) -> bool:
    return any(root in part and node in part for part in network.components())


def along(network: Topology, behind: dict[Port, int], root: SwitchId) -> dict[NodeId, float]:
    """From the root to every switch, along the ports of the tree only."""
    inside = [
        n
        for s in network.switches
        for n in network.neighbours(s)
        if n.peer in network.switches and reaches(network, root, s)
    ]
    timed = all(n.link.latency is not None for n in inside)
    found: dict[NodeId, float] = {root: 0.0}
    waiting = [root]
    while waiting:
        at = waiting.pop()
        for near in network.neighbours(at):
            if Port(at, near.port) in behind and near.peer in network.switches and near.peer not in found:
                step = near.link.latency if timed and near.link.latency is not None else 1.0
                found[near.peer] = found[at] + step
                waiting.append(SwitchId(near.peer))
    return found


@EXAMPLES
@given(topologies(7).flatmap(lambda whole: st.tuples(st.just(whole), surviving(whole))), st.data())
def test_a_spanning_tree_is_shortest_and_has_no_cycle_in_every_part(
    networks: tuple[Topology, Topology], data: st.DataObject
) -> None:
    whole, alive = networks
    numbers = {host: i for i, host in enumerate(whole.hosts)}
    root = data.draw(st.sampled_from(whole.switches))
    behind = spanning(alive, root, numbers)
    for part in alive.components():
        from_here = root if root in part else min(part, key=alive.switches.index)
        tree = along(alive, behind, from_here)
        shortest = distances(alive, from_here)
        assert tree.keys() == shortest.keys() == part
        assert all(isclose(tree[switch], shortest[switch]) for switch in part)
    between = [port for port in behind if peer_of(alive, port) in alive.switches]
    assert len(between) == 2 * (len(alive.switches) - len(alive.components()))


def peer_of(network: Topology, port: Port) -> NodeId:
    peer = network.peer(port.node, port.number)
    assert peer is not None
    return peer.node


@EXAMPLES
@given(topologies(7).flatmap(lambda whole: st.tuples(st.just(whole), surviving(whole))), st.data())
def test_the_ports_of_a_switch_share_out_the_hosts_of_its_part(
    networks: tuple[Topology, Topology], data: st.DataObject
) -> None:
    whole, alive = networks
    numbers = {host: i for i, host in enumerate(whole.hosts)}
    behind = spanning(alive, data.draw(st.sampled_from(whole.switches)), numbers)
    for switch in alive.switches:
        masks = [behind.get(Port(switch, port), 0) for port in alive.ports(switch)]
        assert sum(masks) == sum(1 << numbers[host] for host in hosts_with(alive, switch))
        for port in alive.ports(switch):
            peer = alive.peer(switch, port)
            assert peer is not None
            if peer.node in numbers:
                assert behind[Port(switch, port)] == 1 << numbers[HostId(peer.node)]
            elif Port(switch, port) in behind:
                there = sum(1 << numbers[host] for host in hosts_with(alive, switch))
                assert behind[Port(switch, port)] + behind[peer] == there


def hosts_with(alive: Topology, switch: SwitchId) -> list[HostId]:
    return [host for host in alive.hosts if reaches(alive, switch, alive.attachment(host).node)]


@EXAMPLES
@given(topologies(7), st.data())
def test_a_spanning_tree_does_not_depend_on_the_order_in_which_links_are_listed(
    network: Topology, data: st.DataObject
) -> None:
    numbers = {host: i for i, host in enumerate(network.hosts)}
    root = data.draw(st.sampled_from(network.switches))
    shuffled = Topology(network.switches, network.hosts, tuple(data.draw(st.permutations(network.links))))
    assert spanning(shuffled, root, numbers) == spanning(network, root, numbers)


@EXAMPLES
@given(deployments())
def test_hosts_are_joined_exactly_when_a_tree_leads_from_one_to_the_other(deployed: Deployment) -> None:
    numbers = {host: i for i, host in enumerate(deployed.topology.hosts)}
    behind = spanning(deployed.alive, deployed.topology.switches[0], numbers)
    for a in deployed.alive.hosts:
        at = deployed.alive.attachment(a)
        for b in deployed.alive.hosts:
            leads = [
                p
                for p in deployed.alive.ports(SwitchId(at.node))
                if behind.get(Port(at.node, p), 0) >> numbers[b] & 1
            ]
            assert len(leads) == joined(deployed.alive, a, b)
