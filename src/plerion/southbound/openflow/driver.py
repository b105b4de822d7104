"""Plerion's tables on OpenFlow switches: the southbound that real networks have.

Switches connect to us. One that connects is read back whole; the driver sets up its furniture (`pipeline`), deletes
what carries our cookie and is nothing that we would have written, and reports `SwitchConnected`; tables and
admissions are then the controller's to compare and to repair, as after a restart. A change goes to all its switches
at the same time, to each as one bundle, and is answered when every one of them has answered the barrier behind it
and has had the time to look through its cache.

Switches know one language, that of plans (`update.entries`): what a table or an admission says is put into it with the
stamp that is spoken, and what switches hold is taken from it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager

import numpy as np

from plerion.flow.admission import Admission, AdmissionChange
from plerion.flow.diff import Diff
from plerion.flow.entry import Tables
from plerion.flow.fabric import fabric
from plerion.flow.render import LastHop
from plerion.index.address import AddressPlan
from plerion.index.dz import WHOLE
from plerion.index.dzset import DzColumns
from plerion.southbound import stamped
from plerion.southbound.openflow.cache import NUDGES, settled
from plerion.southbound.openflow.connection import Connection, ConnectionLost
from plerion.southbound.openflow.decode import port_descriptions
from plerion.southbound.openflow.dialect import Dialect
from plerion.southbound.openflow.events import (
    Bridged,
    NotConnected,
    PacketArrived,
    PortChanged,
    SwitchConnected,
    SwitchEvent,
    SwitchLost,
    SwitchRefused,
    SwitchStatistics,
)
from plerion.southbound.openflow.flowmod import flow_mods
from plerion.southbound.openflow.inbox import Inbox
from plerion.southbound.openflow.inspection import statistics
from plerion.southbound.openflow.messages import PacketIn, PacketOut, Part, PortStatus
from plerion.southbound.openflow.phases import USUAL, Timing
from plerion.southbound.openflow.pipeline import VLAN, Action, Output, Purpose
from plerion.southbound.openflow.readback import read_back
from plerion.southbound.openflow.remote import RemoteSwitch
from plerion.southbound.openflow.server import SwitchServer, Tls
from plerion.southbound.openflow.shapes import SwitchShapes
from plerion.southbound.openflow.tags import united
from plerion.southbound.protocol import EntriesRefused
from plerion.topology.graph import SwitchId, Topology
from plerion.update.entries import ANY, Changes, Entries, Side, added, joined, no_entries
from plerion.update.state import Stamp, longest_first

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
        self.fabric = fabric(topology)
        self.dialect = Dialect(topology, plan, last_hop)  # refuses a plan that switches cannot match
        self.ids = dict(ids or {switch: i for i, switch in enumerate(topology.switches, start=1)})
        self.port: int | None = None
        self._settle_seconds = timing.settle
        self._switches = {
            s: RemoteSwitch(SwitchShapes(self.fabric, plan, last_hop, s)) for s in topology.switches
        }
        self._stamp = Stamp(plan.epoch % (1 << plan.epoch_bits) if plan.epoch_bits else ANY)
        self._updating = False
        self._down: set[tuple[SwitchId, int]] = set()
        self._inbox = Inbox[SwitchEvent](packets=10_000, of_one_port=500)
        self._detour = Inbox[Bridged](packets=50_000, of_one_port=10_000)
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
    def events_dropped(self) -> int:
        """Events on their way over the controller that it was too slow for."""
        return self._detour.dropped

    @property
    def connected(self) -> frozenset[SwitchId]:
        return frozenset(name for name, switch in self._switches.items() if switch.connection)

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

    async def bridged(self) -> AsyncIterator[Bridged]:
        """Events that entries bridge, beside everything else that switches report; for one reader."""
        async for event in self._detour.taken():
            yield event

    async def apply(self, change: Diff) -> frozenset[SwitchId]:
        return await self._tell(stamped.table_changes(change, self._stamp), in_update=False)

    async def admit(self, change: AdmissionChange) -> frozenset[SwitchId]:
        return await self._tell(stamped.edge_changes(self.fabric, change, self._stamp), in_update=False)

    async def tables(self) -> Tables:
        await self._read(Purpose.FORWARDING)
        return stamped.tables(self._rows(), self._stamp)

    async def admissions(self) -> frozenset[Admission]:
        await self._read(Purpose.ADMISSION)
        return stamped.admissions(self._rows(), self._stamp)

    def begin(self) -> None:
        self._updating = True

    def speak(self, stamp: Stamp) -> None:
        self._stamp = stamp

    async def tell(self, changes: Changes) -> frozenset[SwitchId]:
        return await self._tell(changes, in_update=True)

    async def overwrite(self, entries: Entries, switches: Collection[SwitchId]) -> frozenset[SwitchId]:
        number = self.fabric.switch_number
        parts = {switch: entries[entries.switch == number[switch]] for switch in switches}
        return await self._everywhere(parts, lambda s: self._switches[s].overwrite(parts[s]))

    async def entries(self) -> Entries:
        await self._read()
        return united(self._rows())

    async def end(self) -> frozenset[SwitchId]:
        self._updating = False

        async def sweep(switch: SwitchId) -> bool:
            remote = self._switches[switch]
            if remote.connection is None:
                raise ConnectionLost("not connected")
            return await remote.repair(remote.connection, self._kept)

        return await self._everywhere(self._switches, sweep)

    async def send_packet(self, switch: SwitchId, port: int, frame: bytes) -> None:
        """Sends a frame out of a port as it is; raises `NotConnected` when nobody can tell the switch to."""
        await self._send(switch, (Output(port),), frame)

    async def hand_on(self, switch: SwitchId, ports: frozenset[int], frame: bytes) -> None:
        """Sends an event out of ports as the switch itself would: without a tag, and rewritten, where hosts are."""
        tagged = frame[12:14] == VLAN.to_bytes(2, "big")
        await self._send(switch, self.dialect.outputs(switch, ports, untag=tagged), frame)

    async def statistics(self, switch: SwitchId) -> SwitchStatistics:
        remote = self._switches[switch]
        if remote.connection is None:
            raise NotConnected(switch)
        try:
            return await statistics(remote.shapes, remote.connection)
        except ConnectionLost as lost:
            raise NotConnected(switch, str(lost)) from None

    def rehearse(self) -> None:
        """Compiles what reads and writes entries, so that no switch waits for the compiler on a new machine."""
        for remote in list(self._switches.values())[:1]:
            none = np.zeros((1, self.fabric.port_words), np.uint64)
            first = np.zeros(1, np.int64)
            one = longest_first(self.fabric, first, DzColumns.of([WHOLE]), none, Side.BETWEEN, self._stamp)
            flow_mods(remote.shapes, added(one), 1, 1)
            read_back(remote.shapes, b"")

    async def _tell(self, changes: Changes, *, in_update: bool) -> frozenset[SwitchId]:
        names = self.fabric.topology.switches
        parts = {names[x]: part for x, part in changes.by_switch()}
        return await self._everywhere(
            parts, lambda switch: self._switches[switch].tell(parts[switch], in_update=in_update)
        )

    async def _everywhere(
        self, parts: Iterable[SwitchId], tell: Callable[[SwitchId], Awaitable[bool]]
    ) -> frozenset[SwitchId]:
        """Tells all at once and waits for all; those that could not be told. A refusal is raised at the end."""
        switches = list(parts)
        answers = await asyncio.gather(*map(tell, switches), return_exceptions=True)
        outcomes = dict(zip(switches, answers, strict=True))
        turned = [self._switches[switch] for switch in switches if outcomes[switch] is True]
        await self._settled([self._switches[s] for s in switches if isinstance(outcomes[s], bool)])
        for _ in range(NUDGES if turned else 0):
            await asyncio.gather(*(remote.nudge() for remote in turned), return_exceptions=True)
            await self._settled(turned)
        for outcome in answers:
            if isinstance(outcome, BaseException) and not isinstance(outcome, ConnectionLost):
                raise outcome
        return frozenset(switch for switch in switches if isinstance(outcomes[switch], ConnectionLost))

    async def _settled(self, remotes: Iterable[RemoteSwitch]) -> None:
        connections = [remote.connection for remote in remotes]
        await settled([one for one in connections if one is not None], self._settle_seconds)

    async def _read(self, purpose: Purpose | None = None) -> None:
        """Brings what is known of all connected switches up to date."""
        reads = (remote.read(purpose) for remote in self._switches.values())
        for outcome in await asyncio.gather(*reads, return_exceptions=True):
            if isinstance(outcome, BaseException) and not isinstance(outcome, ConnectionLost):
                raise outcome

    def _rows(self) -> Entries:
        return joined([no_entries(self.fabric), *(remote.rows for remote in self._switches.values())])

    def _kept(self, rows: Entries) -> Entries:
        """What a switch may hold now, of what it holds."""
        return rows if self._updating else rows[stamped.at_rest(rows, self._stamp)]

    async def _send(self, switch: SwitchId, actions: tuple[Action, ...], frame: bytes) -> None:
        connection = self._switches[switch].connection
        if connection is None:
            raise NotConnected(switch)
        try:
            await connection.tell(PacketOut(actions, frame))
        except ConnectionLost as lost:
            raise NotConnected(switch, str(lost)) from None

    async def _serve(self, switch: SwitchId, connection: Connection) -> None:
        """What happens to a switch from its connection to its end."""
        remote = self._switches[switch]
        try:
            await remote.repair(connection, self._kept)
            ports = port_descriptions(await connection.rows(Part.PORT_DESCRIPTIONS))
        except EntriesRefused as refused:
            self._inbox.put(SwitchRefused(switch, connection.address, str(refused)))
            return
        remote.connection = connection
        self._inbox.put(SwitchConnected(switch))
        up = {port.number for port in ports if port.up}
        for number in self.fabric.topology.ports(switch):
            self._port(switch, number, number in up)
        async with self._connected:
            self._connected.notify_all()
        try:
            await connection.ended.wait()
        finally:
            if remote.connection is connection:
                remote.connection = None
            self._inbox.put(SwitchLost(switch, connection.closed or "no longer listening"))

    def _arrived(self, switch: SwitchId, message: PacketIn | PortStatus) -> None:
        if isinstance(message, PortStatus):
            if message.port.number in self.fabric.topology.ports(switch):
                self._port(switch, message.port.number, message.port.up and not message.gone)
        elif message.cookie in (Purpose.ADMISSION.cookie, Purpose.FORWARDING.cookie):
            self._detour.put(Bridged(switch, message.in_port, message.payload))
        else:
            self._inbox.put(PacketArrived(switch, message.in_port, message.payload))

    def _port(self, switch: SwitchId, number: int, up: bool) -> None:
        """Reports a port that is not as it was last reported; at the start all are thought to be up."""
        if up == ((switch, number) in self._down):
            (self._down.discard if up else self._down.add)((switch, number))
            self._inbox.put(PortChanged(switch, number, up))
