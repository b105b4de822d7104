"""A network in one process for clients: the real controller logic behind the real wire format, on sockets of ::1.

Control messages come in on a UDP port and go through `controller.step`. Events travel between loopback transports;
who gets one is decided by walking the tables that the controller compiled, from the host that sent it. It can lose
messages and forget sessions, as networks and controllers do.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from ipaddress import IPv6Network
from typing import Any

import plerion
from plerion.client.opening import Opening
from plerion.client.session import Session
from plerion.client.transport import LoopbackTransport
from plerion.content.schema import Enumeration, Number, Schema
from plerion.controller import inputs
from plerion.controller.state import Settings, State, initial
from plerion.controller.step import Refuse, step
from plerion.flow.walk import ModelNetwork
from plerion.index.address import AddressPlan
from plerion.index.content_index import ContentIndex
from plerion.index.propose import regular
from plerion.topology import fat_tree
from plerion.topology.graph import HostId
from plerion.wire import control
from plerion.wire.control import Ready, Reply, Request, Unknown
from plerion.wire.description import Description, cut, digest, pack
from plerion.wire.error import WireError
from plerion.wire.segment import Reassembly, segments

SCHEMA = Schema(
    (
        Number("temperature", -20, 60),
        Number("floor", 0, 40, integer=True),
        Enumeration("room", ("attic", "hall", "cellar")),
    )
)
PLAN = AddressPlan("ipv6", 2, 1)


class Network(asyncio.DatagramProtocol):
    """Hosts h1, h2, … of a small fat tree, each for the sessions that connect as it."""

    def __init__(self, index: ContentIndex | None = None) -> None:
        self.state: State = initial(Settings(fat_tree(4, 2), index or regular(SCHEMA, 24)))
        self.asked: Counter[str] = Counter()
        self.lose: Callable[[Request], bool] = lambda _: False
        self.quota = 100
        self.known: set[str] = set()
        self.adopted: set[str] = set()
        self.ports: dict[str, list[int]] = {}
        self._hosts: dict[str, str] = {}
        self._arriving: deque[str] = deque()
        self._reassembly = Reassembly()
        self._peers: dict[str, Any] = {}
        self._transport: asyncio.DatagramTransport
        self.describe(self.state.settings.index)

    @classmethod
    @asynccontextmanager
    async def open(cls, index: ContentIndex | None = None) -> AsyncIterator[Network]:
        made = cls(index)
        endpoint, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: made, local_addr=("::1", 0)
        )
        try:
            yield made
        finally:
            endpoint.close()

    @property
    def target(self) -> tuple[str, int]:
        name = self._transport.get_extra_info("sockname")
        return name[0], name[1]

    def transport(self, host: str) -> LoopbackTransport:
        made = LoopbackTransport(lambda address: self.reach(host, address))
        self.ports.setdefault(host, []).append(made.port)
        return made

    def expect(self, host: str) -> LoopbackTransport:
        """The next session that joins is at this host; the transport is for it."""
        self._arriving.append(host)
        return self.transport(host)

    def connect(self, host: str, **options: Any) -> Opening[Session]:
        made: Any = {"transport": self.expect(host), "deadline_seconds": 5.0} | options
        return plerion.connect(controller=self.target, **made)

    def reach(self, host: str, address: bytes) -> list[int]:
        """The ports of all sessions at the hosts that an event to this address reaches, if it may enter at all."""
        code = PLAN.dz(IPv6Network((int.from_bytes(address, "big"), 128)))
        entry = self.state.surviving.attachment(HostId(host))
        here = (entry.node, entry.number)
        if not any((a.switch, a.port) == here and a.dz.covers(code) for a in self.state.admitted):
            return []
        walked = ModelNetwork(self.state.table.tables()).walk(code, HostId(host))
        return [port for reached in walked.delivered for port in self.ports.get(reached, [])]

    def describe(self, index: ContentIndex) -> None:
        self.packed = pack(Description(index, PLAN, "raw"))
        self.adopted.clear()
        self.epoch = index.epoch

    def forget(self) -> None:
        """What a controller that lost its memory does."""
        self.state = initial(self.state.settings)
        self.known.clear()

    def notify(self) -> None:
        for peer in self._peers.values():
            self._send(control.Notice(0, self.epoch, digest(self.packed)), peer)

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        try:
            message = self._reassembly.receive(addr, data, asyncio.get_running_loop().time())
            request = None if message is None else control.decode_request(message)
        except WireError:
            self.asked["malformed"] += 1
            return
        if request is not None:
            self.asked[type(request).__name__] += 1
            self._peers[request.session] = addr
            if not self.lose(request):
                self._send(self.answer(request), addr)

    def _send(self, reply: Reply, to: Any) -> None:
        for packet in segments(control.encode(reply), reply.number):
            self._transport.sendto(packet, to)

    def answer(self, request: Request) -> Reply:
        number, session = request.number, request.session
        parts = cut(self.packed)
        if isinstance(request, control.Join):
            if session not in self._hosts:
                self._hosts[session] = self._arriving.popleft()
            self.known.add(session)
            who = self._hosts[session], min(request.lease_seconds, 60.0)
            return control.Welcome(number, *who, self.epoch, digest(self.packed), len(parts))
        if session not in self.known:
            return Unknown(number)
        if isinstance(request, control.Describe):
            return control.Part(number, request.part, len(parts), parts[request.part])
        if isinstance(request, control.Leave):
            self.withdraw(session)
            self.known.discard(session)
        elif isinstance(request, control.Adopted):
            current = request.digest == digest(self.packed)
            (self.adopted.add if current else self.adopted.discard)(session)
            return Ready(number) if current else control.Outdated(number)
        elif isinstance(request, control.Advertise) and session not in self.adopted:
            return control.Outdated(number)
        elif not isinstance(request, control.KeepAlive):
            return self._take(request, f"{self._hosts[session]}/{session}/{request.name}")
        return Ready(number)

    def _take(
        self,
        request: control.Advertise | control.Unadvertise | control.Subscribe | control.Unsubscribe,
        name: str,
    ) -> Reply:
        host = name.partition("/")[0]
        received: inputs.Input
        match request:
            case control.Advertise():
                received = inputs.Advertise(name, host, request.filter)
            case control.Subscribe():
                if len(self.state.subscriptions) >= self.quota:
                    return control.refused(
                        request.number, f"{host} has {self.quota} subscriptions, its quota"
                    )
                received = inputs.Subscribe(name, host, request.filter)
            case control.Unadvertise():
                received = inputs.Unadvertise(name)
            case control.Unsubscribe():
                received = inputs.Unsubscribe(name)
        self.state, effects = step(self.state, received)
        for effect in effects:
            if isinstance(effect, Refuse):
                return control.refused(request.number, effect.reason)
        return Ready(request.number)

    def withdraw(self, session: str) -> None:
        mine = f"{self._hosts[session]}/{session}/"
        gone: list[inputs.Input] = [
            inputs.Unsubscribe(i) for i in self.state.subscriptions if i.startswith(mine)
        ]
        gone += [inputs.Unadvertise(i) for i in self.state.advertisements if i.startswith(mine)]
        for received in gone:
            self.state, _ = step(self.state, received)
