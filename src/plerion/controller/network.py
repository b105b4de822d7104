"""What a running controller needs of a network beyond tables: who is there, what happens, and packets both ways."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from plerion.southbound.openflow.events import Bridged, SwitchEvent, SwitchStatistics
from plerion.southbound.protocol import Updatable
from plerion.topology.graph import SwitchId


class Network(Updatable, Protocol):
    """Switches that come and go. `NotConnected` is raised where a switch cannot be reached."""

    @property
    def connected(self) -> frozenset[SwitchId]: ...

    def events(self) -> AsyncIterator[SwitchEvent]:
        """Everything that switches report, in its order; for one reader."""
        ...

    def bridged(self) -> AsyncIterator[Bridged]:
        """Events that entries send to the controller instead of on; for one reader."""
        ...

    async def send_packet(self, switch: SwitchId, port: int, frame: bytes) -> None: ...

    async def hand_on(self, switch: SwitchId, ports: frozenset[int], frame: bytes) -> None:
        """Sends an event out of ports as the switch itself would."""
        ...

    async def statistics(self, switch: SwitchId) -> SwitchStatistics: ...
