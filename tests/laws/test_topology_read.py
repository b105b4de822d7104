"""Laws of reading and generating: no input, however broken, raises anything but TopologyError."""

import json
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plerion.topology import Topology, TopologyError, fat_tree, parse_topology, random_graph
from tests.laws.topologies import topologies

GRAPHML = b"""<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="Latitude" attr.type="double" for="node" id="d1" />
  <key attr.name="Longitude" attr.type="double" for="node" id="d2" />
  <key attr.name="label" attr.type="string" for="node" id="d3" />
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d4" />
  <graph edgedefault="undirected">
    <node id="0"><data key="d1">48.7</data><data key="d2">9.1</data><data key="d3">Stuttgart</data></node>
    <node id="1"><data key="d1">52.5</data><data key="d2">13.4</data><data key="d3">Berlin</data></node>
    <node id="2" />
    <edge source="0" target="1"><data key="d4">1e9</data></edge>
    <edge source="1" target="2" />
    <edge source="2" target="2" />
  </graph>
</graphml>
"""
NODE_LINK = {
    "directed": False,
    "nodes": [{"id": 0, "name": "a"}, {"id": "x"}, {"id": 2}],
    "edges": [{"source": 0, "target": "x", "dist": 120.5}, {"source": "x", "target": 2}],
}

texts = st.text('sh12:"\\ \n\u00e9\ud800', max_size=4)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**400, -1, 0, 65279, 65280]),
    st.floats(),
    texts,
    st.sampled_from(["s1", "h1", "s2"]),
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def slots(value: object) -> Iterator[tuple[list[object] | dict[str, object], int | str]]:
    """Every place inside a JSON document that can be overwritten or deleted."""
    if isinstance(value, list):
        yield from ((value, i) for i in range(len(value)))
        yield from (slot for inner in value for slot in slots(inner))
    elif isinstance(value, dict):
        yield from ((value, key) for key in value)
        yield from (slot for inner in value.values() for slot in slots(inner))


def mutated(document: object, data: st.DataObject) -> object:
    document = deepcopy(document)
    for _ in range(data.draw(st.integers(1, 3))):
        places = list(slots(document))
        if not places:
            break
        holder, key = data.draw(st.sampled_from(places))
        if data.draw(st.booleans()):
            holder[key] = data.draw(json_values)  # type: ignore[index]  # a list or a dict
        else:
            del holder[key]  # type: ignore[arg-type]  # a list or a dict
    return document


@given(topologies(max_switches=4), st.data())
def test_a_broken_topology_document_raises_only_topology_errors(
    topology: Topology, data: st.DataObject
) -> None:
    document = mutated(topology.to_json(), data)
    with suppress(TopologyError):
        assert isinstance(Topology.from_json(document), Topology)
    with suppress(TopologyError):
        parse_topology(json.dumps(document).encode())


@given(st.data())
def test_a_broken_node_link_document_raises_only_topology_errors(data: st.DataObject) -> None:
    with suppress(TopologyError):
        reading = parse_topology(json.dumps(mutated(NODE_LINK, data)).encode())
        reading.topology.to_dot(reading.labels).encode()


@given(json_values)
def test_any_json_value_is_a_topology_or_a_topology_error(value: object) -> None:
    with suppress(TopologyError):
        Topology.from_json(value)
    with suppress(TopologyError):
        parse_topology(json.dumps(value).encode())


fragments = st.binary(max_size=8) | st.sampled_from(
    [
        b"<!DOCTYPE a [<!ENTITY b 'c'>]>",
        b"&b;",
        b"nan",
        b"1e999",
        b"<graph>",
        b"</graph>",
        b'"',
        b"utf-16",
        b"big5",
    ]
)
originals = st.sampled_from(
    [GRAPHML, json.dumps(NODE_LINK).encode(), json.dumps(fat_tree(2).to_json()).encode()]
)


@given(
    originals,
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 40), fragments), min_size=1, max_size=4),
)
def test_broken_bytes_raise_only_topology_errors(raw: bytes, edits: list[tuple[int, int, bytes]]) -> None:
    for start, length, fragment in edits:
        raw = raw[:start] + fragment + raw[start + length :]
    message = fault(raw)
    assert message == "" or (message.startswith("net.xml: ") and "\n" not in message)


def fault(raw: bytes) -> str:
    try:
        parse_topology(raw, "net.xml")
    except TopologyError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("raw", [GRAPHML, json.dumps(NODE_LINK).encode()])
def test_the_unbroken_originals_are_read(raw: bytes) -> None:
    assert parse_topology(raw).topology.switches == ("s1", "s2", "s3")


@given(st.integers(1, 40), st.floats(0, 1), st.integers(0, 2**32))
def test_a_random_graph_is_connected_simple_and_decided_by_its_seed(
    count: int, fill: float, seed: int
) -> None:
    least, most = 2 * (count - 1) / count, count - 1
    degree = least + fill * (most - least)
    topology = random_graph(count, degree, seed)
    assert topology == random_graph(count, degree, seed)
    assert len(topology.components()) == 1
    pairs = [frozenset((link.a, link.b)) for link in topology.links]
    assert len(pairs) == len(set(pairs))
    assert len(pairs) - count == round(count * degree / 2)


@given(st.integers(1, 8).map(lambda half: 2 * half), st.data())
def test_no_switch_of_a_fat_tree_needs_more_ports_than_it_has(ports: int, data: st.DataObject) -> None:
    pods = data.draw(st.integers(1, ports))
    topology = fat_tree(ports, pods)
    assert len(topology.hosts) == pods * ports**2 // 4
    assert len(topology.components()) == 1
    assert max(len(topology.ports(switch)) for switch in topology.switches) == ports
    if ports * pods % 4 == 0:
        assert {len(topology.ports(switch)) for switch in topology.switches} == {ports}
