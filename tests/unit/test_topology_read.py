"""Real topologies are read whole; broken ones are refused with file and place."""

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from math import isclose
from pathlib import Path

import pytest

from plerion.topology import (
    Link,
    Reading,
    Topology,
    TopologyError,
    TopologyWarning,
    fat_tree,
    load,
    parse_topology,
    read_topology,
    ring,
)
from plerion.topology.build import MAX_LINKS, MAX_SWITCHES

TOPOLOGIES = Path(__file__).resolve().parents[3] / "shared" / "data" / "topologies"
REAL = sorted(TOPOLOGIES.glob("*.graphml")) + sorted(TOPOLOGIES.glob("*.json"))
TOPOHUB = Path(str(files("topohub"))) / "data"


def test_the_real_topologies_are_there() -> None:
    assert len(REAL) == 33, f"expected 33 topologies in {TOPOLOGIES}"


def plain_counts(path: Path) -> tuple[int, int]:
    """Nodes and edges without self loops, counted without any of the code under test."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".graphml":
        edges = re.findall(r'<edge [^>]*source="([^"]*)" target="([^"]*)"', text)
        return len(re.findall(r"<node id=", text)), sum(a != b for a, b in edges)
    document = json.loads(text)
    return len(document["nodes"]), sum(edge["source"] != edge["target"] for edge in document["edges"])


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_every_real_topology_is_read_whole(path: Path) -> None:
    reading = read_topology(path)
    topology = reading.topology
    nodes, edges = plain_counts(path)
    assert len(topology.switches) == nodes
    assert len(topology.links) == edges + nodes
    assert [topology.attachment(host).node for host in topology.hosts] == list(topology.switches)
    assert list(reading.labels) == list(topology.switches)
    connected = len(topology.components()) == 1
    assert connected == (reading.warnings == ()) == (path.name != "zoo_Oteglobe.graphml")


def test_a_disconnected_topology_is_kept_and_warned_of() -> None:
    with pytest.warns(TopologyWarning, match="7 components of 83, 3, 2, 2, 1, 1, 1 switches") as caught:
        topology = load(TOPOLOGIES / "zoo_Oteglobe.graphml")
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert len(topology.components()) == 7


def links_between(reading: Reading, a: str, b: str) -> Iterator[Link]:
    names = {label: switch for switch, label in reading.labels.items()}
    return (link for link in reading.topology.links if {link.a, link.b} == {names[a], names[b]})


def test_the_zoos_abilene_has_fibre_latencies_and_labels() -> None:
    reading = read_topology(TOPOLOGIES / "zoo_Abilene.graphml")
    (link,) = links_between(reading, "New York", "Chicago")
    assert link.latency is not None
    assert isclose(link.latency, 1145 / 200_000, rel_tol=0.01)


def test_topohubs_distances_become_latencies() -> None:
    path = TOPOLOGIES / "sndlib_polska.json"
    distances = [edge["dist"] for edge in json.loads(path.read_text())["edges"]]
    latencies = [link.latency for link in read_topology(path).topology.links[: len(distances)]]
    assert latencies == [distance / 200_000 for distance in distances]


def test_the_zoos_link_speeds_become_capacities() -> None:
    capacities = {link.capacity for link in read_topology(TOPOLOGIES / "zoo_Ulaknet.graphml").topology.links}
    assert capacities == {5e9, None}


@pytest.mark.parametrize("name", ["sndlib/germany50", "topozoo/Abilene", "backbone/africa", "gabriel/25/0"])
def test_topohubs_own_topologies_are_read(name: str) -> None:
    path = TOPOHUB / f"{name}.json"
    assert path.is_file(), f"topohub no longer holds {path}"
    topology = read_topology(path).topology
    assert (len(topology.switches), len(topology.links) - len(topology.hosts)) == plain_counts(path)


def test_names_and_our_own_files_are_read_and_keep_their_names(tmp_path: Path) -> None:
    assert read_topology("ring:20") == Reading(ring(20))
    path = tmp_path / "any.suffix"
    path.write_text(json.dumps(fat_tree(4).to_json()))
    assert read_topology(path) == read_topology(str(path)) == Reading(fat_tree(4))
    assert load(path) == fat_tree(4)


def parsed(document: object) -> Reading:
    return parse_topology(json.dumps(document).encode(), "net.json")


def test_our_own_file_without_hosts_gets_one_at_each_switch() -> None:
    document = {"switches": ["b", "a"], "links": [{"a": "a", "a_port": 7, "b": "b", "b_port": 1}]}
    reading = parsed(document)
    assert reading.warnings == ()
    assert reading.topology.hosts == ("h1", "h2")
    assert [str(reading.topology.attachment(host)) for host in reading.topology.hosts] == ["b:2", "a:8"]


def test_a_misspelt_field_of_our_own_file_is_warned_of() -> None:
    links = [{"a": "a", "a_port": 1, "b": "b", "b_port": 1, "latencey": 1}]
    reading = parsed({"switches": ["a", "b"], "links": links, "name": "net"})
    assert reading.warnings == (
        "unknown field 'name' ignored",
        "unknown field 'latencey' at links[0] ignored",
    )


def edges(*pairs: tuple[int, int]) -> list[dict[str, int]]:
    return [{"source": a, "target": b} for a, b in pairs]


def test_self_loops_are_left_out_and_parallel_edges_kept() -> None:
    reading = parsed({"nodes": [{"id": 1}, {"id": 2}], "links": edges((1, 2), (2, 2), (2, 1))})
    assert reading.warnings == ("1 self loop left out",)
    assert len(reading.topology.links) == 2 + 2


def test_the_two_arcs_of_a_directed_graph_are_one_link() -> None:
    nodes = [{"id": i} for i in range(3)]
    reading = parsed({"directed": True, "nodes": nodes, "edges": edges((0, 1), (1, 0), (0, 1), (1, 2))})
    assert reading.warnings == ("the graph is directed; its 4 arcs became 3 links that carry both ways",)
    assert len(reading.topology.links) == 3 + 3


def test_labels_may_repeat_and_hold_any_text() -> None:
    labels = parsed(
        {"nodes": [{"id": 1, "name": "?"}, {"id": 2, "label": "?"}, {"id": "\ud800"}], "edges": []}
    ).labels
    assert labels == {"s1": "?", "s2": "?", "s3": "?"}


BOMB = b'<!DOCTYPE lolz [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><graphml>&b;</graphml>'


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "net: neither JSON nor GraphML"),
        (b"[1]", "net: neither JSON nor GraphML"),
        (b'{\n "switches": [,]}', "net: line 2, column 15: not well-formed JSON: Expecting value"),
        (b'{"switches": "\xff"}', "net: byte 14: not utf-8: invalid start byte"),
        (b'{"a":' + b"[" * 100_000, "net: not a topology: nested too deeply"),
        (b'{"a":' + b"1" * 5_000 + b"}", "net: not a topology: Exceeds the limit"),
        (b'{"x": 1}', "net: keys ['x']; give `switches`, `hosts` and `links`, or `nodes` and `edges`"),
        (b'{"switches": []}', "net: switches: no switches; give at least one"),
        (b'{"switches": ["s1", 2]}', "net: switches[1]: Expected `str`, got `int`"),
        (b'{"nodes": [], "edges": []}', "net: the file has no nodes"),
        (b'{"nodes": [{"id": 1}]}', "net: links: expected a list, found nothing"),
        (b'{"nodes": [{"id": 1}, {"id": 1}], "edges": []}', "net: nodes[1]: 1 is also the id of nodes[0]"),
        (
            b'{"nodes": [{"id": true}], "edges": []}',
            "net: nodes[0].id: expected a number or a text, found True",
        ),
        (
            b'{"nodes": [{"id": 1}], "edges": [{"source": 1, "target": 2}]}',
            "net: edges[0].target: there is no node with id 2",
        ),
        (
            b'{"nodes": [{"id": 1}], "edges": [{"source": 1, "target": 1, "dist": NaN}]}',
            "net: edges[0].dist: distance nan",
        ),
        (b"<graphml>\n <graph></graphml>", "net: line 2, column 11: not well-formed XML: mismatched tag"),
        (b"<svg/>", "net: no graph in <svg>"),
        (b"<graphml><graph/></graphml>", "net: the file has no nodes"),
        (b"<graphml><graph><node/></graph></graphml>", "net: node 1: <node> without id"),
        (
            b'<graphml><graph><node id="a"/><edge source="a" target="b"/></graph></graphml>',
            "net: edge 1: there is no node 'b'",
        ),
        (BOMB, "net: <!DOCTYPE>: document type 'lolz' with 'no address' is refused"),
        (b'<?xml version="1.0" encoding="nonsense"?><graphml/>', "net: line 1"),
        (b'<?xml version="1.0" encoding="big5"?><graphml/>', "net: line 1"),
    ],
)
def test_a_broken_file_is_refused_with_its_place(raw: bytes, message: str) -> None:
    with pytest.raises(TopologyError) as caught:
        parse_topology(raw, "net")
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("latitude", "longitude"), [("90.5", "0"), ("0", "1e308"), ("-1e308", "0"), ("nan", "0")]
)
def test_a_place_that_is_not_on_the_globe_is_refused(latitude: str, longitude: str) -> None:
    keys = '<key id="a" attr.name="Latitude"/><key id="b" attr.name="Longitude"/>'
    node = f'<node id="far"><data key="a">{latitude}</data><data key="b">{longitude}</data></node>'
    with pytest.raises(TopologyError, match=r"net: node 'far': position .*; give degrees"):
        parse_topology(f"<graphml>{keys}<graph>{node}</graph></graphml>".encode(), "net")


def test_a_file_has_no_more_switches_and_links_than_a_name_can_ask_for() -> None:
    nodes = "".join(f'<node id="{i}"/>' for i in range(MAX_SWITCHES + 1))
    edges = '<edge source="1" target="2"/>' * (MAX_LINKS + 1)
    many = {"switches": [f"s{i}" for i in range(MAX_SWITCHES + 1)]}
    cable = {"a": "s1", "a_port": 1, "b": "s2", "b_port": 1}
    for raw, said in (
        (f"<graphml><graph>{nodes}</graph></graphml>", "net: switches: 10001 switches"),
        (
            f'<graphml><graph><node id="1"/><node id="2"/>{edges}</graph></graphml>',
            "net: links: 500001 links",
        ),
        (json.dumps(many), "net: switches: 10001 switches"),
        (json.dumps({"switches": ["s1", "s2"], "links": [cable] * (MAX_LINKS + 1)}), "500001 links"),
        (json.dumps({"nodes": [{"id": i} for i in range(MAX_SWITCHES + 1)], "edges": []}), "10001 switches"),
    ):
        with pytest.raises(TopologyError, match=said):
            parse_topology(raw.encode(), "net")


def test_utf_16_and_byte_order_marks_are_read() -> None:
    text = '<?xml version="1.0" encoding="utf-16"?><graphml><graph><node id="ä"/></graph></graphml>'
    assert parse_topology(text.encode("utf-16")).labels == {"s1": "ä"}
    document = json.dumps(ring(3).to_json())
    for encoding in ("utf-8-sig", "utf-16", "utf-32"):
        assert parse_topology(document.encode(encoding)).topology == ring(3)


def test_what_graphml_has_beyond_one_graph_of_edges_is_warned_of() -> None:
    raw = b"<graphml><graph edgedefault='directed'><node id='a'/><hyperedge/></graph><graph/></graphml>"
    assert parse_topology(raw).warnings == (
        "2 graphs in the file; only the first one was read",
        "1 hyperedges left out; a link has two ends",
        "the graph is directed; its 0 arcs became 0 links that carry both ways",
    )


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        TopologyError, match=r"rnig:20: no such file; give an existing file or one of .* ring:20"
    ):
        read_topology("rnig:20")
    with pytest.raises(TopologyError, match="cannot be read: Is a directory"):
        read_topology(tmp_path)
    with pytest.raises(TopologyError, match="is no path"):
        read_topology("\0")
    with pytest.raises(TopologyError, match="larger than 67108864 bytes"):
        read_topology("/dev/zero")


def test_the_same_network_is_read_from_every_stored_form() -> None:
    reading = read_topology(TOPOLOGIES / "zoo_Kdl.graphml")
    assert Topology.from_json(json.loads(json.dumps(reading.topology.to_json()))) == reading.topology
