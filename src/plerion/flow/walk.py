"""The model network: one event, hop by hop, as a switch would treat it. The definition behind `verify` and `simnet`.

At each switch the longest dz that covers the code wins; the event leaves by the entry's ports but never by the one
that it came in by. Without an entry it is dropped.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from plerion.flow.entry import FlowEntry, Tables
from plerion.index.dz import Dz
from plerion.topology.graph import HostId, Port, SwitchId, Topology

MAX_COPIES = 10_000  # an event that makes more hops than this is in a loop


@dataclass(frozen=True, slots=True)
class Hop:
    """An event at a switch: where it came in, what matched and where it went."""

    switch: SwitchId
    in_port: int
    entry: FlowEntry | None
    out_ports: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Journey:
    """All hops of one event in the order of distance, and the hosts that got it, once for each copy."""

    hops: tuple[Hop, ...]
    delivered: tuple[HostId, ...]
    looped: bool = False


class TableLookup:
    """One switch's table for single look-ups: entries sorted by dz, searched by bisection."""

    def __init__(self, entries: Iterator[FlowEntry]) -> None:
        self._entries = sorted(entries, key=lambda entry: entry.dz)
        self._keys = [(entry.dz.start, entry.dz.length) for entry in self._entries]
        above: list[int] = []
        self._above: list[int] = []
        for i, entry in enumerate(self._entries):
            while above and not self._entries[above[-1]].dz.covers(entry.dz):
                above.pop()
            self._above.append(above[-1] if above else -1)
            above.append(i)

    def match(self, code: Dz) -> FlowEntry | None:
        """The entry with the longest dz that covers the code."""
        i = bisect_right(self._keys, (code.start, code.length)) - 1
        while i >= 0 and not self._entries[i].dz.covers(code):
            i = self._above[i]
        return self._entries[i] if i >= 0 else None


class ModelNetwork:
    """Tables ready to be walked, with the table of a switch prepared when an event first gets there."""

    def __init__(self, tables: Tables, topology: Topology | None = None) -> None:
        self.topology = topology or tables.fabric.topology
        self._table = lru_cache(maxsize=None)(lambda switch: TableLookup(tables.entries(switch)))

    def walk(self, code: Dz, publisher: HostId) -> Journey:
        """What happens to an event with this code that the host sends."""
        hops: list[Hop] = []
        delivered: list[HostId] = []
        waiting = deque([self.topology.attachment(publisher)])
        while waiting and len(hops) < MAX_COPIES:
            at = waiting.popleft()
            hop = self._hop(code, at)
            hops.append(hop)
            for number in hop.out_ports:
                peer = self.topology.peer(at.node, number)
                if peer is not None and peer.node in self.topology.hosts:
                    delivered.append(HostId(peer.node))
                elif peer is not None:
                    waiting.append(peer)
        return Journey(tuple(hops), tuple(delivered), looped=bool(waiting) or _repeats(hops))

    def _hop(self, code: Dz, at: Port) -> Hop:
        entry = self._table(SwitchId(at.node)).match(code)
        ports = sorted(entry.ports - {at.number}) if entry else ()
        return Hop(SwitchId(at.node), at.number, entry, tuple(ports))


def _repeats(hops: list[Hop]) -> bool:
    """On a tree an event comes in by each port of a switch at most once."""
    seen = {(hop.switch, hop.in_port) for hop in hops}
    return len(seen) < len(hops)
