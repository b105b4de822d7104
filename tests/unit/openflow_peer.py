"""A switch that answers as it should and holds nothing: the other end of a connection in tests."""

from __future__ import annotations

import asyncio
import ssl
from struct import pack

from benchmarks.mutations import a_port, message, multipart
from plerion.southbound.openflow.messages import Part

OPEN, CLOSE, COMMIT, DISCARD = 0, 2, 4, 6


class Peer:
    """Says hello as this datapath id; once `mute`, it keeps its socket open and answers nothing."""

    def __init__(self, dpid: int, auxiliary: int = 0, ports: tuple[int, ...] = (1, 2, 3)) -> None:
        self.dpid, self.auxiliary, self.ports = dpid, auxiliary, ports
        self.mute = False
        self.refuse: bytes | None = None  # an error's type and code for every part of a bundle
        self.seen: list[int] = []  # types of the messages that came
        self._buffer = b""

    async def connect(self, port: int, secured: ssl.SSLContext | None = None) -> None:
        named = None if secured is None else "127.0.0.1"
        self.reader, self.writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=secured, server_hostname=named
        )
        self.writer.write(message(0, b""))

    async def serve(self) -> None:
        """Answers until the other side hangs up."""
        try:
            while octets := await self.reader.read(1 << 16):
                self._buffer += octets
                while len(self._buffer) >= 8:
                    length = int.from_bytes(self._buffer[2:4], "big")
                    if len(self._buffer) < length:
                        break
                    frame, self._buffer = self._buffer[:length], self._buffer[length:]
                    self.seen.append(frame[1])
                    if not self.mute:
                        self.writer.write(self._answer(frame))
        except (OSError, ssl.SSLError):
            pass  # hung up on, which is what some tests are about
        finally:
            self.writer.close()

    def _answer(self, frame: bytes) -> bytes:
        kind, xid = frame[1], int.from_bytes(frame[4:8], "big")
        if kind == 2:
            return message(3, frame[8:], xid)
        if kind == 5:
            return message(6, pack("!QIBB2xI4x", self.dpid, 0, 254, self.auxiliary, 0), xid)
        if kind == 18:
            part = int.from_bytes(frame[8:10], "big")
            ports = b"".join(a_port(number) for number in self.ports)
            return multipart(part, ports if part == Part.PORT_DESCRIPTIONS else b"", xid=xid)
        if kind == 20:
            return message(21, b"", xid)
        if kind == 4 and frame[12:16] == pack("!I", 2301):
            return b"" if self.refuse is None else message(1, self.refuse + frame[:64], xid)
        if kind == 4:
            step = int.from_bytes(frame[20:22], "big")
            return message(4, frame[8:20] + pack("!HH", step + 1, 3), xid)
        return b""
