"""What switches have reported and nobody has taken yet; packets only so many, and of one port only a few of these.

Packets come as fast as hosts send them, everything else as fast as switches change. So a host that floods has its own
packets dropped and counted, and whoever else sends waits behind a few of them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Generic, TypeVar

from plerion.southbound.openflow.events import Bridged, PacketArrived, SwitchEvent
from plerion.topology.graph import SwitchId

T = TypeVar("T", SwitchEvent, Bridged)


class Inbox(Generic[T]):
    """What came, in its order, for one reader."""

    def __init__(self, packets: int, of_one_port: int) -> None:
        self.dropped = 0  # packets for which there was no room
        self._room, self._room_of_port = packets, of_one_port
        self._events: asyncio.Queue[T] = asyncio.Queue()
        self._packets = 0
        self._waiting: Counter[tuple[SwitchId, int]] = Counter()

    def put(self, event: T) -> None:
        if isinstance(event, PacketArrived | Bridged):
            place = event.switch, event.in_port
            if self._packets >= self._room or self._waiting[place] >= self._room_of_port:
                self.dropped += 1
                return
            self._waiting[place] += 1
            self._packets += 1
        self._events.put_nowait(event)

    async def taken(self) -> AsyncIterator[T]:
        """Everything, from the start; waits where there is nothing."""
        while True:
            event = await self._events.get()
            if isinstance(event, PacketArrived | Bridged):
                self._leave(event.switch, event.in_port)
            yield event

    def _leave(self, switch: SwitchId, port: int) -> None:
        self._packets -= 1
        self._waiting[switch, port] -= 1
        if not self._waiting[switch, port]:
            del self._waiting[switch, port]  # a switch may name any port
