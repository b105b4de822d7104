"""Switches in memory that come and go, fill up and hand packets both ways: a network for a whole service."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from time import monotonic

import numpy as np

from plerion.flow.admission import AdmissionChange
from plerion.flow.diff import Diff, Kind
from plerion.flow.fabric import fabric
from plerion.southbound.openflow.events import (
    NotConnected,
    PacketArrived,
    PortChanged,
    SwitchConnected,
    SwitchEvent,
    SwitchLost,
    SwitchStatistics,
)
from plerion.southbound.protocol import EntriesRefused
from plerion.southbound.simulated import SimulatedSouthbound
from plerion.topology import Port, SwitchId, Topology


class SimulatedNetwork(SimulatedSouthbound):
    """Passes for a driver: a switch that is away takes nothing, one that is full refuses its whole part."""

    def __init__(self, topology: Topology) -> None:
        super().__init__(fabric(topology))
        self.topology = topology
        self.room: dict[SwitchId, int] = {}
        self.sent: list[tuple[Port, bytes]] = []
        self.told: Counter[SwitchId] = Counter()
        self.rounds = 0
        self._there: set[SwitchId] = set()
        self._events: asyncio.Queue[SwitchEvent] = asyncio.Queue()

    @property
    def connected(self) -> frozenset[SwitchId]:
        return frozenset(self._there)

    def connect(self, *switches: SwitchId) -> None:
        for switch in switches or self.topology.switches:
            self._there.add(switch)
            self._events.put_nowait(SwitchConnected(switch))

    def lose(self, switch: SwitchId, blank: bool = False) -> None:
        """The switch cannot be told; a `blank` one also forgets what it held."""
        self._there.discard(switch)
        if blank:
            number = self._fabric.switch_number[switch]
            self._entries = {key: ports for key, ports in self._entries.items() if key[0] != number}
            self._admitted = frozenset(a for a in self._admitted if a.switch != switch)
        self._events.put_nowait(SwitchLost(switch))

    def port(self, switch: SwitchId, number: int, up: bool) -> None:
        self._events.put_nowait(PortChanged(switch, number, up))

    def hand_up(self, place: Port, frame: bytes) -> None:
        self._events.put_nowait(PacketArrived(SwitchId(place.node), place.number, frame))

    async def events(self) -> AsyncIterator[SwitchEvent]:
        while True:
            yield await self._events.get()

    async def apply(self, change: Diff) -> frozenset[SwitchId]:
        self.rounds += 1
        await asyncio.sleep(0)
        names = self.topology.switches
        away = np.array([names[x] not in self._there for x in change.switch.tolist()], np.bool_)
        missed = frozenset(names[x] for x in change.switch[away].tolist())
        taken = _rows(change, ~away)
        for switch, room in self.room.items():
            self._check_room(taken, switch, room)
        self.told.update(names[x] for x in taken.switch.tolist())
        await super().apply(taken)
        return missed

    def _check_room(self, change: Diff, switch: SwitchId, room: int) -> None:
        number = self._fabric.switch_number[switch]
        mine = _rows(change, change.switch == number)
        held = {key[1:] for key in self._entries if key[0] == number}
        for high, low, length, kind in zip(mine.dz.high, mine.dz.low, mine.dz.length, mine.kind, strict=True):
            key = (int(high), int(low), int(length))
            (held.discard if kind == Kind.DELETE else held.add)(key)
        if len(mine) and len(held) > room:
            raise EntriesRefused(switch, "the table is full", len(mine))

    async def admit(self, change: AdmissionChange) -> frozenset[SwitchId]:
        there = AdmissionChange(
            *(
                frozenset(a for a in part if a.switch in self._there)
                for part in (change.added, change.removed)
            )
        )
        await super().admit(there)
        every = {admission.switch for part in (change.added, change.removed) for admission in part}
        return frozenset(every - self._there)

    async def send_packet(self, switch: SwitchId, port: int, frame: bytes) -> None:
        if switch not in self._there:
            raise NotConnected(switch)
        self.sent.append((Port(switch, port), frame))
        peer = self.topology.peer(switch, port)
        if peer is not None and peer.node in self._fabric.switch_number and frame[12:14] == b"\x88\xcc":
            self.hand_up(peer, frame)  # as the entry for LLDP does in a real switch

    async def statistics(self, switch: SwitchId) -> SwitchStatistics:
        number = self._fabric.switch_number[switch]
        entries = sum(key[0] == number for key in self._entries)
        return SwitchStatistics(switch, {1: entries}, {}, (), {}, 0, 0)


def _rows(change: Diff, kept: np.ndarray) -> Diff:
    return Diff(change.fabric, change.switch[kept], change.dz[kept], change.kind[kept], change.ports[kept])


async def until(holds: Callable[[], object], seconds: float = 10.0) -> None:
    """Waits for a condition, not for a time; fails when it does not come about."""
    end = monotonic() + seconds
    while not holds():
        assert monotonic() < end, f"did not come about within {seconds:g} s"
        await asyncio.sleep(0.005)
