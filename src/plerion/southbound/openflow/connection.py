"""A channel on a socket: reads, writes and keeps the time for the machine, and lets callers await its answers."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any

from plerion.southbound.openflow.channel import Channel
from plerion.southbound.openflow.messages import (
    BarrierRequest,
    EchoRequest,
    Error,
    Features,
    MultipartReply,
    MultipartRequest,
    PacketIn,
    PacketOut,
    Part,
    PortStatus,
)
from plerion.southbound.openflow.phases import (
    USUAL,
    Answered,
    Arrived,
    BundleEnded,
    Closed,
    Introduced,
    Occurrence,
    Refused,
    Timing,
)

_SLICE = 1 << 18  # bytes handed to the socket at a time; the next ones wait until it has room
_READ = 1 << 20

Errors = tuple[tuple[int, Error], ...]


class ConnectionLost(ConnectionError):  # noqa: N818 - an occurrence, not a mistake
    """The connection ended before the answer came."""


class RequestRefused(RuntimeError):  # noqa: N818 - an answer, not a mistake
    """The switch answered a request with an error."""


class Connection:
    """One switch's connection. `serve` runs until it ends; everything else may be called meanwhile."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        arrived: Callable[[PacketIn | PortStatus], None],
        timing: Timing = USUAL,
    ) -> None:
        self._reader, self._writer, self._arrived = reader, writer, arrived
        self._timing, self._channel = timing, Channel(monotonic(), timing)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._something_to_send = asyncio.Event()
        self._something_to_send.set()  # the greeting
        self._sent = asyncio.Event()
        self.features: asyncio.Future[Features] = asyncio.get_running_loop().create_future()
        self.closed: str | None = None  # why it ended
        self.ended = asyncio.Event()
        self.changing = asyncio.Lock()  # held while the switch is told a change

    @property
    def address(self) -> str:
        peer = self._writer.get_extra_info("peername")
        return "{}:{}".format(*peer[:2]) if isinstance(peer, tuple) else str(peer or "?")

    def certificate_names(self) -> frozenset[str] | None:
        """The names in the peer's certificate, None on a connection without one."""
        secured = self._writer.get_extra_info("ssl_object")
        if not isinstance(secured, ssl.SSLObject | ssl.SSLSocket):
            return None
        certificate: Any = secured.getpeercert() or {}
        names = {value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"}
        subject = [pair for part in certificate.get("subject", ()) for pair in part]
        return frozenset(names | {value for kind, value in subject if kind == "commonName"})

    async def serve(self) -> None:
        """Runs the connection to its end; never raises for what the peer does."""
        tasks = [asyncio.create_task(work()) for work in (self._read, self._write, self._keep_time)]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.close("closed here")
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._say_goodbye()
            with suppress(OSError, ssl.SSLError, asyncio.TimeoutError):
                self._writer.close()
                await asyncio.wait_for(self._writer.wait_closed(), 1.0)

    def _say_goodbye(self) -> None:
        """What is still to be said at the end, such as why a greeting was refused, if the socket takes it."""
        with suppress(OSError, RuntimeError):
            for octets in self._channel.outgoing():
                self._writer.write(octets[:_SLICE])

    def close(self, reason: str) -> None:
        self._happened(self._channel.close(reason))

    async def ask(self, request: BarrierRequest | MultipartRequest | EchoRequest) -> Any:
        """The answer to a request."""
        self._check_open()
        return await self._answer(self._channel.ask(request, monotonic()))

    async def rows(self, part: Part, cookie: int = 0, cookie_mask: int = 0) -> bytes:
        """The assembled rows of an answer in parts."""
        answer: MultipartReply = await self.ask(MultipartRequest(part, cookie, cookie_mask))
        return answer.body

    async def change(self, count: int, write: Callable[[int, int], bytes]) -> Errors:
        """Sends a bundle and waits until it is in force, or gives what the switch has against it."""
        self._check_open()
        errors: Errors = await self._answer(self._channel.bundle(count, write, monotonic()))
        return errors

    async def tell(self, message: PacketOut) -> None:
        """Sends what is not answered, as fast as the socket takes it."""
        self._check_open()
        self._channel.tell(message)
        self._sent.clear()
        self._something_to_send.set()
        await self._sent.wait()

    async def answers(self, within: float) -> bool:
        """Whether the switch is alive: it answers an echo in time."""
        try:
            await asyncio.wait_for(self.ask(EchoRequest(b"alive?")), within)
        except (TimeoutError, ConnectionLost, RequestRefused):
            return False
        return True

    def _check_open(self) -> None:
        if self.closed is not None:
            raise ConnectionLost(self.closed)

    async def _answer(self, xid: int) -> Any:
        waiting = self._waiting[xid] = asyncio.get_running_loop().create_future()
        self._something_to_send.set()
        try:
            return await waiting
        finally:
            self._waiting.pop(xid, None)

    async def _read(self) -> None:
        while self.closed is None:
            try:
                octets = await self._reader.read(_READ)
            except (OSError, ssl.SSLError):
                octets = b""
            self._happened(self._channel.receive(octets, monotonic()))
            self._something_to_send.set()

    async def _write(self) -> None:
        try:
            while self.closed is None:
                await self._something_to_send.wait()
                self._something_to_send.clear()
                octets = memoryview(b"".join(self._channel.outgoing()))
                for begin in range(0, len(octets), _SLICE):
                    self._writer.write(octets[begin : begin + _SLICE])
                    await self._writer.drain()
                self._sent.set()
        except (OSError, ssl.SSLError) as error:
            self.close(str(error) or type(error).__name__)

    async def _keep_time(self) -> None:
        while self.closed is None:
            # A deadline comes nearer when the switch has introduced itself, but never nearer than a probe.
            left = self._channel.deadline - monotonic()
            await asyncio.sleep(min(max(0.01, left), self._timing.probe))
            self._happened(self._channel.tick(monotonic()))
            self._something_to_send.set()

    def _happened(self, occurrences: list[Occurrence]) -> None:
        for one in occurrences:
            match one:
                case Arrived(message):
                    self._arrived(message)
                case Introduced(features):
                    self.features.set_result(features)
                case Answered(xid, answer):
                    self._resolve(xid, answer)
                case BundleEnded(xid, errors):
                    self._resolve(xid, errors)
                case Refused(xid, error):
                    self._resolve(xid, RequestRefused(error.reason))
                case Closed(reason):
                    self._end(reason)

    def _resolve(self, xid: int, answer: Any) -> None:
        waiting = self._waiting.get(xid)
        if waiting is None or waiting.done():
            return  # nobody waits any more
        if isinstance(answer, RequestRefused):
            waiting.set_exception(answer)
        else:
            waiting.set_result(answer)

    def _end(self, reason: str) -> None:
        self.closed = reason
        self.ended.set()
        self._something_to_send.set()
        self._sent.set()
        for waiting in [*self._waiting.values(), self.features]:
            if not waiting.done():
                waiting.set_exception(ConnectionLost(reason))
                waiting.exception()  # looked at: nobody may be waiting
