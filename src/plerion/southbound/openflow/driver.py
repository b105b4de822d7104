"""Plerion's tables on OpenFlow switches: the southbound that real networks have.

Switches connect to us. One that connects is read back whole; the driver sets up its furniture (`pipeline`), deletes
what carries our cookie and is nothing that we would have written, and reports `SwitchConnected`; tables and
admissions are then the controller's to compare and to repair, as after a restart. A change goes to all its switches
at the same time, to each as one bundle, and is answered when every one of them has answered the barrier behind it
and has had the time to look through its cache.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager

import numpy as np

from plerion.flow.admission import Admission, AdmissionChange
from plerion.flow.diff import Diff, Kind
from plerion.flow.entry import Tables
from plerion.flow.fabric import fabric
from plerion.flow.render import LastHop
from plerion.index.address import AddressPlan
from plerion.index.dz import WHOLE
from plerion.index.dzset import DzColumns
from plerion.southbound.openflow.cache import MESSAGES, settled, turned, whose_turn
from plerion.southbound.openflow.connection import Connection, ConnectionLost
from plerion.southbound.openflow.decode import port_descriptions
from plerion.southbound.openflow.events import (
    NotConnected,
    PacketArrived,
    PortChanged,
    SwitchConnected,
    SwitchEvent,
    SwitchLost,
    SwitchRefused,
    SwitchStatistics,
)
from plerion.southbound.openflow.flowmod import EntryTooLong, admission_mods, forwarding_mods
from plerion.southbound.openflow.inbox import Inbox
from plerion.southbound.openflow.inspection import admissions, held, statistics
from plerion.southbound.openflow.messages import PacketIn, PacketOut, Part, PortStatus
from plerion.southbound.openflow.phases import USUAL, Timing
from plerion.southbound.openflow.pipeline import EXACTLY, Purpose, network
from plerion.southbound.openflow.readback import read_back
from plerion.southbound.openflow.repair import check_taken, furnish
from plerion.southbound.openflow.server import SwitchServer, Tls
from plerion.southbound.openflow.shadow import Shadow
from plerion.southbound.openflow.shapes import SwitchShapes
from plerion.southbound.protocol import EntriesRefused
from plerion.topology.graph import SwitchId, Topology

WHOLE_SPACE = AddressPlan()


class OpenFlowSouthbound:
    """The switches of a topology behind OpenFlow 1.3; use it inside `listening`.

    A switch's id is its position in the topology, from 1, unless `ids` says otherwise.
    """

    def __init__(
        self,
        topology: Topology,
        plan: AddressPlan = WHOLE_SPACE,
        last_hop: LastHop = "raw",
        ids: Mapping[SwitchId, int] | None = None,
        timing: Timing = USUAL,
    ) -> None:
        network(plan, WHOLE)  # refuses a plan that switches cannot match
        self.fabric = fabric(topology)
        self.ids = dict(ids or {switch: i for i, switch in enumerate(topology.switches, start=1)})
        self.port: int | None = None
        self._settle_seconds = timing.settle
        self._shapes = {s: SwitchShapes(self.fabric, plan, last_hop, s) for s in topology.switches}
        self._shadows = {s: Shadow(self.fabric.port_words) for s in topology.switches}
        self._connections: dict[SwitchId, Connection] = {}
        self._down: set[tuple[SwitchId, int]] = set()
        self._inbox = Inbox()
        self._connected = asyncio.Condition()
        named = {number: switch for switch, number in self.ids.items()}
        self._server = SwitchServer(named, self._serve, self._arrived, self._inbox.put, timing)

    @asynccontextmanager
    async def listening(
        self, host: str = "127.0.0.1", port: int = 6653, tls: Tls | None = None
    ) -> AsyncIterator[OpenFlowSouthbound]:
        """Takes connections of switches; port 0 stands for any free one, see `port`."""
        self.rehearse()
        async with self._server.listening(host, port, tls) as self.port:
            yield self

    @property
    def packets_dropped(self) -> int:
        """Packets for the controller that it was too slow for."""
        return self._inbox.dropped

    @property
    def connected(self) -> frozenset[SwitchId]:
        return frozenset(self._connections)

    async def until_connected(
        self, switches: Iterable[SwitchId] | None = None, timeout: float = 30.0
    ) -> None:
        """Returns when all these switches, or all there are, are connected; raises `TimeoutError` naming the others."""
        wanted = frozenset(self.fabric.topology.switches if switches is None else switches)
        async with self._connected:
            try:
                await asyncio.wait_for(self._connected.wait_for(lambda: wanted <= self.connected), timeout)
            except TimeoutError:
                missing = ", ".join(sorted(wanted - self.connected))
                raise TimeoutError(f"not connected after {timeout:g} s: {missing}") from None

    async def events(self) -> AsyncIterator[SwitchEvent]:
        """Everything that switches report, from the start; for one reader."""
        async for event in self._inbox.taken():
            yield event

    async def apply(self, change: Diff) -> frozenset[SwitchId]:
        order = np.argsort(change.switch, kind="stable")
        numbers, first = np.unique(change.switch[order], return_index=True)
        names, ends = self.fabric.topology.switches, [*first[1:].tolist(), len(order)]
        spans = zip(numbers.tolist(), first.tolist(), ends, strict=False)
        parts = {names[x]: order[begin:end] for x, begin, end in spans}

        async def tell(switch: SwitchId) -> None:
            rows = parts[switch]
            dz, kind, ports = change.dz[rows], change.kind[rows], change.ports[rows]
            shapes = self._shapes[switch]
            await self._change(
                switch,
                len(rows),
                bool((kind == Kind.DELETE).any()),
                lambda xid, bundle: forwarding_mods(shapes, dz, kind, ports, xid, bundle).octets,
                lambda: self._shadows[switch].record(dz, kind, ports),
            )

        return await self._everywhere(parts, tell)

    async def admit(self, change: AdmissionChange) -> frozenset[SwitchId]:
        parts: dict[SwitchId, tuple[list[Admission], list[Admission]]] = {}
        for side, several in enumerate((change.removed, change.added)):
            for admission in several:
                parts.setdefault(admission.switch, ([], []))[side].append(admission)

        async def tell(switch: SwitchId) -> None:
            removed, added = parts[switch]
            shadow = self._shadows[switch]

            def record() -> None:
                shadow.admissions = shadow.admissions.difference(removed).union(added)

            await self._change(
                switch,
                len(removed) + len(added),
                bool(removed),
                lambda xid, bundle: admission_mods(self._shapes[switch], removed, added, xid, bundle).octets,
                record,
            )

        return await self._everywhere(parts, tell)

    async def tables(self) -> Tables:
        await self._read(Purpose.FORWARDING)
        parts = [self._shadows[switch].table() for switch in self.fabric.topology.switches]
        first = np.cumsum([0, *(len(dz) for dz, _ in parts)]).astype(np.int64)
        none = np.empty((0, self.fabric.port_words), np.uint64)
        ports = np.concatenate([none, *(ports for _, ports in parts)])
        return Tables(self.fabric, first, DzColumns.joined([dz for dz, _ in parts]), ports)

    async def admissions(self) -> frozenset[Admission]:
        await self._read(Purpose.ADMISSION)
        return frozenset().union(*(shadow.admissions for shadow in self._shadows.values()))

    async def send_packet(self, switch: SwitchId, port: int, frame: bytes) -> None:
        """Sends a frame out of a port; raises `NotConnected` when nobody can tell the switch to."""
        connection = self._connections.get(switch)
        if connection is None:
            raise NotConnected(switch)
        try:
            await connection.tell(PacketOut(port, frame))
        except ConnectionLost as lost:
            raise NotConnected(switch, str(lost)) from None

    async def statistics(self, switch: SwitchId) -> SwitchStatistics:
        connection = self._connections.get(switch)
        if connection is None:
            raise NotConnected(switch)
        try:
            return await statistics(self._shapes[switch], connection)
        except ConnectionLost as lost:
            raise NotConnected(switch, str(lost)) from None

    def rehearse(self) -> None:
        """Compiles what reads and writes entries, so that no switch waits for the compiler on a new machine."""
        for shapes in list(self._shapes.values())[:1]:
            none = np.zeros((1, self.fabric.port_words), np.uint64)
            forwarding_mods(shapes, DzColumns.of([WHOLE]), np.ones(1, np.uint8), none, 1, 1)
            read_back(shapes, b"")

    async def _everywhere(
        self, parts: Iterable[SwitchId], tell: Callable[[SwitchId], Awaitable[None]]
    ) -> frozenset[SwitchId]:
        """Tells all at once and waits for all; those that could not be told. A refusal is raised at the end."""
        switches = list(parts)
        outcomes = await asyncio.gather(*map(tell, switches), return_exceptions=True)
        failures = [outcome for outcome in outcomes if outcome is not None]
        for failure in failures:
            if not isinstance(failure, ConnectionLost):
                raise failure
        pairs = zip(switches, outcomes, strict=True)
        missed = frozenset(switch for switch, outcome in pairs if isinstance(outcome, ConnectionLost))
        told = [self._connections[s] for s in switches if s not in missed and s in self._connections]
        await settled(told, self._settle_seconds)
        return missed

    async def _change(
        self,
        switch: SwitchId,
        count: int,
        deletes: bool,
        write: Callable[[int, int], bytes],
        record: Callable[[], None],
    ) -> None:
        connection, shadow = self._connections.get(switch), self._shadows[switch]
        if connection is None:
            raise ConnectionLost("not connected")

        def whole(xid: int, bundle: int) -> bytes:
            return write(xid, bundle) + (turned(shadow.turn, xid + count, bundle) if deletes else b"")

        async with connection.changing:
            try:
                errors = await connection.change(count + deletes * MESSAGES, whole)
                check_taken(switch, count, errors)
            except EntryTooLong as error:
                raise EntriesRefused(switch, str(error), count) from None
            record()
            shadow.turn ^= deletes

    async def _read(self, purpose: Purpose) -> None:
        """Brings what is known of all connected switches up to date."""
        connections = dict(self._connections)
        outcomes = await asyncio.gather(
            *(self._held(switch, connection, purpose) for switch, connection in connections.items()),
            return_exceptions=True,
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException) and not isinstance(outcome, ConnectionLost):
                raise outcome

    async def _held(self, switch: SwitchId, connection: Connection, purpose: Purpose) -> None:
        async with connection.changing:
            told = await held(self._shapes[switch], connection, purpose.cookie, EXACTLY)
            if purpose is Purpose.FORWARDING:
                self._shadows[switch].replace(told.dz, told.ports)
            else:
                self._shadows[switch].admissions = await admissions(self._shapes[switch], told)

    async def _serve(self, switch: SwitchId, connection: Connection) -> None:
        """What happens to a switch from its connection to its end."""
        shapes, shadow = self._shapes[switch], self._shadows[switch]
        try:
            told = await furnish(shapes, connection)
            ports = port_descriptions(await connection.rows(Part.PORT_DESCRIPTIONS))
        except EntriesRefused as refused:
            self._inbox.put(SwitchRefused(switch, connection.address, str(refused)))
            return
        shadow.replace(told.dz, told.ports)
        shadow.admissions, shadow.turn = await admissions(shapes, told), whose_turn(told)
        self._connections[switch] = connection
        self._inbox.put(SwitchConnected(switch))
        up = {port.number for port in ports if port.up}
        for number in self.fabric.topology.ports(switch):
            self._port(switch, number, number in up)
        async with self._connected:
            self._connected.notify_all()
        try:
            await connection.ended.wait()
        finally:
            if self._connections.get(switch) is connection:
                del self._connections[switch]
            self._inbox.put(SwitchLost(switch, connection.closed or "no longer listening"))

    def _arrived(self, switch: SwitchId, message: PacketIn | PortStatus) -> None:
        if isinstance(message, PortStatus):
            if message.port.number in self.fabric.topology.ports(switch):
                self._port(switch, message.port.number, message.port.up and not message.gone)
        else:
            self._inbox.put(PacketArrived(switch, message.in_port, message.payload))

    def _port(self, switch: SwitchId, number: int, up: bool) -> None:
        """Reports a port that is not as it was last reported; at the start all are thought to be up."""
        if up == ((switch, number) in self._down):
            (self._down.discard if up else self._down.add)((switch, number))
            self._inbox.put(PortChanged(switch, number, up))
