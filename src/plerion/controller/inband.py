"""Control messages of hosts: frames that switches hand up, and answers that go out by the port they came in by."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from ipaddress import IPv6Address
from itertools import count
from logging import getLogger

from plerion.controller.desk import Desk, Work
from plerion.controller.inputs import Input
from plerion.controller.lease import Session
from plerion.controller.service import Controller
from plerion.flow.admission import CONTROL_ADDRESS, CONTROL_PORT
from plerion.topology.graph import HostId, Port, SwitchId, Topology, ipv6, mac
from plerion.wire.control import KeepAlive, Notice, Reply, Request, decode_request, encode
from plerion.wire.error import WireError
from plerion.wire.frame import UdpFrame, build, mac_bytes, parse
from plerion.wire.segment import Reassembly, segments

OWN_MAC = mac_bytes("02:00:70:6c:65:72")
OWN_ADDRESS = IPv6Address(
    "fd00::706c:6572"
)  # a packet cannot come from the multicast address that they are sent to

Send = Callable[[SwitchId, int, bytes], Awaitable[None]]
log = getLogger(__name__)


@dataclass(slots=True)
class InBandTally:
    malformed: int = 0
    strangers: int = 0  # packets from a port without a host
    repeats: int = 0  # of frames whose request is being worked on
    replies: int = 0
    notices: int = 0
    undelivered: int = 0  # replies and notices whose switch could not be told


@dataclass(frozen=True, slots=True)
class _Caller:
    """Where a reply goes."""

    host: HostId
    place: Port
    udp_port: int


class InBand:
    """The desk behind switches: `arrived` takes a frame and returns at once; answers follow when they are true."""

    def __init__(self, topology: Topology, controller: Controller, desk: Desk, send: Send) -> None:
        self.tally = InBandTally()
        self.desk = desk
        self._controller = controller
        self._send = send
        self._reassembly = Reassembly()
        self._message_ids = count(1)
        self._tasks: set[asyncio.Task[None]] = set()
        # Hosts ask again when answers take long. Then there is much to do, and knowing the frame saves reading it.
        self._working: set[tuple[Port, bytes]] = set()
        self._callers: dict[Session, _Caller] = {}  # where those with a lease were last heard
        self._hosts = {topology.attachment(host): host for host in topology.hosts}
        self._own = {h: (mac_bytes(mac(topology, h)), IPv6Address(ipv6(topology, h))) for h in topology.hosts}

    def arrived(self, place: Port, frame: bytes, now: float) -> None:
        """A packet that came in at this port of a switch."""
        if (place, frame) in self._working:
            self.tally.repeats += 1
            return
        host = self._hosts.get(place)
        if host is None:
            self.tally.strangers += 1
            return
        try:
            found = parse(frame)
            if found.destination != CONTROL_ADDRESS or found.destination_port != CONTROL_PORT:
                raise WireError("this is not for the controller")
            message = self._reassembly.receive((host, found.source_port), found.payload, now)
            request = None if message is None else decode_request(message)
        except WireError as error:
            self.tally.malformed += 1
            log.debug("%s at %s: %s", host, place, error)
            return
        if request is not None:
            caller = _Caller(host, place, found.source_port)
            outcome = self.desk.receive(host, request, now)
            self._heard(caller, request)
            if isinstance(outcome, Work):
                self._working.add((place, frame))
                self._spawn(self._worked(caller, outcome, frame))
            elif outcome is not None:
                self._spawn(self._reply(caller, outcome))

    def expire(self, now: float) -> None:
        """Withdraws what belongs to sessions that gave no sign of life."""
        gone = self.desk.expired(now)
        if len(self._callers) > len(self.desk.leases):
            self._callers = {one: at for one, at in self._callers.items() if one in self.desk.leases}
        if gone:
            log.info("leases ended: %d interests are withdrawn", len(gone))
            self._spawn(self._withdrawn(gone))

    def tell(self, session: Session) -> None:
        """Sends the session a notice of the description that is in force, if it is known where it is."""
        caller, told = self._callers.get(session), self.desk.adoption.described
        if caller is not None:
            self.tally.notices += 1
            self._spawn(self._reply(caller, Notice(0, told.epoch, told.digest)))

    def _heard(self, caller: _Caller, request: Request) -> None:
        session = Session(caller.host, request.session)
        if session not in self.desk.leases:
            self._callers.pop(session, None)
            return
        self._callers[session] = caller
        if isinstance(request, KeepAlive) and session not in self.desk.adoption:
            self.tell(session)

    async def _worked(self, caller: _Caller, work: Work, frame: bytes) -> None:
        try:
            answers = await self._controller.handle_all(work.inputs)
        except Exception as error:  # the journal's or a switch's; the host is told, and may ask again
            reply = self.desk.fail(work, f"the controller could not do this now: {error}")
        else:
            reply = self.desk.finish(work, (answer.reason for answer in answers))
        finally:
            self._working.discard((caller.place, frame))
        await self._reply(caller, reply)

    async def _withdrawn(self, gone: list[Input]) -> None:
        for answer in await self._controller.handle_all(gone):
            if not answer.ready:
                log.warning("an interest without a lease was not withdrawn: %s", answer.reason)

    async def _reply(self, caller: _Caller, reply: Reply) -> None:
        own_mac, own_address = self._own[caller.host]
        try:
            for payload in segments(encode(reply), next(self._message_ids)):
                frame = UdpFrame(
                    OWN_MAC, own_mac, OWN_ADDRESS, own_address, CONTROL_PORT, caller.udp_port, payload
                )
                await self._send(SwitchId(caller.place.node), caller.place.number, build(frame))
            self.tally.replies += 1
        except ConnectionError as error:  # the host will ask again
            self.tally.undelivered += 1
            log.debug("a reply to %s was not delivered: %s", caller.host, error)

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("a request was not answered", exc_info=task.exception())
