"""Sees every event that enters or leaves hosts of a lab, and knows nothing of the SDK or of the controller.

A packet socket on each host's interface, read by one thread: what a host sends and what reaches it, with the kernel's
time, kept as bytes until somebody asks. The datagrams are taken apart here, by the documented format alone.
"""

from __future__ import annotations

import select
import socket
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from threading import Event, Thread
from typing import NamedTuple

import msgspec

from plerion.lab import Lab

EVENT_PORT = 20706
_ETHERNET, _IPV6, _UDP = 14, 40, 8
_OUTGOING = 4
_TAGGED = b"\x81\x00"
_ALL = 0x0003
_STAMP = 35  # SO_TIMESTAMPNS
_SO_RCVBUFFORCE = 33
IN_FLIGHT_SECONDS = 0.1  # that an event may be on its way, where nothing else is known


class EventId(NamedTuple):
    publisher: str
    sequence: int


class Seen(NamedTuple):
    """One event at one host's interface."""

    host: str
    sent: bool  # by the host, else received
    at: float  # seconds since 1970
    id: EventId
    values: tuple[float | str | None, ...]


class Witness:
    def __init__(self, lab: Lab, hosts: list[str]) -> None:
        self.sent = 0  # by hosts, so far
        self._frames: list[tuple[str, bool, float, bytes]] = []
        self._sockets = {
            (opened := lab.inside(host, _packet_socket)).fileno(): (host, opened) for host in hosts
        }
        self._ended = Event()
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()
        self._decoded: list[Seen] = []

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        for _, opened in self._sockets.values():
            opened.close()

    @property
    def dropped(self) -> int:
        """Packets that this witness itself missed: nothing may be concluded if there are any."""
        statistics = (opened.getsockopt(263, 6, 8) for _, opened in self._sockets.values())
        return sum(struct.unpack("II", found)[1] for found in statistics)

    def seen(self) -> list[Seen]:
        """Everything so far, in the order of time at each host."""
        for host, sent, at, frame in self._frames[len(self._decoded) :]:
            self._decoded.append(_event(host, sent, at, frame))
        return self._decoded

    def forget(self) -> None:
        """What was seen so far; nothing is on its way."""
        self._decoded, self._frames = [], []

    def count(self) -> int:
        return len(self._frames)

    def longest(self) -> float:
        """Seconds that the slowest delivery took."""
        seen = self.seen()
        left = {one.id: one.at for one in seen if one.sent}
        return max((one.at - left[one.id] for one in seen if not one.sent and one.id in left), default=0.0)

    def _read(self) -> None:
        poll = select.poll()
        for number in self._sockets:
            poll.register(number, select.POLLIN)
        while not self._ended.is_set():
            for number, _ in poll.poll(50):
                host, opened = self._sockets[number]
                for _ in range(256):
                    try:
                        frame, told, _, address = opened.recvmsg(9_000, 64, socket.MSG_DONTWAIT)
                    except BlockingIOError:
                        break
                    if frame[12:14] == _TAGGED and address[2] == _OUTGOING:  # no host may ever see a tag
                        frame = frame[:12] + frame[16:]
                    if _is_event(frame):
                        seconds, nanoseconds = struct.unpack("ll", told[0][2])
                        at = seconds + nanoseconds / 1e9
                        self._frames.append((host, address[2] == _OUTGOING, at, frame))
                        self.sent += address[2] == _OUTGOING


def _packet_socket() -> socket.socket:
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL))
    opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 16 << 20)
    opened.setsockopt(socket.SOL_SOCKET, _STAMP, 1)
    opened.bind(("eth0", 0))
    return opened


def _is_event(frame: bytes) -> bool:
    """UDP in IPv6 for the port of events, to an address of events or to a host's own."""
    start = _ETHERNET + _IPV6
    return (
        len(frame) > start + _UDP
        and frame[12:14] == b"\x86\xdd"
        and frame[_ETHERNET + 6] == socket.IPPROTO_UDP
        and struct.unpack_from("!H", frame, start + 2)[0] == EVENT_PORT
    )


def _event(host: str, sent: bool, at: float, frame: bytes) -> Seen:
    version, publisher, sequence, _, _, values, _ = msgspec.msgpack.decode(frame[_ETHERNET + _IPV6 + _UDP :])
    assert version == 1, version
    return Seen(host, sent, at, EventId(publisher, sequence), tuple(values))


@contextmanager
def watching(lab: Lab, hosts: list[str]) -> Iterator[Witness]:
    found = Witness(lab, hosts)
    try:
        yield found
    finally:
        found.close()


class Wish(NamedTuple):
    """A host wants events with first <= x <= last. It asked, was told that it is ready, withdrew, and was told so."""

    host: str
    first: float
    last: float
    asked: float = -inf
    ready: float = -inf
    withdrawn: float = inf
    gone: float = inf

    def wants(self, event: Seen, flight: float) -> bool:
        """Whether the event must come: it was sent while the wish was in force, and not just before its end."""
        return self.ready <= event.at <= self.withdrawn - flight and self._fits(event)

    def allows(self, event: Seen, flight: float) -> bool:
        """Whether it may come: it was sent not long before the wish was made, nor long after it was gone."""
        return self.asked - flight <= event.at <= self.gone + flight and self._fits(event)

    def _fits(self, event: Seen) -> bool:
        value = event.values[0]
        return isinstance(value, int | float) and self.first <= value <= self.last


class Verdict(NamedTuple):
    """Deliveries of some events, as (host, event): how many were due, and which went wrong."""

    sent: int
    due: int
    lost: list[tuple[str, EventId]]
    doubled: list[tuple[str, EventId]]
    unasked: list[tuple[str, EventId]]

    def __str__(self) -> str:
        wrong = f"{len(self.lost)} lost, {len(self.doubled)} doubled, {len(self.unasked)} unasked"
        some = [*self.lost[:2], *self.doubled[:2], *self.unasked[:2]]
        return f"{self.sent:,} events, {self.due:,} deliveries due: {wrong} {some or ''}"

    @property
    def fine(self) -> bool:
        return not (self.lost or self.doubled or self.unasked)


def judged(
    seen: list[Seen],
    wishes: list[Wish],
    spans: list[tuple[float, float]],
    flight: float = IN_FLIGHT_SECONDS,
) -> Verdict:
    """What became of the events that were sent in some spans of time, and are on their way for so long at most.

    A host gets nothing of its own.
    """
    sent = {
        one.id: one for one in seen if one.sent and any(since <= one.at <= until for since, until in spans)
    }
    came = Counter((one.host, one.id) for one in seen if not one.sent and one.id in sent)
    pairs = [(wish, one) for wish in wishes for one in sent.values() if wish.host != one.host]
    due = {(wish.host, one.id) for wish, one in pairs if wish.wants(one, flight)}
    allowed = {(wish.host, one.id) for wish, one in pairs if wish.allows(one, flight)}
    doubled = [pair for pair, count in came.items() if count > 1]
    lost, unasked = due - came.keys(), came.keys() - allowed
    return Verdict(len(sent), len(due), sorted(lost), sorted(doubled), sorted(unasked))
