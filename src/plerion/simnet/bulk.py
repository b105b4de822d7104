"""Millions of events through the tables of a network, exactly as the model network would treat each.

Events of one atom from one publisher all go the same way (see `flow.atoms`). So an event costs one search for its
atom; the walk is made once for each (atom, publisher) that occurs, its *course*, and multiplied by the events that
took it. Nothing is sampled: the counts are those of walking every event alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plerion.flow.atoms import Net, Rows, Scratch, atoms, matches, net, scratch, walk
from plerion.flow.entry import Ints, Masks, Tables
from plerion.index.dzset import DzColumns, Words
from plerion.kernel import Int, Word, kernel, lean
from plerion.topology.graph import Topology

Courses32 = npt.NDArray[np.int32]


class AtomSearch(NamedTuple):
    """Sorted beginnings of the atoms, and for each leading 16 bits the first atom that may hold them."""

    high: Words
    low: Words
    guide: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """What became of a batch: row i of the codes took course `course[i]`; the rest is by course.

    `copies[c, h]` counts what reached host h. The course went out of slots `slot[first[c]:first[c + 1]]`, and through
    each of them reached the hosts in `beyond`.
    """

    course: Courses32
    events: Ints
    copies: npt.NDArray[np.uint8]
    looped: npt.NDArray[np.bool_]
    first: Ints
    slot: Ints
    beyond: Masks
    slots: int

    def deliveries(self) -> Ints:
        """Copies that reached each host."""
        return self.events @ self.copies.astype(np.int64)

    def link_loads(self) -> Ints:
        """Events that left by each slot."""
        load = np.repeat(self.events, np.diff(self.first))
        return np.bincount(self.slot, load, self.slots).astype(np.int64)


class BulkNetwork:
    """Tables prepared for bulk forwarding; preparing costs a sort of the entries."""

    def __init__(self, tables: Tables, topology: Topology | None = None) -> None:
        self.fabric = tables.fabric
        self._net = net(tables.fabric, topology or tables.fabric.topology)
        space = atoms([tables.dz])
        self._rows = matches(tables, space.first[0], space.last[0], len(space))
        self._ports = tables.ports
        prefixes = np.arange(1 << 16, dtype=np.uint64) << np.uint64(48)
        guide = np.searchsorted(space.high, prefixes, side="left").astype(np.int64)
        self._search = AtomSearch(space.high, space.low, np.concatenate((guide, [len(space)])))

    def reachable(self) -> npt.NDArray[np.bool_]:
        """(host, host): whether the surviving network joins them."""
        part = self._net.part
        joined: npt.NDArray[np.bool_] = (part[:, None] == part[None, :]) & (part >= 0)[:, None]
        return joined

    def forward(self, codes: DzColumns, publishers: Ints) -> Traffic:
        """Sends the event of each code from the host of that number; codes of cut-off hosts go nowhere."""
        senders, sender = np.unique(publishers, return_inverse=True)
        course, pairs, events = _assign(self._search, codes.high, codes.low, sender, len(senders))
        hosts = len(self._net.attachment)
        copies, looped, first, slot, beyond = _walk_all(
            self._net, self._ports, self._rows, pairs[:, 0], senders[pairs[:, 1]], scratch(self._net), hosts
        )
        return Traffic(course, events, copies, looped, first, slot, beyond, len(self._net.switch_of))


@lean
def _atom(search: AtomSearch, high: Word, low: Word) -> Int:
    """The last atom that begins at or before the key."""
    prefix = np.int64(high >> np.uint64(48))
    first: Int = search.guide[prefix]
    last: Int = search.guide[prefix + 1]
    while first < last:
        middle = (first + last) >> 1
        if search.high[middle] < high or (search.high[middle] == high and search.low[middle] <= low):
            first = middle + 1
        else:
            last = middle
    return first - 1


@kernel
def _assign(
    search: AtomSearch, high: Words, low: Words, sender: Ints, senders: Int
) -> tuple[Courses32, Ints, Ints]:
    """The course of each code; (atom, sender) and the number of events of each course."""
    known = np.full((len(search.high), senders), -1, np.int32)
    course = np.empty(len(high), np.int32)
    pairs, events = np.empty((1024, 2), np.int64), np.zeros(1024, np.int64)
    count = 0
    for i in range(len(high)):
        atom = _atom(search, high[i], low[i])
        c = known[atom, sender[i]]
        if c < 0:
            if count == len(events):
                pairs = np.concatenate((pairs, pairs))
                events = np.concatenate((events, np.zeros_like(events)))
            c = np.int32(count)
            pairs[c, 0], pairs[c, 1] = atom, sender[i]
            known[atom, sender[i]] = c
            count += 1
        events[c] += 1
        course[i] = c
    return course, pairs[:count].copy(), events[:count].copy()


@kernel
def _walk_all(
    net: Net, ports: Masks, rows: Rows, atom: Ints, publisher: Ints, memory: Scratch, hosts: Int
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_], Ints, Ints, Masks]:
    words = (hosts + 63) // 64
    copies, looped = np.zeros((len(atom), hosts), np.uint8), np.zeros(len(atom), np.bool_)
    first = np.zeros(len(atom) + 1, np.int64)
    slot, beyond = np.empty(4096, np.int64), np.zeros((4096, words), np.uint64)
    used = 0
    for c in range(len(atom)):
        if net.attachment[publisher[c]] >= 0:
            looped[c] = not walk(net, ports, rows[atom[c]], publisher[c], memory)
            for h in range(hosts):
                copies[c, h] = min(memory.copies[h], 255)
            while used + memory.trail_length[0] > len(slot):
                slot = np.concatenate((slot, slot))
                beyond = np.concatenate((beyond, beyond))
            _reach(net, memory, slot[used:], beyond[used:])
            used += memory.trail_length[0]
        first[c + 1] = used
    return copies, looped, first, slot[:used].copy(), beyond[:used].copy()


@kernel
def _reach(net: Net, memory: Scratch, slot: Ints, beyond: Masks) -> None:
    """The slots that the last walk went out of, and the hosts reached through each: from the last one back."""
    for i in range(memory.trail_length[0]):
        slot[i] = memory.trail[i]
        beyond[i] = 0
    for i in range(memory.trail_length[0] - 1, -1, -1):
        h = net.host[slot[i]]
        if h >= 0:
            beyond[i, h >> 6] |= np.uint64(1) << np.uint64(h & 63)
        if memory.cause[i] >= 0:
            for w in range(beyond.shape[1]):
                beyond[memory.cause[i], w] |= beyond[i, w]
