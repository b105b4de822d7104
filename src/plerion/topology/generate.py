"""Networks of regular shape, by function or by name (``ring:20``).

Every generator but the fat tree gives each switch one host, h<i> at s<i>; `build` says how ports are
numbered. Links have neither latency nor capacity. Nothing here is random but `random_graph`, and that only
by its seed.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from math import isqrt
from random import Random
from types import MappingProxyType
from typing import NamedTuple

from plerion.topology.build import MAX_LINKS, MAX_SWITCHES, Cable, wired
from plerion.topology.error import shown
from plerion.topology.graph import Topology, TopologyError


def line(switches: int) -> Topology:
    """s1 – s2 – … – sn."""
    return _one_host_each(_bounded("line", switches), (Cable(i, i + 1) for i in range(1, switches)))


def ring(switches: int) -> Topology:
    """A line whose ends meet; with fewer than three switches there is nothing to close and it is a line."""
    return _one_host_each(_bounded("ring", switches), _cycle(range(1, switches + 1)))


def star(leaves: int) -> Topology:
    """The hub s1 with the leaves s2… around it: `leaves` + 1 switches with a host each, the hub included."""
    _at_least_one("star", "leaves", leaves)
    return _one_host_each(_bounded("star", leaves + 1), (Cable(1, i) for i in range(2, leaves + 2)))


def torus(rows: int, columns: int) -> Topology:
    """A grid, numbered row by row, whose rows and columns are rings (see `ring` for sizes below three)."""
    _at_least_one("torus", "rows", rows)
    _at_least_one("torus", "columns", columns)
    count = _bounded("torus", rows * columns)
    across = (c for r in range(rows) for c in _cycle(range(r * columns + 1, (r + 1) * columns + 1)))
    down = (c for i in range(1, columns + 1) for c in _cycle(range(i, count + 1, columns)))
    return _one_host_each(count, (*across, *down))


def fat_tree(ports: int, pods: int | None = None) -> Topology:
    """A folded Clos network of switches with `ports` ports, k: per pod k/2 edge and k/2 aggregation switches.

    Each edge switch has k/2 hosts, each aggregation switch k/2 links to cores. A full tree (the default, k
    pods) has k²/4 cores; with fewer pods there are only k·pods/4 (rounded up), dealt out in turn, so no
    switch has more than k links and, where that divides, each has exactly k. `fat_tree(4, 2)` is the
    papers' testbed of ten switches. Numbering: cores first, then aggregation, then edge, each pod by pod.
    """
    half, odd = divmod(ports, 2)
    if half < 1 or odd:
        raise TopologyError(
            f"{shown(ports)} ports", where="fat-tree", fix="give an even number of ports from 2"
        )
    pods = ports if pods is None else pods
    if not 1 <= pods <= ports:
        raise TopologyError(f"{shown(pods)} pods", where="fat-tree", fix=f"give 1 to {ports} pods")
    cores, middle = -(-ports * pods // 4), pods * half
    count = _bounded("fat-tree", cores + 2 * middle)
    up = (Cable(1 + i % cores, 1 + cores + i // half) for i in range(middle * half))
    down = (
        Cable(1 + cores + pod * half + upper, 1 + cores + middle + pod * half + lower)
        for pod in range(pods)
        for upper in range(half)
        for lower in range(half)
    )
    hosts = (edge for edge in range(1 + cores + middle, count + 1) for _ in range(half))
    return wired(count, (*up, *down), hosts)


def random_graph(switches: int, degree: float, seed: int) -> Topology:
    """A connected graph without parallel links, of that average degree, always the same for one seed.

    A random tree holds it together; the other links are drawn evenly from all remaining pairs.
    """
    count = _bounded("random", switches)
    if not count - 1 <= (links := round(count * _real(degree) / 2)) <= count * (count - 1) // 2:
        raise TopologyError(
            f"average degree {degree} for {count} switches",
            where="random",
            fix=f"give {2 * (count - 1) / count:.3g}, which just connects them, to {count - 1}, all pairs",
        )
    if links > MAX_LINKS:
        raise TopologyError(f"{links} links", where="random", fix=f"ask for at most {MAX_LINKS}")
    return _one_host_each(count, (Cable(a, b) for a, b in _random_pairs(count, links, Random(seed))))


def _random_pairs(count: int, links: int, random: Random) -> Iterator[tuple[int, int]]:
    order = random.sample(range(1, count + 1), count)
    tree = [(order[random.randrange(i)], order[i]) for i in range(1, count)]
    yield from tree
    # Of distinct pairs as many as all links together, at most len(tree) are in the tree: enough are left.
    drawn = random.sample(range(count * (count - 1) // 2), links)
    taken = {frozenset(pair) for pair in tree}
    fresh = [pair for pair in map(_pair, drawn) if frozenset(pair) not in taken]
    yield from fresh[: links - len(tree)]


def _pair(index: int) -> tuple[int, int]:
    """Counts through the pairs (1,2), (1,3), (2,3), (1,4) …"""
    upper = (1 + isqrt(1 + 8 * index)) // 2
    return index - upper * (upper - 1) // 2 + 1, upper + 1


class Family(NamedTuple):
    """A shape that can be asked for by name."""

    example: str
    pattern: re.Pattern[str]
    make: Callable[..., Topology]


def _family(example: str, arguments: str, make: Callable[..., Topology]) -> Family:
    number = r"\\d{1,9}"
    return Family(example, re.compile(re.sub("N", number, arguments), re.ASCII), make)


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "line": _family("line:3", "(N)", line),
        "ring": _family("ring:20", "(N)", ring),
        "star": _family("star:5", "(N)", star),
        "torus": _family("torus:4x4", "(N)x(N)", torus),
        "fat-tree": _family("fat-tree:4 or fat-tree:4x2", "(N)(?:x(N))?", fat_tree),
        "random": _family("random:20x3@7", r"(N)x(N(?:\.N)?)@(N)", random_graph),
    }
)
KNOWN_NAMES = ", ".join(family.example for family in FAMILIES.values())


def is_name(text: str) -> bool:
    """Whether the text asks for a generator, well-formed or not, rather than for a file."""
    return text.partition(":")[0] in FAMILIES and ":" in text


def from_name(text: str) -> Topology:
    """The network with that name, such as ``ring:20``, ``fat-tree:4x2`` (ports x pods) or ``random:20x3@7``.

    The last is switches x average degree @ seed. At most `MAX_SWITCHES` switches.
    """
    name, _, arguments = text.partition(":")
    family = FAMILIES.get(name)
    found = family and family.pattern.fullmatch(arguments)
    if not family or not found:
        raise TopologyError(f"{shown(text)} names no topology", fix=f"known names: {KNOWN_NAMES}")
    numbers = (float(group) if "." in group else int(group) for group in found.groups() if group is not None)
    try:
        return family.make(*numbers)
    except TopologyError as error:
        raise TopologyError(error.what, where=shown(text), fix=error.fix) from None


def _cycle(members: range) -> Iterator[Cable]:
    yield from (Cable(a, b) for a, b in pairwise(members))
    if len(members) > 2:
        yield Cable(members[-1], members[0])


def _one_host_each(switches: int, cables: Iterable[Cable]) -> Topology:
    return wired(switches, cables, range(1, switches + 1))


def _at_least_one(shape: str, what: str, number: int) -> None:
    if number < 1:
        raise TopologyError(f"{shown(number)} {what}", where=shape, fix="give at least 1")


def _bounded(shape: str, switches: int) -> int:
    if not 1 <= switches <= MAX_SWITCHES:
        raise TopologyError(
            f"{shown(switches)} switches", where=shape, fix=f"ask for 1 to {MAX_SWITCHES} switches"
        )
    return switches


def _real(degree: float) -> float:
    if not 0 <= degree <= MAX_SWITCHES:
        raise TopologyError(f"average degree {degree}", where="random", fix=f"give 0 to {MAX_SWITCHES}")
    return degree
