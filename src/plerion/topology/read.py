"""A topology from wherever it comes: a generator's name, our JSON, Topology Zoo GraphML or topohub JSON.

The format is told from the content, not from the file's name. Nodes of the foreign formats become s1, s2 …
in the file's order (their labels repeat and hold any character) and `Reading.labels` keeps what they were
called; our own JSON keeps its names. A network without hosts gets one at each switch. Whatever is wrong
with the input, the only exception is `TopologyError`, with the file and the place.
"""

import json
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from plerion.topology.build import check_size, with_a_host_each
from plerion.topology.error import TopologyWarning, shown
from plerion.topology.generate import KNOWN_NAMES, from_name, is_name
from plerion.topology.graph import Topology, TopologyError
from plerion.topology.graphml import graphml_sketch
from plerion.topology.node_link import node_link_sketch
from plerion.topology.sketch import Reading, parts_warning, realised

MAX_BYTES = 64 * 1024 * 1024
BYTE_ORDER_MARKS_AND_SPACE = b"\xef\xbb\xbf\xfe\xff\x00 \t\r\n"

LINK_FIELDS = frozenset({"a", "a_port", "b", "b_port", "capacity", "latency"})
FIELDS = frozenset({"switches", "hosts", "links"})


def load(source: str | Path) -> Topology:
    """The topology of a name or file; each thing worth knowing is issued as a `TopologyWarning`."""
    reading = read_topology(source)
    for text in reading.warnings:
        warnings.warn(f"{source}: {text}", TopologyWarning, stacklevel=2)
    return reading.topology


def read_topology(source: str | Path) -> Reading:
    """The topology, labels and warnings of a name (``ring:20``) or a file (``./ring:20`` if called so)."""
    text = str(source)
    if is_name(text):
        return Reading(from_name(text))
    return parse_topology(_content(text), text)


def parse_topology(raw: bytes, where: str = "topology") -> Reading:
    """The topology of a file's content, `where` being what errors call the file."""
    try:
        if len(raw) > MAX_BYTES:
            raise TopologyError(f"larger than {MAX_BYTES} bytes", fix="split the network")
        start = raw[:1024].lstrip(BYTE_ORDER_MARKS_AND_SPACE)[:1]
        if start == b"<":
            return realised(graphml_sketch(raw))
        if start == b"{":
            return _json_reading(_json(raw))
        raise TopologyError("neither JSON nor GraphML", fix="give a file that starts with { or <")
    except TopologyError as error:
        raise error.within(where) from None


def _content(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise TopologyError(
            "no such file", where=path, fix=f"give an existing file or one of the names {KNOWN_NAMES}"
        ) from None
    except OSError as error:
        raise TopologyError(
            f"cannot be read: {error.strerror}", where=path, fix="give a readable file"
        ) from None
    except ValueError as error:
        raise TopologyError(f"{shown(path)} is no path: {error}", fix="give a file or a name") from None


def _json(raw: bytes) -> Mapping[str, object]:
    try:
        document = json.loads(raw)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise TopologyError(f"not well-formed JSON: {error.msg}", where=place) from None
    except UnicodeDecodeError as error:
        raise TopologyError(f"not {error.encoding}: {error.reason}", where=f"byte {error.start}") from None
    except RecursionError:
        raise TopologyError("not a topology: nested too deeply") from None
    except ValueError as error:
        raise TopologyError(f"not a topology: {error}") from None
    if not isinstance(document, dict):
        raise TopologyError(f"expected an object, found {shown(document)}")
    return document


def _json_reading(document: Mapping[str, object]) -> Reading:
    if "switches" in document:
        return _own_reading(document)
    if "nodes" in document:
        return realised(node_link_sketch(document))
    raise TopologyError(
        f"keys {shown(sorted(document))}", fix="give `switches`, `hosts` and `links`, or `nodes` and `edges`"
    )


def _own_reading(document: Mapping[str, object]) -> Reading:
    parts = (document.get(name) for name in ("switches", "links"))
    check_size(*(len(part) if isinstance(part, list) else 0 for part in parts))
    topology = Topology.from_json(document)
    if not topology.switches:
        raise TopologyError("no switches", where="switches", fix="give at least one")
    ignored = tuple(f"unknown field {field} ignored" for field in _unknown_fields(document))
    if not topology.hosts:
        topology = with_a_host_each(topology)
    return Reading(topology, (*ignored, *parts_warning(topology)))


def _unknown_fields(document: Mapping[str, object]) -> Iterator[str]:
    """Each name once with its first place: a misspelt `latency` must not pass in silence."""
    yield from (shown(name) for name in document if name not in FIELDS)
    links = document.get("links", ())
    first: dict[str, int] = {}
    for i, link in enumerate(links if isinstance(links, list) else ()):
        for name in link.keys() - LINK_FIELDS:
            first.setdefault(name, i)
    yield from (f"{shown(name)} at links[{i}]" for name, i in sorted(first.items()))
