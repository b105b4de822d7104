"""How long packets take between hosts of labs, by the kernel's own note of when each arrived.

Senders keep a steady pace and write down when they sent; receivers only collect, afterwards, what the kernel kept
for them with the time of its arrival. So nobody has to be scheduled in time to read a clock, and several *lanes*,
such as a network of Plerion's and a plain one, take turns packet by packet: whatever else the machine does meanwhile,
it does to all of them.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from time import perf_counter, sleep, time_ns
from types import TracebackType
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from plerion.client.mmsg import Addresses
from plerion.flow.admission import EVENT_PORT
from plerion.lab import Lab
from plerion.lab.names import HOST_INTERFACE
from plerion.topology.graph import HostId, ipv6

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

ROOM: Final = 32 << 20  # bytes that the kernel keeps for a receiver
SETTLE_SECONDS: Final = 0.05
_MARK: Final = struct.Struct("!8sI")
_UDP_HEADER: Final = 8
_SO_RCVBUFFORCE, _SO_TIMESTAMPNS = 33, 35
_TIME: Final = struct.Struct("@qq")


@dataclass(frozen=True, slots=True)
class Delays:
    """Milliseconds of each copy that arrived, by event and host; what did not arrive is missing."""

    event: Ints
    host: Ints
    milliseconds: Floats
    sent: int

    def quantile(self, share: float) -> float:
        return float(np.quantile(self.milliseconds, share)) if len(self.milliseconds) else float("nan")

    @property
    def mean(self) -> float:
        return float(self.milliseconds.mean()) if len(self.milliseconds) else float("nan")

    def __len__(self) -> int:
        return len(self.event)


class Lane:
    """A sender at one host of a lab, and receivers at others; the kernel must permit raw sockets."""

    def __init__(self, lab: Lab, source: HostId, targets: Sequence[HostId]) -> None:
        self.targets = tuple(targets)
        with ExitStack() as opened:
            self.source = opened.enter_context(lab.inside(source, lambda: sender(ipv6(lab.topology, source))))
            self.receivers = [opened.enter_context(lab.inside(host, receiver)) for host in targets]
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()


def sender(address: str) -> socket.socket:
    """A UDP socket of this host; events leave by its only interface."""
    made = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    made.bind((address, 0))
    made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, socket.if_nametoindex(HOST_INTERFACE))
    made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 64)
    return made


def receiver() -> socket.socket:
    """A raw socket that notes when each packet arrived."""
    made = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_UDP)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, ROOM)
    made.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    return made


def in_turns(lanes: Sequence[Lane], events: Sequence[Addresses], rate: float, mark: bytes) -> list[Delays]:
    """Sends each lane's events, one of each lane in turn, at `rate` packets a second and lane.

    Which lane comes first is drawn anew each time: who follows whom makes a difference to a machine that sleeps.
    """
    names = [[socket.inet_ntop(socket.AF_INET6, row.tobytes()) for row in rows] for rows in events]
    count = min(map(len, names))
    sent = np.zeros((len(lanes), count), np.int64)
    orders = np.random.default_rng(count).permuted(np.tile(np.arange(len(lanes)), (count, 1)), axis=1)
    due, pause = perf_counter(), 1 / (rate * len(lanes))
    for number, order in enumerate(orders.tolist()):
        for at in order:
            due += pause
            _wait_until(due)
            target = (names[at][number], EVENT_PORT)
            sent[at, number] = time_ns()
            lanes[at].source.sendto(_MARK.pack(mark, number), target)
    sleep(SETTLE_SECONDS)
    return [_collected(lane, sent[at], mark) for at, lane in enumerate(lanes)]


def _wait_until(due: float) -> None:
    left = due - perf_counter()
    if left > 0:
        sleep(left)


def _collected(lane: Lane, sent: Ints, mark: bytes) -> Delays:
    found: list[tuple[int, int, int]] = []
    for host, receiving in enumerate(lane.receivers):
        for packet, arrived in _arrivals(receiving):
            if len(packet) == _UDP_HEADER + _MARK.size:
                told, number = _MARK.unpack_from(packet, _UDP_HEADER)
                if told == mark and number < len(sent):
                    found.append((number, host, arrived - int(sent[number])))
    columns = np.array(found, np.int64).reshape(-1, 3)
    return Delays(columns[:, 0], columns[:, 1], columns[:, 2] / 1e6, len(sent))


def _arrivals(receiving: socket.socket) -> list[tuple[bytes, int]]:
    found: list[tuple[bytes, int]] = []
    while True:
        try:
            packet, notes, _, _ = receiving.recvmsg(2048, 64)
        except BlockingIOError:
            return found
        for level, kind, note in notes:
            if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
                seconds, nanoseconds = _TIME.unpack(note)
                found.append((packet, seconds * 10**9 + nanoseconds))
