"""Questions to the controller and their answers, over datagrams that may be lost.

A request is repeated under its number, after a tenth of a second or three times as long as answers usually take, and
then ever more slowly, until its answer comes or its time is up. Answers that nobody waits for are late and are left
alone.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from itertools import count
from time import monotonic
from typing import Any, Final

from plerion.client.errors import ControllerSilent
from plerion.client.patience import LATEST_SECONDS, Patience
from plerion.client.place import Place
from plerion.client.transport import sending_socket
from plerion.flow.admission import CONTROL_ADDRESS, CONTROL_PORT
from plerion.wire.control import Notice, Reply, Request, decode_reply, encode
from plerion.wire.error import WireError
from plerion.wire.segment import Reassembly, segments

Target = tuple[str, int]
CONTROLLER: Final[Target] = (str(CONTROL_ADDRESS), CONTROL_PORT)


class ControlChannel(asyncio.DatagramProtocol):
    """One socket to the controller; any number of requests under way."""

    def __init__(self, target: Target, notice: Callable[[Notice], None]) -> None:
        self.malformed = 0
        self._target = target
        self._notice = notice
        self._numbers = count(1)
        self._patience = Patience()
        self._waiting: dict[int, asyncio.Future[Reply]] = {}
        self._reassembly = Reassembly()
        self._transport: asyncio.DatagramTransport | None = None

    @classmethod
    async def open(
        cls, place: Place | None, target: Target, notice: Callable[[Notice], None]
    ) -> ControlChannel:
        """A channel from the place, or from ::1 when there is none (tests and benchmarks)."""
        if place is None:
            opened = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
            opened.setblocking(False)
            opened.bind(("::1", 0))
        else:
            opened = sending_socket(place)
        _, made = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: cls(target, notice), sock=opened
        )
        return made

    async def ask(self, make: Callable[[int], Request], seconds: float) -> Reply:
        """The answer to the request that `make` gives for a number; ControllerSilent when none comes in time."""
        number = next(self._numbers)
        request = make(number)
        packets = segments(encode(request), number)
        began = monotonic()
        ends, pause = began + seconds, self._patience.seconds
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            while (left := ends - monotonic()) > 0:
                self._send(packets)
                done, _ = await asyncio.wait((answer,), timeout=min(pause, left))
                if done:
                    self._patience.heard(monotonic() - began)
                    return answer.result()
                self._patience.unheard(monotonic() - began)
                pause = min(2 * pause, LATEST_SECONDS)
        finally:
            del self._waiting[number]
        asked = type(request).__name__
        raise ControllerSilent(asked, f"[{self._target[0]}]:{self._target[1]}", seconds)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        try:
            message = self._reassembly.receive(addr[:2], data, monotonic())
            reply = None if message is None else decode_reply(message)
        except WireError:
            self.malformed += 1
            return
        if isinstance(reply, Notice):
            self._notice(reply)
        elif reply is not None:
            answer = self._waiting.get(reply.number)
            if answer is not None and not answer.done():
                answer.set_result(reply)

    def error_received(self, exc: Exception) -> None:
        """An ICMP error says that nobody listens there now; the request is repeated all the same."""

    def _send(self, packets: list[bytes]) -> None:
        if self._transport is not None:
            for packet in packets:
                self._transport.sendto(packet, self._target)
