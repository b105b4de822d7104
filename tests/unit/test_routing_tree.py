"""Trees and demands on examples, those of seed 000 §3.2 among them."""

from __future__ import annotations

from time import perf_counter

import pytest

from plerion.index.dz import Dz
from plerion.index.dzset import EVERYTHING, DzSet
from plerion.routing.demand import Demand, demands
from plerion.routing.interest import Advertisement, AdvertisementId, Subscription, SubscriptionId
from plerion.routing.tree import Forest, Tree, forest, sources, spanning
from plerion.topology import HostId, Link, Port, SwitchId, Topology, line, ring, star

LINE = line(3)
S1, S2, S3 = LINE.switches
H1, H2, H3 = LINE.hosts


def sends(host: HostId, *texts: str, name: str = "a") -> Advertisement:
    return Advertisement(AdvertisementId(name), host, DzSet.parse(*texts))


def wants(host: HostId, *texts: str) -> Subscription:
    return Subscription(SubscriptionId("q"), host, DzSet.parse(*texts))


def grown(*advertisements: Advertisement, max_trees: int = 64) -> tuple[tuple[str, str], ...]:
    """(root, DZ) of every tree."""
    made = forest(LINE, advertisements, max_trees)
    return tuple((tree.root, str(tree.dz)) for tree in made.trees)


def test_case_1_a_covered_advertisement_joins_the_tree() -> None:
    assert grown(sends(H1, "1"), sends(H2, "11")) == (("s1", "{1}"),)


def test_case_2_a_covering_advertisement_joins_and_opens_a_tree_for_the_rest() -> None:
    assert grown(sends(H1, "00"), sends(H2, "0")) == (("s1", "{00}"), ("s2", "{01}"))


def test_case_3_a_disjoint_advertisement_opens_a_tree() -> None:
    assert grown(sends(H1, "00"), sends(H3, "1")) == (("s1", "{00}"), ("s3", "{1}"))


def test_an_advertisement_of_several_cells_joins_some_and_opens_one_tree_for_all_others() -> None:
    trees = grown(sends(H1, "000"), sends(H2, "11"), sends(H3, "00", "10", "111"))
    assert trees == (("s1", "{000}"), ("s2", "{11}"), ("s3", "{001, 10}"))


def test_trees_merge_above_a_threshold_into_coarser_cells() -> None:
    halves = sends(H1, "0000", "0010"), sends(H2, "0001", "0011")
    assert grown(*halves) == (("s1", "{0000, 0010}"), ("s2", "{0001, 0011}"))
    assert grown(*halves, max_trees=1) == (("s1", "{00}"),)


def test_the_newest_tree_merges_with_the_one_that_it_completes() -> None:
    three = sends(H1, "1"), sends(H2, "000"), sends(H3, "001")
    assert grown(*three, max_trees=2) == (("s1", "{1}"), ("s2", "{00}"))
    assert grown(*three[1:], three[0], max_trees=2) == (("s2", "{000, 1}"), ("s3", "{001}"))


def test_a_host_that_is_cut_off_opens_no_tree_but_is_not_forgotten() -> None:
    alive = LINE.without([S1])
    made = forest(alive, [sends(H1, "0"), sends(H3, "1")])
    assert made.trees == (Tree(S3, DzSet.parse("1")),)
    assert len(made.advertisements) == 2
    assert [source.publishers for source in sources(made, alive)] == [frozenset({H3})]


def test_no_advertisement_no_tree() -> None:
    assert forest(LINE, []) == Forest()
    assert sources(Forest(), LINE) == []
    assert grown(Advertisement(AdvertisementId("a"), H1, DzSet())) == ()


def test_sources_inside_another_name_the_publishers_of_both() -> None:
    made = forest(LINE, [sends(H1, "1"), sends(H2, "10"), sends(H3, "101"), sends(H1, "100")])
    listed = [(str(source.dz), sorted(source.publishers)) for source in sources(made, LINE)]
    assert listed == [("1", ["h1"]), ("10", ["h1", "h2"]), ("101", ["h1", "h2", "h3"])]


def test_a_spanning_tree_knows_the_hosts_behind_each_port() -> None:
    behind = spanning(LINE, S1, {H1: 0, H2: 1, H3: 2})
    at = {
        (str(p.node), peer.node): mask for p, mask in behind.items() if (peer := LINE.peer(p.node, p.number))
    }
    assert at == {
        ("s1", "h1"): 0b001,
        ("s2", "h2"): 0b010,
        ("s3", "h3"): 0b100,
        ("s1", "s2"): 0b110,
        ("s2", "s1"): 0b001,
        ("s2", "s3"): 0b100,
        ("s3", "s2"): 0b011,
    }


def square(*latencies: float | None) -> Topology:
    """A ring of four with these latencies from s1 around."""
    plain = ring(4)
    between = [link for link in plain.links if link.b in plain.switches]
    hosts = [link for link in plain.links if link not in between]
    timed = [
        Link(link.a, link.a_port, link.b, link.b_port, None, latency)
        for link, latency in zip(between, latencies, strict=True)
    ]
    return Topology(plain.switches, plain.hosts, (*timed, *hosts))


@pytest.mark.parametrize(
    ("latencies", "unused"),
    [
        ((1.0, 1.0, 1.0, 9.0), {"s4", "s1"}),  # the long way round is quicker
        ((9.0, 1.0, 1.0, 1.0), {"s1", "s2"}),
        ((1.0, 1.0, 9.0, None), {"s3", "s4"}),  # one latency is unknown: hops count, and s2 comes before s4
    ],
)
def test_latencies_decide_where_every_link_states_one(
    latencies: tuple[float | None, ...], unused: set[str]
) -> None:
    network = square(*latencies)
    behind = spanning(network, SwitchId("s1"), {host: i for i, host in enumerate(network.hosts)})
    idle = [
        link for link in network.links if not any(end in behind for end in link.ends) and link.b[0] == "s"
    ]
    assert [{link.a, link.b} for link in idle] == [unused]


def test_of_parallel_links_the_lowest_port_is_taken() -> None:
    twins = Topology(
        (S1, S2),
        (H1, H2),
        (Link("s1", 3, "s2", 3), Link("s1", 2, "s2", 2), Link("s1", 1, "h1", 1), Link("s2", 1, "h2", 1)),
    )
    behind = spanning(twins, S1, {H1: 0, H2: 1})
    assert set(behind) == {Port("s1", 1), Port("s2", 1), Port("s1", 2), Port("s2", 2)}


def demanded(topology: Topology, sent: list[Advertisement], asked: list[Subscription]) -> list[Demand]:
    return list(demands(topology, forest(topology, sent), asked))


def test_a_pair_leaves_a_demand_at_every_hop_and_names_the_host_at_the_last() -> None:
    found = demanded(LINE, [sends(H1, "1")], [wants(H3, "10", "0")])
    hops = [
        (d.switch, str(d.dz), LINE.peer(d.switch, d.in_port), LINE.peer(d.switch, d.out_port), d.host)
        for d in found
    ]
    assert [(s, dz, i and i.node, o and o.node, host) for s, dz, i, o, host in hops] == [
        ("s1", "10", "h1", "s2", None),
        ("s2", "10", "s1", "s3", None),
        ("s3", "10", "s2", "h3", "h3"),
    ]


def test_nobody_is_sent_its_own_events_and_nothing_is_sent_where_no_path_leads() -> None:
    assert demanded(LINE, [sends(H1, "1")], [wants(H1, "1")]) == []
    assert demanded(LINE, [sends(H1, "1")], [wants(H3, "0")]) == []
    (middle,) = (p for p in LINE.ports(S2) if LINE.peer(S2, p) == Port("s3", _port_towards("s3", "s2")))
    apart = LINE.without(links=[Port("s2", middle)])
    assert demanded(apart, [sends(H1, "1")], [wants(H3, "1")]) == []
    assert len(demanded(apart, [sends(H1, "1")], [wants(H2, "1")])) == 2
    assert demanded(LINE.without([S3]), [sends(H1, "1")], [wants(H3, "1")]) == []
    assert demanded(LINE.without([S1]), [sends(H1, "1")], [wants(H3, "1")]) == []


def _port_towards(node: str, peer: str) -> int:
    (port,) = (n.port for n in LINE.neighbours(node) if n.peer == peer)
    return port


def test_the_same_demand_comes_once_for_each_pair_that_needs_it() -> None:
    found = demanded(LINE, [sends(H1, "1"), sends(H1, "11", name="b")], [wants(H2, "11")])
    assert len(found) == 4
    assert len(set(found)) == 2
    assert {d.dz for d in found} == {Dz.parse("11")}


def test_a_forest_costs_its_advertisements_and_not_their_pairs() -> None:
    network = star(5_000)
    sent = [
        Advertisement(AdvertisementId(f"a{i}"), network.hosts[i % 5_000], EVERYTHING) for i in range(50_000)
    ]
    began = perf_counter()
    assert forest(network, sent) == Forest(
        (Tree(network.switches[0], EVERYTHING),), tuple(sent), served=EVERYTHING
    )
    assert perf_counter() - began < 10
