"""Which ways events take through a state: the links they use, the turns they make, and how long it takes.

All of it follows from the tables and from what publishers may send, atom by atom (see `flow.atoms`), so it is exact: a
port that no event ever comes in by is no in-port, whatever a table says about ports.

A *turn* is a pair (port in, port out) at a switch. A *region* is a cell within which the links that events use form
no cycle. On such links there is one way between two hosts; so whatever subset of turns the switches make, an event
neither loops nor reaches anyone twice, and widening a table inside a region costs false positives and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plerion.flow.atoms import Net, Rows, atoms, matches, net
from plerion.flow.entry import Masks
from plerion.flow.fabric import Fabric
from plerion.index.dz import MAX_LENGTH, WHOLE, Dz
from plerion.index.dzset import DzColumns
from plerion.kernel import kernel
from plerion.topology.graph import Topology
from plerion.update.state import Delays, NetworkState, NotApplicable

MOST_REGIONS = 64
_SHIFT = 128 - MAX_LENGTH

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """By atom of one state: who may send there, what matches, and the slots that events leave by."""

    fabric: Fabric
    net: Net
    starts: npt.NDArray[np.object_]  # the first point of each atom, as of `Dz.start`
    rows: Rows
    ports: Masks
    sends: Flags  # (atoms, hosts)
    used: Flags  # (atoms, slots): events leave by it

    def within(self, cell: Dz) -> slice:
        """The atoms that meet the cell."""
        first = int(np.searchsorted(self.starts, cell.start, side="right")) - 1
        return slice(max(0, first), int(np.searchsorted(self.starts, cell.end, side="left")))


def paths(state: NetworkState, topology: Topology | None = None) -> Paths:
    """The ways of all events of a state on what survives of the network. One walk an atom, from all who may send."""
    tables, fabric = state.tables, state.tables.fabric
    sent = [(fabric.host_number[host], dz) for host, cells in state.sent.items() for dz in cells]
    space = atoms([tables.dz, DzColumns.of(dz for _, dz in sent)])
    rows = matches(tables, space.first[0], space.last[0], len(space))
    sends = np.zeros((len(space), len(fabric.attachment)), np.bool_)
    for (host, _), first, last in zip(sent, space.first[1], space.last[1], strict=True):
        sends[first:last, host] = True
    network = net(fabric, topology or fabric.topology)
    used = np.zeros((len(space), len(fabric.port)), np.bool_)
    turned = np.zeros((len(fabric.port), fabric.port_words), np.uint64)
    _spread(network, tables.ports, rows, sends, used, turned)
    keys = zip(space.high.tolist(), space.low.tolist(), strict=True)
    starts = np.array([(high << 64 | low) >> _SHIFT for high, low in keys] or [0], object)
    return Paths(fabric, network, starts, rows, tables.ports, sends, used)


def turns(ways: Paths, cell: Dz = WHOLE) -> Masks:
    """By slot: the ports that events in the cell leave by when they came in there; none where none come in."""
    part = ways.within(cell)
    turned = np.zeros((len(ways.fabric.port), ways.fabric.port_words), np.uint64)
    _spread(ways.net, ways.ports, ways.rows[part], ways.sends[part], ways.used[part].copy(), turned)
    return turned


def arrivals(ways: Paths, cell: Dz = WHOLE) -> Flags:
    """By slot: whether events in the cell come in there, from a publisher or from another switch."""
    part, fabric = ways.within(cell), ways.fabric
    came = np.zeros(len(fabric.port), np.bool_)
    came[fabric.attachment[ways.sends[part].any(axis=0)]] = True
    peers = fabric.peer_slot[ways.used[part].any(axis=0)]
    came[peers[peers >= 0]] = True
    return came


def links(ways: Sequence[Paths], cell: Dz = WHOLE) -> Flags:
    """By slot: whether events in the cell go through its cable, in either direction, in any of the states."""
    fabric = ways[0].fabric
    used = np.zeros(len(fabric.port), np.bool_)
    for one in ways:
        used |= one.used[one.within(cell)].any(axis=0)
    between = fabric.peer_slot >= 0
    used[fabric.peer_slot[between & used]] = True
    return used & between


def regions(ways: Sequence[Paths]) -> list[Dz]:
    """The fewest cells, by halving, that together are the space and each a region of all these states at once.

    Raises `NotApplicable` when some events go one way in one state and another way in the other.
    """
    found: list[Dz] = []
    waiting = [WHOLE]
    while waiting:
        cell = waiting.pop()
        if not _cyclic(ways[0].fabric, links(ways, cell)):
            found.append(cell)
            continue
        single = all(part.stop - part.start <= 1 for part in (one.within(cell) for one in ways))
        if single or len(waiting) + len(found) >= MOST_REGIONS:
            raise NotApplicable(
                "the trees of the two states differ, so that their links together form a cycle: "
                "choose a strategy that tags events (epoch or versioning)"
            )
        waiting += (cell.child(1), cell.child(0))
    return found


def _cyclic(fabric: Fabric, used: Flags) -> bool:
    """Whether the cables form a cycle: two switches that already were connected are connected once more."""
    parent = list(range(fabric.switches))

    def root(x: int) -> int:
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    for slot, peer in _cables(fabric, used):
        a, b = root(int(fabric.switch_of[slot])), root(int(fabric.switch_of[peer]))
        if a == b:
            return True
        parent[a] = b
    return False


def _cables(fabric: Fabric, used: Flags) -> Iterator[tuple[int, int]]:
    """Each cable once, by its two slots."""
    for slot in np.flatnonzero(used).tolist():
        if slot < (peer := int(fabric.peer_slot[slot])):
            yield slot, peer


def drain_seconds(ways: Sequence[Paths], delays: Delays) -> float:
    """How long the last event may still be on its way in any of the states, with a margin.

    A plan that leads forward waits for events of the old state, one that leads back for those of the new one.
    """
    return max(_drain_seconds(one, delays) for one in ways)


def _drain_seconds(ways: Paths, delays: Delays) -> float:
    """The longest path of any region."""
    fabric = ways.fabric
    topology = fabric.topology
    latency = np.full(len(fabric.port), delays.link_seconds)
    slot = 0
    for switch in topology.switches:
        for near in topology.neighbours(switch):
            if near.link.latency is not None:
                latency[slot] = near.link.latency
            slot += 1
    to_hosts = float(latency[fabric.host >= 0].max(initial=0.0))
    try:
        longest = max(_longest(fabric, links([ways], cell), latency, delays) for cell in regions([ways]))
    except NotApplicable:  # too many trees to tell apart: no path uses a cable twice
        used = links([ways])
        longest = float((latency[used] + delays.switch_seconds).sum()) / 2
    return delays.margin * (2 * to_hosts + delays.switch_seconds + longest)


def _longest(fabric: Fabric, used: Flags, latency: npt.NDArray[np.float64], delays: Delays) -> float:
    """The longest path on links without a cycle, from one end found by the other."""
    near: list[list[tuple[int, float]]] = [[] for _ in range(fabric.switches)]
    for slot, peer in _cables(fabric, used):
        a, b = int(fabric.switch_of[slot]), int(fabric.switch_of[peer])
        seconds = float(latency[slot]) + delays.switch_seconds
        near[a].append((b, seconds))
        near[b].append((a, seconds))
    seen: set[int] = set()
    longest = 0.0
    for start in range(fabric.switches):
        if start not in seen:
            reached = _farthest(near, start)
            seen |= reached.keys()
            end = max(reached, key=reached.__getitem__)
            longest = max(longest, *_farthest(near, end).values())
    return longest


def _farthest(near: list[list[tuple[int, float]]], start: int) -> dict[int, float]:
    reached = {start: 0.0}
    waiting = [start]
    while waiting:
        at = waiting.pop()
        for peer, seconds in near[at]:
            if peer not in reached:
                reached[peer] = reached[at] + seconds
                waiting.append(peer)
    return reached


@kernel
def _spread(net: Net, ports: Masks, rows: Rows, sends: Flags, used: Flags, turned: Masks) -> None:
    """Marks, atom by atom, each slot that events leave by and adds the turns that they make."""
    came = np.full(len(net.switch_of), -1, np.int64)
    queue = np.empty(len(net.switch_of) + len(net.attachment), np.int64)
    for atom in range(len(rows)):
        waiting = 0
        for host in range(len(net.attachment)):
            if sends[atom, host] and net.attachment[host] >= 0:
                queue[waiting] = net.attachment[host]
                came[net.attachment[host]] = atom
                waiting += 1
        while waiting > 0:
            waiting -= 1
            slot = queue[waiting]
            x = net.switch_of[slot]
            row, begin = rows[atom, x], net.first[x]
            for out in range(begin, net.first[x + 1] if row >= 0 else begin):
                bit = np.uint64(1) << np.uint64((out - begin) & 63)
                if ports[row, (out - begin) >> 6] & bit == 0 or out == slot:
                    continue
                used[atom, out] = True
                turned[slot, (out - begin) >> 6] |= bit
                peer = net.peer_slot[out]
                if peer >= 0 and came[peer] != atom:
                    came[peer] = atom
                    queue[waiting] = peer
                    waiting += 1
