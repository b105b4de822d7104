"""A service on simulated switches, and hosts that speak to it in frames, as real ones do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from itertools import count
from pathlib import Path

from plerion.content.schema import Number, Schema
from plerion.controller.config import Config, LeaseTimes, Listen
from plerion.controller.journal import Journal
from plerion.controller.quota import Quotas
from plerion.controller.rehearsal import rehearse
from plerion.controller.run import Service
from plerion.controller.service import Controller
from plerion.controller.state import Settings
from plerion.flow.admission import CONTROL_ADDRESS, CONTROL_PORT, EVENT_PORT
from plerion.index.propose import regular
from plerion.topology import HostId, Port, Topology, ipv6, line, mac
from plerion.wire.control import (
    Adopted,
    Advertise,
    Describe,
    Join,
    Reply,
    Request,
    Subscribe,
    Welcome,
    decode_reply,
    encode,
)
from plerion.wire.event import EventDatagram
from plerion.wire.event import encode as encode_event
from plerion.wire.frame import UdpFrame, build, mac_bytes, multicast_mac, parse
from plerion.wire.segment import Reassembly, segments
from tests.scenarios.simulated_network import SimulatedNetwork, until

SCHEMA = Schema((Number("x", 0, 255, integer=True), Number("y", 0, 255, integer=True)))
SETTINGS = Settings(line(3), regular(SCHEMA, 16), budget=8, epoch_bits=2)
SESSION = "0123456789abcdef"


def config(folder: Path, settings: Settings = SETTINGS, **changes: object) -> Config:
    usual = {"leases": LeaseTimes(30.0, 60.0), "quotas": Quotas(), "grace_seconds": 0.2, "start_seconds": 5.0}
    usual |= {"openflow": Listen("127.0.0.1", 0), "api": Listen("127.0.0.1", 0)}
    return Config(settings, folder / "journal", **{**usual, **changes})  # type: ignore[arg-type]  # by name


@asynccontextmanager
async def serving(
    chosen: Config, network: SimulatedNetwork | None = None, connect: bool = True
) -> AsyncIterator[Service]:
    """A service at work; without a network it gets one whose switches are there."""
    rehearse(chosen.settings.index)
    used = network or SimulatedNetwork(chosen.settings.topology)
    if connect:
        used.connect()
    journal = Journal(chosen.journal, chosen.settings)
    try:
        every = chosen.settings.topology.switches
        controller = await Controller.start(chosen.settings, journal, used, absent=every)
        service = Service(chosen, controller, used)
        resumed = asyncio.create_task(controller.go_on())
        task = asyncio.create_task(service.run())
        try:
            if connect:
                await until(lambda: service.ready or task.done())
            yield service
        finally:
            service.stop()
            await task
            resumed.cancel()
    finally:
        journal.close()


def network_of(service: Service) -> SimulatedNetwork:
    assert isinstance(service.network, SimulatedNetwork)
    return service.network


@dataclass
class Host:
    """One client at a host's port; what it says of itself is true unless a test makes it lie."""

    service: Service
    name: str
    session: str = SESSION
    udp_port: int = 40_000
    numbers: count[int] = field(default_factory=lambda: count(1))
    seen: int = 0

    @property
    def topology(self) -> Topology:
        return self.service.config.settings.topology

    @property
    def place(self) -> Port:
        return self.topology.attachment(HostId(self.name))

    def say(self, payload: bytes, source: str | None = None) -> None:
        """A datagram to the controller."""
        claimed = HostId(source or self.name)
        frame = UdpFrame(
            mac_bytes(mac(self.topology, claimed)),
            multicast_mac(CONTROL_ADDRESS),
            IPv6Address(ipv6(self.topology, claimed)),
            CONTROL_ADDRESS,
            self.udp_port,
            CONTROL_PORT,
            payload,
        )
        network_of(self.service).hand_up(self.place, build(frame))

    def publish(
        self, settings: Settings, number: int, values: tuple[float, ...], epoch: int | None = None
    ) -> None:
        """An event that an entry of the edge sends to the controller."""
        code = settings.index.codes(values)[0]
        spoken = settings.index.epoch if epoch is None else epoch
        event = EventDatagram(f"{self.name}/{self.session}", number, spoken, 0, list(values), None)
        own = HostId(self.name)
        to = IPv6Address(str(settings.plan.address(code)))
        frame = UdpFrame(
            mac_bytes(mac(self.topology, own)),
            multicast_mac(to),
            IPv6Address(ipv6(self.topology, own)),
            to,
            EVENT_PORT,
            EVENT_PORT,
            encode_event(event),
        )
        network_of(self.service).bridge(self.place, build(frame))

    def send(self, request: Request) -> None:
        for payload in segments(encode(request), request.number):
            self.say(payload)

    def replies(self) -> list[Reply]:
        """All that the controller ever told this host."""
        reassembly, found = Reassembly(), []
        for place, frame in network_of(self.service).sent:
            if place == self.place and frame[12:14] != b"\x88\xcc":
                datagram = parse(frame)
                if datagram.destination_port == self.udp_port:
                    message = reassembly.receive(0, datagram.payload, 0.0)
                    found += [] if message is None else [decode_reply(message)]
        return found

    async def ask(self, request: Request) -> Reply:
        """The next reply to the request."""
        before = len(self.replies())
        self.send(request)
        await until(lambda: any(r.number == request.number for r in self.replies()[before:]))
        return next(reply for reply in self.replies()[before:] if reply.number == request.number)

    async def ask_to_join(self, lease_seconds: float = 30.0) -> Reply:
        return await self.ask(Join(next(self.numbers), self.session, lease_seconds))

    async def part(self, number: int) -> Reply:
        return await self.ask(Describe(next(self.numbers), self.session, number))

    async def join(self, lease_seconds: float = 30.0) -> Welcome:
        welcome = await self.ask_to_join(lease_seconds)
        assert isinstance(welcome, Welcome), welcome
        await self.adopt(welcome.digest)
        return welcome

    async def adopt(self, digest: str) -> Reply:
        return await self.ask(Adopted(next(self.numbers), self.session, digest))

    def advertise(self, name: str, filter: str) -> Advertise:
        return Advertise(next(self.numbers), self.session, name, filter)

    def subscribe(self, name: str, filter: str) -> Subscribe:
        return Subscribe(next(self.numbers), self.session, name, filter)
