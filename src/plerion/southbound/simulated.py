"""Switches in memory: a change is in force when the call that makes it returns.

They fill up, go away and come back when they are told to, as real ones do unasked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeVar

import numpy as np

from plerion.flow.admission import Admission, AdmissionChange
from plerion.flow.diff import Diff
from plerion.flow.entry import Tables
from plerion.flow.fabric import Fabric
from plerion.index.dzset import DzColumns
from plerion.southbound import stamped
from plerion.southbound.protocol import EntriesRefused
from plerion.topology.graph import SwitchId
from plerion.update.canonical import canonical
from plerion.update.entries import Changes, Entries, Side, Table, no_entries, removed
from plerion.update.state import UNSTAMPED, Stamp

_Place = tuple[int, ...]  # what an entry is known by on its switch, its table first
_Behaviour = tuple[int, bool, bool, bytes]
_Held = dict[_Place, _Behaviour]
T = TypeVar("T")


class SimulatedSouthbound:
    """Every switch's entries as a dictionary, so a change costs what it changes.

    A switch in `room` refuses what would leave it with more entries for forwarding than it has room for.
    """

    def __init__(self, fabric: Fabric) -> None:
        self.room: dict[SwitchId, int] = {}
        self._fabric = fabric
        self._held: dict[SwitchId, _Held] = {switch: {} for switch in fabric.topology.switches}
        self._there = set(fabric.topology.switches)
        self._stamp = UNSTAMPED
        self._updating = False

    @property
    def connected(self) -> frozenset[SwitchId]:
        return frozenset(self._there)

    def lose(self, switch: SwitchId, blank: bool = False) -> None:
        """The switch cannot be told; a `blank` one also forgets what it held."""
        self._there.discard(switch)
        if blank:
            self._held[switch].clear()

    def connect(self, *switches: SwitchId) -> None:
        """These switches, or all, can be told."""
        for switch in switches or self._fabric.topology.switches:
            self._there.add(switch)
            if not self._updating:
                _change(self._held[switch], self._foreign(switch))

    async def apply(self, change: Diff) -> frozenset[SwitchId]:
        return await self.tell(stamped.table_changes(change, self._stamp))

    async def admit(self, change: AdmissionChange) -> frozenset[SwitchId]:
        return await self.tell(stamped.edge_changes(self._fabric, change, self._stamp))

    async def tables(self) -> Tables:
        return stamped.tables(await self.entries(), self._stamp)

    async def admissions(self) -> frozenset[Admission]:
        return stamped.admissions(await self.entries(), self._stamp)

    def begin(self) -> None:
        self._updating = True

    def speak(self, stamp: Stamp) -> None:
        self._stamp = stamp

    async def tell(self, changes: Changes) -> frozenset[SwitchId]:
        names = self._fabric.topology.switches
        return self._everywhere({names[x]: part for x, part in changes.by_switch()}, _change)

    async def overwrite(self, entries: Entries, switches: Collection[SwitchId]) -> frozenset[SwitchId]:
        number = self._fabric.switch_number
        parts = {switch: entries[entries.switch == number[switch]] for switch in switches}
        return self._everywhere(parts, _overwrite)

    async def entries(self) -> Entries:
        return self._entries(self._fabric.topology.switches)

    async def end(self) -> frozenset[SwitchId]:
        self._updating = False
        parts = {switch: self._foreign(switch) for switch in self._held}
        return self._everywhere({switch: part for switch, part in parts.items() if len(part)}, _change)

    def _entries(self, switches: Collection[SwitchId]) -> Entries:
        number = self._fabric.switch_number
        places = [(number[switch], *place) for switch in switches for place in self._held[switch]]
        if not places:
            return no_entries(self._fabric)
        behaviours = [behaviour for switch in switches for behaviour in self._held[switch].values()]
        columns = list(zip(*places, strict=True))
        switch, table, epoch, vlan, in_port, priority = (
            np.array(columns[i], np.int64) for i in (0, 1, 5, 6, 7, 8)
        )
        high, low = np.array(columns[2:4], np.uint64)
        set_vlan, untag, bridge, ports = zip(*behaviours, strict=True)
        sets = np.frombuffer(b"".join(ports), np.uint64).reshape(len(places), -1).copy()
        return Entries(
            self._fabric, table, switch, DzColumns(high, low, np.array(columns[4], np.uint8)),
            in_port, vlan, epoch, priority, sets, np.array(set_vlan, np.int64),
            np.array(untag, np.bool_), np.array(bridge, np.bool_), np.full(len(places), int(Side.BETWEEN)),
        )  # fmt: skip

    def _foreign(self, switch: SwitchId) -> Changes:
        """Takes away what a network at rest does not have."""
        held = self._entries([switch])
        return removed(held[~stamped.at_rest(held, self._stamp)])

    def _everywhere(
        self, parts: Mapping[SwitchId, T], change: Callable[[_Held, T], None]
    ) -> frozenset[SwitchId]:
        """Every switch takes its part, refuses or misses it; the first refusal is raised when all have answered."""
        there = [switch for switch in parts if switch in self._there]
        refusals = [self._taken(switch, parts[switch], change) for switch in there]
        for refusal in refusals:
            if refusal is not None:
                raise refusal
        return frozenset(parts.keys() - there)

    def _taken(self, switch: SwitchId, part: T, change: Callable[[_Held, T], None]) -> EntriesRefused | None:
        held = self._held[switch]
        if switch not in self.room:
            change(held, part)
            return None
        after = held.copy()
        change(after, part)
        if sum(place[0] == Table.FORWARDING for place in after) > self.room[switch]:
            return EntriesRefused(switch, "the table is full", len(after.items() ^ held.items()))
        self._held[switch] = after
        return None


def _change(held: _Held, changes: Changes) -> None:
    for place, _ in _rows(changes.removed):
        held.pop(place, None)
    held.update(_rows(changes.added))


def _overwrite(held: _Held, entries: Entries) -> None:
    held.clear()
    held.update(_rows(entries))


def _rows(entries: Entries) -> Iterator[tuple[_Place, _Behaviour]]:
    entries = canonical(entries)
    dz = entries.dz
    known = entries.table, dz.high, dz.low, dz.length, entries.epoch, entries.vlan, entries.in_port
    places = zip(*(column.tolist() for column in (*known, entries.priority)), strict=True)
    does = (column.tolist() for column in (entries.set_vlan, entries.untag, entries.bridge))
    ports = (row.tobytes() for row in entries.ports)
    yield from zip(places, zip(*does, ports, strict=True), strict=True)
