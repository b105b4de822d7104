"""What the foreign formats have in common: labelled nodes, edges, and the network made of them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from plerion.topology.build import Cable, check_size, wired
from plerion.topology.graph import NodeId, Topology, TopologyError

# Light in glass: two thirds of its speed in vacuum.
FIBRE_KILOMETRES_PER_SECOND = 200_000


@dataclass(frozen=True, slots=True)
class Sketch:
    """A graph as its file has it: nodes by number, cables that may be loops, or arcs if it is directed."""

    labels: tuple[str, ...]
    cables: tuple[Cable, ...]
    directed: bool = False
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """A topology, what its source calls the nodes, and what a user should know about how it was read."""

    topology: Topology
    warnings: tuple[str, ...] = ()
    labels: Mapping[NodeId, str] = field(default_factory=dict, hash=False)


def realised(sketch: Sketch) -> Reading:
    """The network of a sketch: every node a switch s1… with one host, in the file's order, no self loops."""
    if not sketch.labels:
        raise TopologyError("the file has no nodes", fix="give at least one")
    check_size(len(sketch.labels), len(sketch.cables))
    warnings = list(sketch.warnings)
    cables = [cable for cable in sketch.cables if cable.a != cable.b]
    if loops := len(sketch.cables) - len(cables):
        warnings.append(f"{loops} self loop{'s' * (loops > 1)} left out")
    if sketch.directed:
        arcs, cables = len(cables), _both_ways(cables)
        warnings.append(
            f"the graph is directed; its {arcs} arcs became {len(cables)} links that carry both ways"
        )
    count = len(sketch.labels)
    topology = wired(count, cables, range(1, count + 1))
    # JSON can spell half a surrogate pair, which no file and no terminal takes.
    readable = (label.encode("utf-8", "replace").decode("utf-8") for label in sketch.labels)
    labels: dict[NodeId, str] = dict(zip(topology.switches, readable, strict=True))
    return Reading(topology, (*warnings, *parts_warning(topology)), labels)


def parts_warning(topology: Topology) -> tuple[str, ...]:
    """One warning if the switches do not all reach each other, none otherwise."""
    sizes = sorted((len(part) for part in topology.components()), reverse=True)
    if len(sizes) <= 1:
        return ()
    listed = ", ".join(map(str, sizes[:10])) + (", …" if len(sizes) > 10 else "")
    return (f"not connected: {len(sizes)} components of {listed} switches; each is served on its own",)


def fibre_latency(kilometres: float) -> float:
    """The seconds that light needs for a way in fibre."""
    return kilometres / FIBRE_KILOMETRES_PER_SECOND


def _both_ways(arcs: Iterable[Cable]) -> list[Cable]:
    """An arc and one arc back are the two directions of one link; an arc without return is a link as well."""
    waiting: Counter[tuple[int, int]] = Counter()
    links = []
    for arc in arcs:
        if waiting[arc.b, arc.a]:
            waiting[arc.b, arc.a] -= 1
        else:
            waiting[arc.a, arc.b] += 1
            links.append(arc)
    return links
