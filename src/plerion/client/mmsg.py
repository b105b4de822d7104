"""Many datagrams a system call: `sendmmsg` and `recvmmsg` over arrays that are laid out once.

The kernel's structures are NumPy records, so a batch of datagrams is described by a few column assignments and no
Python runs per datagram. A call never blocks; the C library lets other threads run meanwhile.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import socket
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from plerion.client.errors import TransportError

Ints = npt.NDArray[np.int64]
Addresses = npt.NDArray[np.uint8]
"""IPv6 addresses, sixteen bytes a row."""

BATCH: Final = 512
LOOPBACK: Final = np.frombuffer(b"\0" * 15 + b"\1", np.uint8)

_DONTWAIT: Final = socket.MSG_DONTWAIT
_SO_RXQ_OVFL: Final = 40  # Linux: tell with each datagram how many were dropped before it
_CONTROL: Final = 24  # bytes: a header of 16, the count of 4, padding
_POINTER: Final = np.dtype(np.uintp)
LATER: Final = (errno.EAGAIN, errno.EWOULDBLOCK, errno.ENOBUFS, errno.EINTR)

NAME: Final = np.dtype(
    [("family", "=u2"), ("port", ">u2"), ("flow", "=u4"), ("address", "u1", 16), ("scope", "=u4")]
)
"""One destination: the kernel's `sockaddr_in6`."""
_VECTOR: Final = np.dtype([("start", _POINTER), ("length", _POINTER)])
_HEADER: Final = np.dtype(
    [
        ("name", _POINTER),
        ("name_length", "=u4"),
        ("vector", _POINTER),
        ("vectors", _POINTER),
        ("control", _POINTER),
        ("control_length", _POINTER),
        ("flags", "=i4"),
        ("length", "=u4"),
    ],
    align=False,
)


def _laid_out() -> np.dtype[Any]:
    """`mmsghdr` with the padding that a 64-bit kernel expects."""
    if _POINTER.itemsize != 8:
        raise TransportError("a machine of 32 bits", "use one of 64 bits")
    offsets = [0, 8, 16, 24, 32, 40, 48, 56]
    return np.dtype(
        {
            "names": list(_HEADER.names or ()),
            "formats": [_HEADER[at] for at in range(8)],
            "offsets": offsets,
            "itemsize": 64,
        }
    )


_MESSAGE: Final = _laid_out()
_libc: Final = ctypes.CDLL(None, use_errno=True)


class Datagrams(NamedTuple):
    """Datagrams one behind the other in `body`; row i is `body[starts[i] : starts[i] + lengths[i]]`."""

    body: bytes
    starts: Ints
    lengths: Ints

    @classmethod
    def of(cls, parts: list[bytes]) -> Datagrams:
        lengths = np.fromiter(map(len, parts), np.int64, len(parts))
        return cls(b"".join(parts), np.cumsum(lengths) - lengths, lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def rows(self, chosen: slice | Ints) -> Datagrams:
        return Datagrams(self.body, self.starts[chosen], self.lengths[chosen])


def destinations(addresses: Addresses, port: int) -> npt.NDArray[Any]:
    """Where each datagram goes, as the kernel wants it."""
    found = np.zeros(len(addresses), NAME)
    found["family"], found["port"], found["address"] = socket.AF_INET6, port, addresses
    return found


class MultiSender:
    """Sends datagrams from one socket, up to BATCH a call."""

    def __init__(self, opened: socket.socket, batch: int = BATCH) -> None:
        self._socket = opened
        self._vectors = np.zeros(batch, _VECTOR)
        self._messages = np.zeros(batch, _MESSAGE)
        self._messages["name_length"] = NAME.itemsize
        self._messages["vectors"] = 1
        self._messages["vector"] = self._vectors.ctypes.data + _VECTOR.itemsize * np.arange(batch)
        self._batch = batch

    def send(self, names: npt.NDArray[Any], datagrams: Datagrams) -> int:
        """How many of them, from the first on, the kernel took without waiting."""
        count = min(len(names), self._batch)
        body = np.frombuffer(datagrams.body, np.uint8)
        names = np.ascontiguousarray(names[:count])
        self._vectors["start"][:count] = body.ctypes.data + datagrams.starts[:count]
        self._vectors["length"][:count] = datagrams.lengths[:count]
        self._messages["name"][:count] = names.ctypes.data + NAME.itemsize * np.arange(count)
        sent = _libc.sendmmsg(
            self._socket.fileno(), ctypes.c_void_p(self._messages.ctypes.data), count, _DONTWAIT
        )
        if sent < 0:
            code = ctypes.get_errno()
            if code not in LATER:
                raise TransportError(
                    f"the kernel does not send: {os.strerror(code)}", "check address, route and interface"
                )
            return 0
        return int(sent)


class MultiReceiver:
    """Receives datagrams from one socket, up to `batch` a call, into memory that is used again each time."""

    def __init__(self, opened: socket.socket, room: int, batch: int = BATCH // 2, skip: int = 0) -> None:
        self.dropped = 0  # datagrams for which the kernel had no room
        self.sources: list[bytes] = []  # the address that each datagram of the latest call came from
        self._socket, self._room, self._skip, self._batch = opened, room + skip, skip, batch
        opened.setsockopt(socket.SOL_SOCKET, _SO_RXQ_OVFL, 1)
        memory = bytearray(batch * self._room)
        self._view, self._bodies = memoryview(memory), np.frombuffer(memory, np.uint8)
        self._controls = np.zeros((batch, _CONTROL), np.uint8)
        self._names = np.zeros(batch, NAME)
        self._vectors = np.zeros(batch, _VECTOR)
        self._vectors["start"] = self._bodies.ctypes.data + self._room * np.arange(batch)
        self._vectors["length"] = self._room
        self._messages = np.zeros(batch, _MESSAGE)
        self._messages["vectors"] = 1
        self._messages["vector"] = self._vectors.ctypes.data + _VECTOR.itemsize * np.arange(batch)
        self._messages["name"] = self._names.ctypes.data + NAME.itemsize * np.arange(batch)
        self._messages["control"] = self._controls.ctypes.data + _CONTROL * np.arange(batch)

    def receive(self) -> list[memoryview]:
        """What has arrived, good until the next call; a datagram that is longer than the room comes cut short."""
        self._messages["control_length"] = _CONTROL
        self._messages["name_length"] = NAME.itemsize
        count = _libc.recvmmsg(
            self._socket.fileno(), ctypes.c_void_p(self._messages.ctypes.data), self._batch, _DONTWAIT, None
        )
        if count <= 0:
            code = ctypes.get_errno()
            if count < 0 and code not in LATER and code != errno.ECONNREFUSED:
                raise TransportError(f"the kernel does not receive: {os.strerror(code)}")
            self.sources = []
            return []
        if self._messages["control_length"][count - 1] >= 20:
            self.dropped = int(self._controls[count - 1, 16:20].view(np.uint32)[0])
        self.sources = self._names["address"][:count].copy().view("V16").ravel().tolist()
        view, skip, starts = self._view, self._skip, range(0, count * self._room, self._room)
        lengths = self._messages["length"][:count].tolist()
        return [view[at + skip : at + length] for at, length in zip(starts, lengths, strict=True)]


async def writable(waiting: socket.socket) -> None:
    """Returns when the kernel may have room again."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_writer(waiting, ready.set)
    try:
        await asyncio.wait_for(ready.wait(), 1.0)
        await asyncio.sleep(0.0005)  # a device's queue is full while the socket's is not, and says nothing
    except TimeoutError:
        pass
    finally:
        loop.remove_writer(waiting)
