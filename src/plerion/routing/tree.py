"""Trees that events travel on (seed 000 §3.2).

Each tree serves a DzSet; those of two trees never meet, so an event travels on one tree and, there, on one
path to each host: that is why deliveries are neither doubled nor looping. A new advertisement joins the trees
that it meets; what no tree serves yet becomes a new one, a shortest-path tree rooted at the publisher's switch.
Above a threshold the newest tree is merged into the one whose DzSet its own completes best.

The forest is a function of the surviving topology and of the advertisements in their order, of nothing else: after
any history it is the one that a fresh start would build. Adding an advertisement at the end extends it; anything
else folds the list again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from heapq import heappop, heappush

from plerion.index.dz import Dz
from plerion.index.dzset import NOTHING, DzSet
from plerion.routing.interest import Advertisement
from plerion.topology.graph import HostId, NodeId, Port, SwitchId, Topology

DEFAULT_MAX_TREES = 64


@dataclass(frozen=True, slots=True)
class Tree:
    """A spanning tree, known by its root, and the dz that it serves."""

    root: SwitchId
    dz: DzSet


@dataclass(frozen=True, slots=True)
class Forest:
    """All trees, oldest first, and all advertisements in their order."""

    trees: tuple[Tree, ...] = ()
    advertisements: tuple[Advertisement, ...] = ()
    max_trees: int = DEFAULT_MAX_TREES
    served: DzSet = NOTHING  # by all trees together

    def with_advertisement(self, topology: Topology, advertisement: Advertisement) -> Forest:
        """One more advertisement: it joins what it meets and opens a tree for the rest."""
        grown = self._serving(topology, advertisement)
        return replace(grown, advertisements=(*self.advertisements, advertisement))

    def _serving(self, topology: Topology, advertisement: Advertisement) -> Forest:
        """The trees that the advertisement leads to; it is not listed yet."""
        uncovered = advertisement.dz - self.served
        if not uncovered or not topology.has_host(advertisement.host):
            return self
        root = SwitchId(topology.attachment(advertisement.host).node)
        trees = (*self.trees, Tree(root, uncovered))
        fewer = _merged(trees) if len(trees) > self.max_trees else trees
        return replace(self, trees=fewer, served=self.served | uncovered)


def forest(
    topology: Topology, advertisements: Iterable[Advertisement], max_trees: int = DEFAULT_MAX_TREES
) -> Forest:
    """The forest of these advertisements in this order, on this (surviving) topology."""
    listed = tuple(advertisements)
    grown = Forest(max_trees=max_trees)
    for advertisement in listed:
        grown = grown._serving(topology, advertisement)
    return replace(grown, advertisements=listed)


def _merged(trees: tuple[Tree, ...]) -> tuple[Tree, ...]:
    """The newest tree goes into the older one with which it makes the fewest cells; that one keeps its root."""
    *older, newest = trees
    joined = [tree.dz | newest.dz for tree in older]
    best = min(range(len(older)), key=lambda i: (len(joined[i]) - len(older[i].dz), i))
    return (*older[:best], Tree(older[best].root, joined[best]), *older[best + 1 :])


@dataclass(frozen=True, slots=True)
class Source:
    """From here on down the trie: events travel on the tree of this root, and these hosts may send them."""

    dz: Dz
    root: SwitchId
    publishers: frozenset[HostId]


def sources(grown: Forest, topology: Topology) -> list[Source]:
    """Who may send under each dz and on which tree: cells in order, each speaks for all below it but the next.

    A cell inside another one names the publishers of both, so the nearest one above a code says it all.
    """
    cells = sorted((dz.start, dz, tree.root) for tree in grown.trees for dz in tree.dz)
    starts = [start for start, _, _ in cells]
    alive = frozenset(topology.hosts)
    marks: dict[tuple[Dz, SwitchId], set[HostId]] = {}
    for advertisement in grown.advertisements:
        for sent in advertisement.dz if advertisement.host in alive else ():
            first = max(0, bisect_right(starts, sent.start) - 1)
            for _, cell, root in cells[first : bisect_left(starts, sent.end)]:
                if cell.overlaps(sent):  # one of the two lies in the other: the longer is what they share
                    common = max(cell, sent, key=lambda dz: dz.length)
                    marks.setdefault((common, root), set()).add(advertisement.host)
    found: list[Source] = []
    above: list[Source] = []
    for (dz, root), hosts in sorted(marks.items()):
        while above and not above[-1].dz.covers(dz):
            above.pop()
        inherited = above[-1].publishers if above else frozenset[HostId]()
        source = Source(dz, root, inherited | hosts)
        above.append(source)
        if source.publishers != inherited:
            found.append(source)
    return found


Spanning = Mapping[Port, int]
"""Hosts behind each port of the tree, as a bit mask by the host's number (from 0) in the whole topology."""


def spanning(topology: Topology, root: SwitchId, numbers: Mapping[HostId, int]) -> dict[Port, int]:
    """The shortest-path tree from `root`, as the hosts behind each of its ports.

    A part of the network that the root does not reach has its own tree, from the first switch there. Equal
    distances are settled by port number, so the tree is the same wherever it is computed.
    """
    behind: dict[Port, int] = {}
    own = {
        switch: {
            n.port: 1 << numbers[HostId(n.peer)] for n in topology.neighbours(switch) if n.peer in numbers
        }
        for switch in topology.switches
    }
    for root_of_part, part in _roots(topology, root):
        order, up = _shortest_paths(topology, root_of_part, part)
        total = dict.fromkeys(order, 0)
        for switch in reversed(order):
            total[switch] += sum(own[switch].values())
            behind |= {Port(switch, port): mask for port, mask in own[switch].items()}
            if switch in up:
                total[SwitchId(up[switch][1].node)] += total[switch]
        for switch, (uplink, downlink) in up.items():
            behind[downlink] = total[switch]
            behind[uplink] = total[root_of_part] - total[switch]
    return behind


def _roots(topology: Topology, root: SwitchId) -> list[tuple[SwitchId, frozenset[SwitchId]]]:
    rank = {switch: i for i, switch in enumerate(topology.switches)}
    parts = topology.components()
    return [(root if root in part else min(part, key=rank.__getitem__), part) for part in parts]


def _shortest_paths(
    topology: Topology, root: SwitchId, part: frozenset[SwitchId]
) -> tuple[list[SwitchId], dict[SwitchId, tuple[Port, Port]]]:
    """Switches by distance from the root, and for each but the root (its port up, the port above it).

    Distance is latency where every link states one, hops otherwise. Own code rather than a library's, because
    the order in which equal distances are settled has to be the same in every version.
    """
    rank: dict[NodeId, int] = {switch: i for i, switch in enumerate(topology.switches) if switch in part}
    timed = all(n.link.latency is not None for s in part for n in topology.neighbours(s) if n.peer in rank)
    up: dict[SwitchId, tuple[Port, Port]] = {}
    order: list[SwitchId] = []
    waiting: list[tuple[float, int, int, int, Port, Port]] = [
        (0.0, 0, rank[root], 0, Port(root, 0), Port(root, 0))
    ]
    settled: set[NodeId] = set()
    while waiting:
        distance, hops, _, _, uplink, downlink = heappop(waiting)
        if uplink.node in settled:
            continue
        switch = SwitchId(uplink.node)
        settled.add(switch)
        order.append(switch)
        if switch != root:
            up[switch] = (uplink, downlink)
        for n in topology.neighbours(switch):
            if n.peer in rank and n.peer not in settled:
                step = n.link.latency if timed and n.link.latency is not None else 1.0
                ends = Port(n.peer, n.peer_port), Port(switch, n.port)
                heappush(waiting, (distance + step, hops + 1, rank[n.peer], n.peer_port, *ends))
    return order, up
