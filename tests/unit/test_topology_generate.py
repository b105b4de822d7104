"""The generators: sizes, degrees, ports, and the names that ask for them."""

from collections import Counter

import pytest

from plerion.topology import (
    Port,
    SwitchId,
    Topology,
    TopologyError,
    fat_tree,
    from_name,
    line,
    random_graph,
    ring,
    star,
    torus,
)


def degrees(topology: Topology) -> dict[int, int]:
    """How many switches have how many links to other switches."""
    switches = set(topology.switches)
    return dict(Counter(sum(n.peer in switches for n in topology.neighbours(s)) for s in topology.switches))


@pytest.mark.parametrize(
    ("topology", "switches", "expected"),
    [
        (line(1), 1, {0: 1}),
        (line(5), 5, {1: 2, 2: 3}),
        (ring(1), 1, {0: 1}),
        (ring(2), 2, {1: 2}),
        (ring(20), 20, {2: 20}),
        (star(5), 6, {5: 1, 1: 5}),
        (torus(1, 1), 1, {0: 1}),
        (torus(2, 2), 4, {2: 4}),
        (torus(1, 5), 5, {2: 5}),
        (torus(2, 3), 6, {3: 6}),
        (torus(4, 4), 16, {4: 16}),
    ],
)
def test_shapes_have_their_sizes_and_degrees(
    topology: Topology, switches: int, expected: dict[int, int]
) -> None:
    assert len(topology.switches) == switches
    assert degrees(topology) == expected
    assert len(topology.components()) == 1


@pytest.mark.parametrize("topology", [line(4), ring(4), star(4), torus(3, 3), random_graph(9, 3, seed=1)])
def test_every_switch_has_its_host_on_its_highest_port_and_no_port_is_skipped(topology: Topology) -> None:
    assert [h[1:] for h in topology.hosts] == [s[1:] for s in topology.switches]
    for switch, host in zip(topology.switches, topology.hosts, strict=True):
        ports = topology.ports(switch)
        assert ports == tuple(range(1, len(ports) + 1))
        assert topology.attachment(host) == Port(switch, ports[-1])


def test_a_torus_has_no_parallel_links() -> None:
    for rows in range(1, 5):
        for columns in range(1, 5):
            pairs = [frozenset((link.a, link.b)) for link in torus(rows, columns).links]
            assert len(pairs) == len(set(pairs))


def test_the_full_fat_tree_is_the_textbook_one() -> None:
    topology = fat_tree(4)
    assert (len(topology.switches), len(topology.hosts), len(topology.links)) == (20, 16, 48)
    assert {len(topology.ports(switch)) for switch in topology.switches} == {4}
    cores = topology.switches[:4]
    pods = [{(int(n.peer[1:]) - 5) // 2 for n in topology.neighbours(core)} for core in cores]
    assert pods == [{0, 1, 2, 3}] * 4
    assert topology.attachment(topology.hosts[0]) == Port("s13", 3)


def test_the_testbed_has_ten_switches_of_four_ports_and_eight_hosts() -> None:
    topology = fat_tree(4, 2)
    assert (len(topology.switches), len(topology.hosts)) == (10, 8)
    assert all(topology.ports(switch) == (1, 2, 3, 4) for switch in topology.switches)
    for core in ("s1", "s2"):
        assert [n.peer for n in topology.neighbours(core)] == ["s3", "s4", "s5", "s6"]
    per_edge = Counter(topology.attachment(host).node for host in topology.hosts)
    assert per_edge == {"s7": 2, "s8": 2, "s9": 2, "s10": 2}


def test_a_fat_tree_survives_any_one_core() -> None:
    for core in ("s1", "s2"):
        assert len(fat_tree(4, 2).without([SwitchId(core)]).components()) == 1


def test_another_seed_is_another_graph() -> None:
    assert len({random_graph(20, 3, seed) for seed in range(10)}) == 10


@pytest.mark.parametrize(
    ("name", "topology"),
    [
        ("fat-tree:4", fat_tree(4)),
        ("fat-tree:4x2", fat_tree(4, 2)),
        ("ring:20", ring(20)),
        ("torus:4x4", torus(4, 4)),
        ("line:3", line(3)),
        ("star:5", star(5)),
        ("random:20x3@7", random_graph(20, 3, 7)),
        ("random:20x2.5@7", random_graph(20, 2.5, 7)),
    ],
)
def test_a_name_gives_the_same_as_its_function(name: str, topology: Topology) -> None:
    assert from_name(name) == topology


def test_one_seed_means_one_graph_on_every_machine() -> None:
    links = [(link.a, link.b) for link in from_name("random:5x2@7").links if link.b[0] == "s"]
    assert links == [("s3", "s2"), ("s2", "s4"), ("s4", "s1"), ("s3", "s5"), ("s1", "s2")]


@pytest.mark.parametrize(
    "name", ["", "ring", "ring:", "ring:x", "ring:-3", "ring:3x3", "torus:4", "mesh:4", "ring:٣"]
)
def test_an_unknown_name_is_answered_with_the_known_ones(name: str) -> None:
    with pytest.raises(
        TopologyError, match=r"names no topology; known names: line:3, ring:20, .*random:20x3@7"
    ):
        from_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "ring:0",
        "line:10001",
        "ring:999999999",
        "star:0",
        "star:10000",
        "torus:0x5",
        "torus:101x100",
        "fat-tree:0",
        "fat-tree:3",
        "fat-tree:4x5",
        "fat-tree:4x0",
        "fat-tree:999999998",
        "random:20x1@7",
        "random:20x20@7",
        "random:10000x9999@7",
        "random:0x0@7",
    ],
)
def test_sizes_out_of_bounds_are_refused_at_once(name: str) -> None:
    with pytest.raises(TopologyError, match=f"^'{name}': .*; (give|ask)"):
        from_name(name)


def test_the_largest_size_is_possible() -> None:
    assert len(from_name("ring:10000").switches) == 10_000
