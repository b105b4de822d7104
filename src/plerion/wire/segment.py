"""Messages longer than a packet: cut into segments, put together again, and never more than so many unfinished.

A message of up to WHOLE bytes travels as it is. A longer one travels as segments, each with a header:

    "PL"  version  flags   message id   part   parts
     2       1       1         8          2      2      bytes, big-endian

No control message begins with "P", so the two are told apart by the first bytes. Segments may come in any order, and
again; parts of a message that was repeated under the same id complete each other. A message with a part lost stays
unfinished and is forgotten after LIFETIME_SECONDS, or earlier when its sender begins more messages than it may; one
sender's unfinished messages never cost another one's. Only when all of them together wait for too much, the sender that
was silent for longest makes room.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from struct import Struct
from typing import Final

from plerion.wire.error import WireError

WHOLE: Final = 1_200
MAX_PARTS: Final = 64
MAGIC: Final = b"PL"
VERSION: Final = 1
LIFETIME_SECONDS: Final = 5.0
MAX_UNFINISHED: Final = 4  # messages of one sender
MAX_SENDERS: Final = 4_096
MAX_HELD_BYTES: Final = 32 << 20  # of all senders

_HEADER: Final = Struct("!2sBBQHH")
BODY: Final = WHOLE - _HEADER.size
MAX_MESSAGE: Final = MAX_PARTS * BODY


def segments(message: bytes, message_id: int) -> list[bytes]:
    """The packets that carry a message: itself if it is short."""
    if len(message) <= WHOLE and not message.startswith(MAGIC):
        return [message]
    if len(message) > MAX_MESSAGE:
        raise WireError(f"a message of {len(message):,} bytes", f"send at most {MAX_MESSAGE:,}")
    parts = -(-len(message) // BODY)
    return [
        _HEADER.pack(MAGIC, VERSION, 0, message_id, part, parts) + message[part * BODY : (part + 1) * BODY]
        for part in range(parts)
    ]


@dataclass(slots=True)
class _Unfinished:
    parts: int
    began: float
    bodies: dict[int, bytes] = field(default_factory=dict)

    @property
    def held_bytes(self) -> int:
        return sum(map(len, self.bodies.values()))


class Reassembly:
    """Puts the segments of many senders together; time is what the caller says it is.

    Holds at most `max_held_bytes` and one packet, and work a packet is bounded by what its sender left unfinished.
    """

    def __init__(
        self,
        lifetime_seconds: float = LIFETIME_SECONDS,
        max_unfinished: int = MAX_UNFINISHED,
        max_senders: int = MAX_SENDERS,
        max_held_bytes: int = MAX_HELD_BYTES,
    ) -> None:
        self.held_bytes = 0
        self._lifetime = lifetime_seconds
        self._max_unfinished = max_unfinished
        self._max_senders = max_senders
        self._max_held_bytes = max_held_bytes
        self._senders: OrderedDict[Hashable, OrderedDict[int, _Unfinished]] = OrderedDict()

    def receive(self, sender: Hashable, packet: bytes, now: float) -> bytes | None:
        """The message that this packet is or completes, None while parts are missing; WireError if it is neither."""
        if not packet.startswith(MAGIC):
            if len(packet) > WHOLE:
                raise WireError(f"a packet of {len(packet):,} bytes is no segment", f"send at most {WHOLE:,}")
            return packet
        message_id, part, parts = _header(packet)
        waiting = self._of(sender, now)
        message = waiting.get(message_id)
        if message is None:
            if len(waiting) >= self._max_unfinished:
                self._forget(waiting, next(iter(waiting)))
            message = waiting[message_id] = _Unfinished(parts, now)
        if message.parts != parts:
            raise WireError(f"a segment of {parts} parts in a message of {message.parts}")
        self.held_bytes += len(packet) - _HEADER.size - len(message.bodies.get(part, b""))
        message.bodies[part] = packet[_HEADER.size :]
        if len(message.bodies) < parts:
            return None
        self._forget(waiting, message_id)
        return b"".join(message.bodies[part] for part in range(parts))

    def _of(self, sender: Hashable, now: float) -> OrderedDict[int, _Unfinished]:
        """What the sender left unfinished and is not too old; the sender becomes the latest of all."""
        waiting = self._senders.pop(sender, OrderedDict())
        for message_id in [key for key, kept in waiting.items() if now - kept.began > self._lifetime]:
            self._forget(waiting, message_id)
        while self._senders and (
            len(self._senders) >= self._max_senders or self.held_bytes > self._max_held_bytes
        ):
            _, silent = self._senders.popitem(last=False)
            self.held_bytes -= sum(message.held_bytes for message in silent.values())
        self._senders[sender] = waiting
        return waiting

    def _forget(self, waiting: OrderedDict[int, _Unfinished], message_id: int) -> None:
        self.held_bytes -= waiting.pop(message_id).held_bytes


def _header(packet: bytes) -> tuple[int, int, int]:
    """(message id, part, parts) of a packet whose length agrees with them."""
    if len(packet) < _HEADER.size:
        raise WireError(f"a segment of {len(packet)} bytes has no room for its header")
    _, version, flags, message_id, part, parts = _HEADER.unpack_from(packet)
    if version != VERSION or flags:
        raise WireError(f"a segment of version {version} with flags {flags}", f"send version {VERSION}")
    if not 1 <= parts <= MAX_PARTS or part >= parts:
        raise WireError(f"part {part} of {parts}", f"send 1 to {MAX_PARTS} parts, counted from 0")
    body = len(packet) - _HEADER.size
    if not 1 <= body <= BODY or (part < parts - 1 and body != BODY):
        raise WireError(f"part {part} of {parts} has {body} bytes", f"fill all parts but the last: {BODY}")
    return message_id, part, parts
