"""The topology value: what it refuses and says, addresses, drawings."""

from dataclasses import replace
from math import inf, nan

import pytest

from plerion.topology import HostId, Link, Port, SwitchId, Topology, TopologyError, ipv6, line, mac, star
from plerion.topology.link import MAX_PORT

S1, S2 = SwitchId("s1"), SwitchId("s2")
H1, H2 = HostId("h1"), HostId("h2")
GOOD = line(2)


def refusal(*links: Link, switches: tuple[SwitchId, ...] = (S1, S2), hosts: tuple[HostId, ...] = ()) -> str:
    with pytest.raises(TopologyError) as caught:
        Topology(switches, hosts, links)
    assert caught.value.what
    assert caught.value.where
    assert caught.value.fix
    return str(caught.value)


def test_names_must_be_unique_and_printable() -> None:
    assert "'s1' is the name of more than one switch" in refusal(switches=(S1, S1))
    assert "'h1' is the name of more than one host" in refusal(hosts=(H1, H1))
    assert "'s1' names both a switch and a host" in refusal(hosts=(HostId("s1"),))
    for name in ("", "a:1", "a b", "a\n", "\ud800"):
        assert "cannot name a switch" in refusal(switches=(SwitchId(name),))


def test_links_must_join_known_ports_once() -> None:
    link = Link("s1", 1, "s2", 1)
    assert "no node 's9'" in refusal(replace(link, b="s9"))
    assert "port s1:1 is already used by link 's1:1–s2:1'" in refusal(link, replace(link, b_port=2))
    assert "s1 is linked to itself" in refusal(Link("s1", 1, "s1", 2))
    for port in (0, -1, MAX_PORT + 1, 0xFFFFFF00):
        assert f"port {port} of s2 is out of range" in refusal(replace(link, b_port=port))
    Topology((S1, S2), (), (replace(link, b_port=MAX_PORT),))


def test_amounts_must_be_finite_and_not_negative() -> None:
    link = Link("s1", 1, "s2", 1)
    for amount in (-1.0, nan, inf, -inf):
        assert "latency" in refusal(replace(link, latency=amount))
        assert "capacity" in refusal(replace(link, capacity=amount))
    assert "capacity 0" in refusal(replace(link, capacity=0))
    Topology((S1, S2), (), (replace(link, latency=0, capacity=1),))


def test_a_host_has_exactly_one_link_and_that_to_a_switch() -> None:
    up = Link("s1", 1, "h1", 1)
    assert "h1: the host has 0 links" in refusal(hosts=(H1,))
    assert "h1: the host has 2 links" in refusal(up, Link("s2", 1, "h1", 2), hosts=(H1,))
    assert "both ends are hosts" in refusal(Link("h1", 1, "h2", 1), hosts=(H1, H2))


def test_parallel_links_are_allowed() -> None:
    topology = Topology((S1, S2), (), (Link("s1", 1, "s2", 1), Link("s2", 2, "s1", 2)))
    assert [n.peer for n in topology.neighbours("s1")] == ["s2", "s2"]
    assert topology.without(links=[Port("s1", 2)]).links == (Link("s1", 1, "s2", 1),)


def test_asking_about_what_is_not_there_says_so() -> None:
    assert GOOD.peer("s1", 77) is None
    with pytest.raises(TopologyError, match="no node 'x'"):
        GOOD.neighbours("x")
    with pytest.raises(TopologyError, match="no host 's1'"):
        GOOD.attachment(HostId("s1"))
    with pytest.raises(TopologyError, match="no switch 'h1'"):
        GOOD.without([SwitchId("h1")])
    with pytest.raises(TopologyError, match="no link at port s1:9"):
        GOOD.without(links=[Port("s1", 9)])


def test_a_port_is_written_node_colon_number() -> None:
    assert str(Port("s1", 2)) == "s1:2"
    assert Port.parse("s1:2") == Port("s1", 2)
    for text in ("", "s1", ":2", "s1:", "s1:x", "s1:-1", "s1:²", "s1:999999"):
        with pytest.raises(TopologyError, match="is not a port"):
            Port.parse(text)


def test_addresses_follow_from_the_hosts_position() -> None:
    assert [mac(GOOD, host) for host in GOOD.hosts] == ["02:00:00:00:00:01", "02:00:00:00:00:02"]
    assert [ipv6(GOOD, host) for host in GOOD.hosts] == ["fd00::1", "fd00::2"]
    assert mac(star(299), HostId("h300")) == "02:00:00:00:01:2c"
    assert ipv6(star(299), HostId("h300")) == "fd00::12c"


def test_a_failed_switch_takes_its_host_along() -> None:
    rest = GOOD.without([S1])
    assert (rest.switches, rest.hosts) == (("s2",), ("h2",))
    assert rest.attachment(H2) == Port("s2", 2)
    assert GOOD.without(links=[Port("h1", 1)]).hosts == ("h2",)


def test_json_has_the_documented_form() -> None:
    link = Link("s1", 1, "s2", 1, capacity=1e9, latency=0.5)
    document = Topology((S1, S2), (H1,), (link, Link("s1", 2, "h1", 1))).to_json()
    assert document == {
        "switches": ["s1", "s2"],
        "hosts": ["h1"],
        "links": [
            {"a": "s1", "a_port": 1, "b": "s2", "b_port": 1, "capacity": 1e9, "latency": 0.5},
            {"a": "s1", "a_port": 2, "b": "h1", "b_port": 1},
        ],
    }


def test_a_document_of_the_wrong_shape_is_refused_with_the_path() -> None:
    document = GOOD.to_json() | {"links": [{"a": "s1", "a_port": "1", "b": "s2", "b_port": 1}]}
    with pytest.raises(TopologyError, match=r"^links\[0\]\.a_port: Expected `int`, got `str`"):
        Topology.from_json(document)


def test_the_drawing_escapes_what_graphviz_would_read() -> None:
    odd = Topology((SwitchId('a"\\'),), (H1,), (Link('a"\\', 1, "h1", 1),))
    assert odd.to_dot({'a"\\': 'new\n"York"'}).splitlines() == [
        "graph topology {",
        r'  "a\"\\" [shape=ellipse, label="a\"\\\nnew\n\"York\""];',
        '  "h1" [shape=box, label="h1"];',
        r'  "a\"\\" -- "h1" [taillabel="1", headlabel="1"];',
        "}",
    ]
