"""GraphML as the Internet Topology Zoo publishes it.

Attributes are declared as keys (``<key attr.name="Latitude" id="d30">``) and given as data (``<data
key="d30">``). Names are compared without their XML namespace, which some tools leave out. A document type
is refused: GraphML needs none, and entities declared in one can blow a small file up without bound.
"""

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from math import asin, cos, inf, radians, sin, sqrt
from typing import NamedTuple

from plerion.topology.build import Cable
from plerion.topology.error import shown
from plerion.topology.graph import TopologyError
from plerion.topology.sketch import Sketch, fibre_latency

EARTH_RADIUS_KILOMETRES = 6371.0088


class Position(NamedTuple):
    latitude: float
    longitude: float


def graphml_sketch(raw: bytes) -> Sketch:
    """The sketch of the file's first graph; syntax faults are placed by line and column, others by element.

    Latency comes from the great circle between nodes that both have a position, capacity from `LinkSpeedRaw`.
    """
    root = _root(raw)
    graphs = list(_named(root, "graph"))
    if _name(root) != "graphml" or not graphs:
        raise TopologyError(f"no graph in <{_name(root)}>", fix="give a GraphML file")
    keys = {key.get("id", ""): key.get("attr.name", "") for key in _named(root, "key")}
    numbers: dict[str, int] = {}
    labels: list[str] = []
    positions: list[Position | None] = []
    for number, node in enumerate(_named(graphs[0], "node"), start=1):
        name = _required(node, "id", f"node {number}")
        if numbers.setdefault(name, number) != number:
            raise TopologyError(
                f"the id {shown(name)} is used twice", where=f"node {number}", fix="make ids unique"
            )
        values = _values(node, keys)
        labels.append(values.get("label") or name)
        positions.append(_position(values, f"node {shown(name)}"))
    cables = tuple(
        _cable(edge, f"edge {i}", numbers, positions, _values(edge, keys))
        for i, edge in enumerate(_named(graphs[0], "edge"), start=1)
    )
    directed = graphs[0].get("edgedefault") == "directed"
    return Sketch(tuple(labels), cables, directed, tuple(_warnings(root, len(graphs))))


def great_circle(a: Position, b: Position) -> float:
    """Kilometres over ground between two positions in degrees (haversine)."""
    up, across = radians(b.latitude - a.latitude), radians(b.longitude - a.longitude)
    chord = sin(up / 2) ** 2 + cos(radians(a.latitude)) * cos(radians(b.latitude)) * sin(across / 2) ** 2
    return 2 * EARTH_RADIUS_KILOMETRES * asin(sqrt(min(1.0, max(0.0, chord))))


class _Builder(ET.TreeBuilder):
    def doctype(self, name: str, public: str | None, system: str | None) -> None:
        raise TopologyError(
            f"document type {shown(name)} with {shown(public or system or 'no address')} is refused",
            where="<!DOCTYPE>",
            fix="remove it: GraphML needs no document type",
        )


def _root(raw: bytes) -> ET.Element:
    parser = ET.XMLParser(target=_Builder())
    try:
        parser.feed(raw)
        root: ET.Element = parser.close()
    except ET.ParseError as error:
        row, column = error.position
        reason = str(error).partition(": line ")[0]
        raise TopologyError(
            f"not well-formed XML: {reason}", where=f"line {row}, column {column + 1}"
        ) from None
    except TopologyError:
        raise
    except (ValueError, LookupError) as error:
        raise TopologyError(f"the XML's encoding cannot be read: {error}", where="line 1") from None
    return root


def _warnings(root: ET.Element, graphs: int) -> Iterator[str]:
    if graphs > 1:
        yield f"{graphs} graphs in the file; only the first one was read"
    if hyperedges := sum(1 for _ in _named(root, "hyperedge")):
        yield f"{hyperedges} hyperedges left out; a link has two ends"


def _cable(
    edge: ET.Element,
    place: str,
    numbers: Mapping[str, int],
    positions: list[Position | None],
    values: Mapping[str, str],
) -> Cable:
    ends = [_required(edge, end, place) for end in ("source", "target")]
    for end in ends:
        if end not in numbers:
            raise TopologyError(
                f"there is no node {shown(end)}", where=place, fix="add the node or drop the edge"
            )
    a, b = (numbers[end] for end in ends)
    here, there = positions[a - 1], positions[b - 1]
    latency = None if here is None or there is None else fibre_latency(great_circle(here, there))
    capacity = _number(values, "LinkSpeedRaw", place)
    if capacity is not None and not 0 <= capacity < inf:
        raise TopologyError(f"LinkSpeedRaw {capacity}", where=place, fix="give bit/s from 0")
    return Cable(a, b, capacity or None, latency)  # the Zoo's 0 means that nobody knew


def _position(values: Mapping[str, str], place: str) -> Position | None:
    latitude, longitude = (_number(values, name, place) for name in ("Latitude", "Longitude"))
    if latitude is None or longitude is None:
        return None
    if not (abs(latitude) <= 90 and abs(longitude) <= 360):  # false for NaN, too
        raise TopologyError(f"position {latitude}, {longitude}", where=place, fix="give degrees")
    return Position(latitude, longitude)


def _number(values: Mapping[str, str], name: str, place: str) -> float | None:
    if name not in values:
        return None
    try:
        return float(values[name])
    except ValueError:
        raise TopologyError(f"{name} is {shown(values[name])}", where=place, fix="give a number") from None


def _values(element: ET.Element, keys: Mapping[str, str]) -> dict[str, str]:
    """What the element says of itself, by attribute name; empty texts are left out."""
    said = (
        (keys.get(part.get("key", ""), ""), (part.text or "").strip())
        for part in element
        if _name(part) == "data"
    )
    return {name: text for name, text in said if name and text}


def _required(element: ET.Element, attribute: str, place: str) -> str:
    value = element.get(attribute)
    if value is None:
        raise TopologyError(
            f"<{_name(element)}> without {attribute}", where=place, fix=f"give its {attribute}"
        )
    return value


def _named(parent: ET.Element, name: str) -> Iterator[ET.Element]:
    return (element for element in parent.iter() if _name(element) == name)


def _name(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]
