"""Switches in memory that come and go, fill up and hand packets both ways: a network for a whole service."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from time import monotonic

from plerion.flow.diff import Diff
from plerion.flow.fabric import fabric
from plerion.southbound.openflow.events import (
    Bridged,
    NotConnected,
    PacketArrived,
    PortChanged,
    SwitchConnected,
    SwitchEvent,
    SwitchLost,
    SwitchStatistics,
)
from plerion.southbound.simulated import SimulatedSouthbound
from plerion.topology import Port, SwitchId, Topology


class SimulatedNetwork(SimulatedSouthbound):
    """Passes for a driver: it reports what happens to its switches, and nobody is connected at first."""

    def __init__(self, topology: Topology) -> None:
        super().__init__(fabric(topology))
        self.topology = topology
        self.sent: list[tuple[Port, bytes]] = []
        self.told: Counter[SwitchId] = Counter()
        self.rounds = 0
        self._there.clear()
        self._events: asyncio.Queue[SwitchEvent] = asyncio.Queue()
        self._bridged: asyncio.Queue[Bridged] = asyncio.Queue()

    def connect(self, *switches: SwitchId) -> None:
        super().connect(*switches)
        for switch in switches or self.topology.switches:
            self._events.put_nowait(SwitchConnected(switch))

    def lose(self, switch: SwitchId, blank: bool = False) -> None:
        super().lose(switch, blank)
        self._events.put_nowait(SwitchLost(switch))

    def port(self, switch: SwitchId, number: int, up: bool) -> None:
        self._events.put_nowait(PortChanged(switch, number, up))

    def hand_up(self, place: Port, frame: bytes) -> None:
        self._events.put_nowait(PacketArrived(SwitchId(place.node), place.number, frame))

    def bridge(self, place: Port, frame: bytes) -> None:
        """An event that an entry sends to the controller."""
        self._bridged.put_nowait(Bridged(SwitchId(place.node), place.number, frame))

    async def bridged(self) -> AsyncIterator[Bridged]:
        while True:
            yield await self._bridged.get()

    async def events(self) -> AsyncIterator[SwitchEvent]:
        while True:
            yield await self._events.get()

    async def apply(self, change: Diff) -> frozenset[SwitchId]:
        self.rounds += 1
        await asyncio.sleep(0)
        missed = await super().apply(change)
        names = self.topology.switches
        self.told.update(names[x] for x in change.switch.tolist() if names[x] in self._there)
        return missed

    async def hand_on(self, switch: SwitchId, ports: frozenset[int], frame: bytes) -> None:
        for port in sorted(ports):
            await self.send_packet(switch, port, frame)

    async def send_packet(self, switch: SwitchId, port: int, frame: bytes) -> None:
        if switch not in self._there:
            raise NotConnected(switch)
        self.sent.append((Port(switch, port), frame))
        peer = self.topology.peer(switch, port)
        if peer is not None and peer.node in self._fabric.switch_number and frame[12:14] == b"\x88\xcc":
            self.hand_up(peer, frame)  # as the entry for LLDP does in a real switch

    async def statistics(self, switch: SwitchId) -> SwitchStatistics:
        return SwitchStatistics(switch, {1: (await self.tables()).sizes()[switch]}, {}, (), {}, 0, 0)


async def until(holds: Callable[[], object], seconds: float = 10.0) -> None:
    """Waits for a condition, not for a time; fails when it does not come about."""
    end = monotonic() + seconds
    while not holds():
        assert monotonic() < end, f"did not come about within {seconds:g} s"
        await asyncio.sleep(0.005)
