"""Node-link JSON, as NetworkX writes and topohub publishes it: `nodes` and `edges` (or `links`)."""

from collections.abc import Mapping
from math import inf

from plerion.topology.build import Cable
from plerion.topology.error import shown
from plerion.topology.graph import TopologyError
from plerion.topology.sketch import Sketch, fibre_latency

Key = int | str


def node_link_sketch(document: Mapping[str, object]) -> Sketch:
    """The sketch of a parsed node-link document; faults are placed by path, such as ``edges[3].target``.

    A node's label is its `name`, else its `label`, else its `id`. `dist` is in kilometres of fibre.
    """
    nodes = _list(document, "nodes")
    edges_name = "edges" if "edges" in document else "links"
    edges = _list(document, edges_name)
    numbers: dict[Key, int] = {}
    labels = []
    for i, node in enumerate(nodes):
        place = f"nodes[{i}]"
        key = _key(_object(node, place), "id", place)
        if key in numbers:
            raise TopologyError(
                f"{shown(key)} is also the id of nodes[{numbers[key] - 1}]",
                where=place,
                fix="make the ids unique",
            )
        numbers[key] = i + 1
        labels.append(_label(_object(node, place), key))
    cables = tuple(_cable(edge, f"{edges_name}[{i}]", numbers) for i, edge in enumerate(edges))
    return Sketch(tuple(labels), cables, directed=document.get("directed") is True)


def _cable(edge: object, place: str, numbers: Mapping[Key, int]) -> Cable:
    fields = _object(edge, place)
    ends = []
    for end in ("source", "target"):
        key = _key(fields, end, place)
        if key not in numbers:
            raise TopologyError(
                f"there is no node with id {shown(key)}",
                where=f"{place}.{end}",
                fix="add the node or drop the edge",
            )
        ends.append(numbers[key])
    return Cable(ends[0], ends[1], latency=_latency(fields.get("dist"), f"{place}.dist"))


def _latency(kilometres: object, place: str) -> float | None:
    if kilometres is None:
        return None
    if isinstance(kilometres, bool) or not isinstance(kilometres, int | float) or not 0 <= kilometres < inf:
        raise TopologyError(
            f"distance {shown(kilometres)}", where=place, fix="give kilometres from 0, or leave it out"
        )
    try:
        return fibre_latency(kilometres)
    except OverflowError:
        raise TopologyError(f"distance {shown(kilometres)}", where=place, fix="give kilometres") from None


def _label(node: Mapping[str, object], key: Key) -> str:
    named = (node.get(name) for name in ("name", "label"))
    return next((text for text in named if isinstance(text, str) and text), str(key))


def _key(fields: Mapping[str, object], name: str, place: str) -> Key:
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int | str):
        given = shown(value) if name in fields else "nothing"
        raise TopologyError(
            f"expected a number or a text, found {given}",
            where=f"{place}.{name}",
            fix="give the id of a node",
        )
    return value


def _object(value: object, place: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise TopologyError(f"expected an object, found {shown(value)}", where=place)
    return value


def _list(document: Mapping[str, object], name: str) -> list[object]:
    value = document.get(name)
    if not isinstance(value, list):
        found = shown(value) if name in document else "nothing"
        raise TopologyError(f"expected a list, found {found}", where=name)
    return value
