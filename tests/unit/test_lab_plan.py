"""A lab's plan: names that fit and never clash, a cable for each link, a port for each port, and clear refusals."""

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plerion.lab import LabError, Options, Plan, Tls
from plerion.lab.bridges import attached, bridge_words, limit_words, network_words, started, stopped
from plerion.lab.names import HOST_INTERFACE, INTERFACE_CHARACTERS, Names, lab_of
from plerion.lab.plan import MAX_SWITCHES, Datapath, Links
from plerion.lab.wires import cables, host_lines, namespaces, own_interfaces, shapes
from plerion.topology import HostId, Link, Port, SwitchId, Topology, line, ring, star
from plerion.topology.link import MAX_PORT
from tests.laws.topologies import topologies

lab_names = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,31}", fullmatch=True)
homes = st.sampled_from(["", "/tmp/a", "/tmp/b"])
kinds = st.sampled_from([("netdev", "veth"), ("netdev", "patch"), ("dummy", None)])
labels = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FFF), min_size=1, max_size=300).filter(
    lambda text: text.isprintable() and ":" not in text and " " not in text
)


def plan(
    topology: Topology, name: str = "demo", datapath: Datapath = "netdev", links: Links | None = None
) -> Plan:
    return Plan(topology, name, Options(datapath=datapath, links=links))


def repeated(words: list[str]) -> set[str]:
    return {word for word, count in Counter(words).items() if count > 1}


def test_a_repeated_name_is_noticed() -> None:
    assert repeated(["a", "b", "a"]) == {"a"}


@given(lab_names, homes, st.integers(1, MAX_SWITCHES), st.integers(1, MAX_PORT))
def test_every_name_fits_the_kernel_and_is_known_as_the_labs_own(
    name: str, home: str, switch: int, port: int
) -> None:
    names = Names(name, home)
    for word in (names.bridge(switch), names.interface(switch, port)):
        assert len(word) <= INTERFACE_CHARACTERS
        assert names.is_interface(word)
        assert not names.is_interface(f"{word}x")
        assert not names.is_interface(f"e{word}")


@given(st.builds(Names, lab_names, homes), st.builds(Names, lab_names, homes))
def test_labs_of_another_name_or_home_share_nothing(one: Names, other: Names) -> None:
    assert other.is_interface(one.interface(1, 1)) == (one.mark == other.mark)
    assert other.is_namespace(one.namespace("h1", 1)) == (one == other)


def test_marks_of_many_labs_differ() -> None:
    labs = [Names(f"lab{n}", home) for n in range(100) for home in ("", "/tmp/a", "/tmp/b")]
    assert not repeated([lab.mark for lab in labs])


@given(topologies(), lab_names)
def test_no_two_parts_of_a_lab_share_a_name(topology: Topology, name: str) -> None:
    made = plan(topology, name)
    words = [made.bridge(switch) for switch in topology.switches] + list(made.interfaces())
    assert not repeated(words)
    assert len(list(made.interfaces())) == sum(len(topology.ports(switch)) for switch in topology.switches)


@given(st.lists(labels, min_size=1, max_size=8, unique=True), lab_names)
def test_hosts_of_any_name_have_namespaces_of_their_own(hosts: list[str], name: str) -> None:
    switch = "s" * 301
    links = tuple(Link(switch, port, host, 1) for port, host in enumerate(hosts, start=1))
    topology = Topology((SwitchId(switch),), tuple(map(HostId, hosts)), links)
    spaces = [plan(topology, name).namespace(host) for host in hosts]
    assert not repeated(spaces)
    assert all(lab_of(space) == name for space in spaces)
    assert all(len(space) < 255 and "/" not in space and " " not in space for space in spaces)


@pytest.mark.parametrize(
    "foreign",
    ["", "plerion", "plerion.demo", "plerion..h1", "plerion.A.h1", "other.demo.h1", "plerion-00000.demo.h1"],
)
def test_a_namespace_of_somebody_else_is_left_alone(foreign: str) -> None:
    assert lab_of(foreign) is None


@given(topologies(), kinds)
def test_every_port_is_made_once_with_its_own_number(
    topology: Topology, kind: tuple[Datapath, Links | None]
) -> None:
    made = plan(topology, datapath=kind[0], links=kind[1])
    text = " ".join(network_words(made))
    asked = re.findall(r"add-port (\S+) (\S+) -- set Interface (\S+) ofport_request=(\d+)", text)
    wanted = [
        (made.bridge(switch), *[made.interface(Port(switch, number))] * 2, str(number))
        for switch in topology.switches
        for number in topology.ports(switch)
    ]
    assert asked == wanted


@given(topologies())
def test_every_link_is_one_cable(topology: Topology) -> None:
    made = plan(topology)
    ends = [re.findall(r"(?:add|name) (\S+)", line) for line in cables(made)]
    assert len(ends) == len(topology.links)
    for link, (near, far) in zip(topology.links, ends, strict=True):
        wanted = [made.interface(end) if end.node in made.numbers else HOST_INTERFACE for end in link.ends]
        assert {near, far} == set(wanted)
    assert len(namespaces(made)) == len(topology.hosts)


@given(topologies())
def test_patch_ports_point_at_each_other(topology: Topology) -> None:
    made = plan(topology, links="patch")
    text = " ".join(network_words(made))
    peers = dict(re.findall(r"Interface (\S+) ofport_request=\d+ type=patch options:peer=(\S+)", text))
    assert all(peers[peer] == one for one, peer in peers.items())
    between = [link for link in topology.links if {link.a, link.b} <= made.numbers.keys()]
    assert len(peers) == 2 * len(between)
    assert len(cables(made)) == len(topology.hosts)


@given(topologies())
def test_a_lab_of_dummies_asks_nothing_of_the_kernel(topology: Topology) -> None:
    made = plan(topology, datapath="dummy")
    assert cables(made) == namespaces(made) == list(made.interfaces()) == []
    assert " ".join(network_words(made)).count("type=dummy") == len(topology.hosts) + len(topology.switches)


@given(topologies(), st.data())
def test_a_switch_that_starts_again_is_as_it_was(topology: Topology, data: st.DataObject) -> None:
    made = plan(topology, datapath="dummy")
    switch = data.draw(st.sampled_from(topology.switches))
    everybody = {made.bridge(other) for other in topology.switches}
    gone = {word for word in stopped(made, switch) if word.startswith(Names("demo").mark)}
    back = " ".join(started(made, switch, everybody))
    assert " ".join(bridge_words(made, switch)) in back
    far = [
        made.interface(Port(f.peer, f.peer_port))
        for f in topology.neighbours(switch)
        if f.peer in made.numbers
    ]
    assert set(far) <= gone
    assert all(back.count(f"add-port {made.bridge(topology_of(name, made))} {name} ") == 1 for name in far)
    assert "add-port" not in " ".join(started(made, switch, ())).replace(
        f"add-port {made.bridge(switch)} ", ""
    )


def topology_of(interface: str, made: Plan) -> str:
    """The switch that an interface belongs to."""
    number = int(re.fullmatch(r".{6}s(\d+)p\d+", interface)[1])  # type: ignore[index]  # a port of a switch
    return made.topology.switches[number - 1]


def test_switches_are_set_up_to_be_fast_and_obedient() -> None:
    text = " ".join(bridge_words(plan(line(2)), SwitchId("s2")))
    assert text.count("prefixes=ipv6_dst,ipv6_src") == 2
    for setting in (
        "fail_mode=secure",
        "protocols=OpenFlow13,OpenFlow14",
        "other-config:datapath-id=0000000000000002",
        "other-config:disable-in-band=true",
        'target="tcp:127.0.0.1:6653"',
    ):
        assert setting in text
    assert "Controller" not in " ".join(bridge_words(Plan(line(2), "demo", Options(None)), SwitchId("s2")))


def test_a_table_limit_is_for_events_only_and_can_be_lifted() -> None:
    made = Plan(line(2), "demo", Options(table_limit=7))
    text = " ".join(bridge_words(made, SwitchId("s1")))
    assert text.count("flow_limit=7 overflow_policy=refuse") == 1
    assert "flow_limit" not in " ".join(limit_words(made, "s1", None, "refuse", 1))
    assert "flow_limit=0 overflow_policy=evict" in " ".join(limit_words(made, "s1", 0, "evict", 0))
    for wrong in ((-1, "refuse", 1), (1, "forget", 1), (1, "refuse", 9)):
        with pytest.raises(LabError):
            limit_words(made, "s1", *wrong)


def test_hosts_have_the_addresses_of_the_topology() -> None:
    made = plan(star(3))
    assert "address 02:00:00:00:00:02 netns plerion.demo.h2" in "\n".join(cables(made))
    assert "address add fd00::2/128 dev eth0 nodad" in host_lines(made, HostId("h2"))


def test_a_link_is_shaped_at_both_its_ends_and_one_of_which_nothing_is_known_is_not() -> None:
    links = (
        Link("s1", 1, "s2", 1, capacity=2.5e9, latency=0.003),
        Link("s1", 2, "h1", 1, capacity=1e6),
        Link("s2", 2, "h2", 1),
    )
    made = plan(Topology((SwitchId("s1"), SwitchId("s2")), (HostId("h1"), HostId("h2")), links))
    found = shapes(made)
    delayed = "root netem delay 3000us limit 100000 rate 2500000000bit"
    paced = "root tbf rate 1000000bit burst 3100 limit 1000000"
    near, far, host = (made.interface(Port.parse(port)) for port in ("s1:1", "s2:1", "s1:2"))
    assert found == {
        "": [
            f"qdisc replace dev {device} {how}"
            for device, how in ((near, delayed), (far, delayed), (host, paced))
        ],
        "plerion.demo.h1": [f"qdisc replace dev eth0 {paced}"],
    }
    assert own_interfaces(made, "s1") == [near, host]


@pytest.mark.parametrize("name", ["", "-a", "a.b", "A", "a/b", "ä", "a" * 33, "a b", "a\n"])
def test_a_name_that_cannot_be_found_again_is_refused(name: str) -> None:
    with pytest.raises(LabError, match="cannot name a lab"):
        plan(line(2), name)


def test_a_network_that_is_too_large_or_empty_is_refused_in_one_line() -> None:
    assert plan(ring(MAX_SWITCHES))
    with pytest.raises(LabError, match=r"^the topology has 65 switches; a lab has at most 64$"):
        plan(ring(MAX_SWITCHES + 1))
    with pytest.raises(LabError, match="no switches"):
        plan(Topology((), (), ()))


FILES = Tls(Path("key"), Path("certificate"), Path("authority"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"datapath": "kernel"},
        {"links": "rope"},
        {"datapath": "dummy", "links": "veth"},
        {"datapath": "dummy", "shape": True},
        {"controller": "tcp"},
        {"controller": 'tcp:a"b'},
        {"controller": "ssl:127.0.0.1:6653"},
        {"table_limit": 0},
    ],
)
def test_options_that_contradict_themselves_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(LabError) as refusal:
        Options(**wrong)  # type: ignore[arg-type]  # on purpose
    assert "\n" not in str(refusal.value)


def test_a_controller_behind_tls_is_told_with_its_files() -> None:
    made = Plan(line(2), "demo", Options("ssl:127.0.0.1:6653", tls=FILES))
    assert network_words(made)[:6] == ["init", "--", "set-ssl", "key", "certificate", "authority"]


def test_what_is_not_in_the_lab_is_refused_by_name() -> None:
    made = plan(line(2))
    for wrong in (
        lambda: made.bridge("s9"),
        lambda: made.interface(Port("s1", 9)),
        lambda: made.link(Port("s1", 9)),
        lambda: made.link(Port("x", 1)),
        lambda: made.namespace("h9"),
    ):
        with pytest.raises(ValueError, match="there is no"):
            wrong()


def test_a_link_that_is_healed_is_made_anew() -> None:
    made = plan(line(2), datapath="dummy")
    words = " ".join(attached(made, made.link(Port("s1", 1))))
    assert words.index("del-port") < words.index("add-port")
