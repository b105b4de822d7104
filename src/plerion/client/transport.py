"""How events leave and reach a host. Three ways behind one protocol; all pass tests/conformance/test_transport.py.

`raw`: the last switch changes nothing, so an event arrives under its own multicast address. The host joins no groups;
a local route hands every address of events to raw sockets, and a filter in the kernel keeps all but events away. Every
process of a host gets every event. Needs CAP_NET_RAW.

`rewrite`: the last switch writes the host's own address, so an ordinary UDP socket receives. The kernel hands a
datagram to one socket only (with SO_REUSEPORT, to any one of them, which would lose it for the others), so the first
process of a host takes the port, and further ones read along through raw sockets if they may.

`loopback`: from process to process on one machine, for tests and benchmarks; who gets what, the caller decides.
"""

from __future__ import annotations

import ctypes
import errno
import socket
import struct
from collections.abc import Callable, Sequence
from ipaddress import IPv6Address, IPv6Network
from typing import Any, Final, Literal, Protocol

import numpy as np
import numpy.typing as npt

from plerion.client.errors import TransportError
from plerion.client.mmsg import (
    LOOPBACK,
    Addresses,
    Datagrams,
    Ints,
    MultiReceiver,
    MultiSender,
    destinations,
    writable,
)
from plerion.client.place import Place
from plerion.client.tagged import TaggedSocket
from plerion.flow.admission import EVENT_PORT
from plerion.index.address import AddressPlan
from plerion.wire.event import MAX_BYTES

Kind = Literal["raw", "rewrite"]

RECEIVE_BUFFER: Final = 16 << 20
_HOP_LIMIT: Final = 64
_UDP_HEADER: Final = 8
_SO_ATTACH_FILTER: Final = 26
_SO_RCVBUFFORCE: Final = 33
_NETWORK_HEADER: Final = 0xFFF00000  # Linux: offsets from here count from the IPv6 header


class Transport(Protocol):
    """Sends datagrams to addresses of events, and receives those that reach this host."""

    @property
    def dropped(self) -> int:
        """Datagrams that the kernel had no room for, as far as it told."""
        ...

    async def send(self, addresses: Addresses, datagrams: Datagrams, vlan: int = 0) -> None:
        """Returns when the kernel has taken all of them; waits while it has no room. 0 is no tag."""
        ...

    def listen(self) -> int:
        """Opens for reception, if it is not yet: from now on nothing that arrives is missed; what to wait on."""
        ...

    def receive(self) -> Sequence[memoryview]:
        """Datagrams that have arrived, good until the next call; none when nothing has."""
        ...

    @property
    def sources(self) -> Sequence[bytes]:
        """The address that each datagram of the latest `receive` came from, which the network vouches for."""
        ...

    def close(self) -> None: ...


class SocketTransport:
    """Any of the three: they differ in where a datagram is sent to and in the socket that receives."""

    def __init__(
        self,
        sender: socket.socket,
        listen: Callable[[], tuple[socket.socket, int]],
        route: Callable[[Addresses], tuple[npt.NDArray[Any], Ints | None]],
        tag: Callable[[], TaggedSocket] | None = None,
    ) -> None:
        self._socket = sender
        self._tag = tag
        self._tagged: TaggedSocket | None = None  # opened when it is first needed
        self._sender = MultiSender(sender)
        self._listen = listen
        self._route = route
        self._receiver: MultiReceiver | None = None
        self._receiving: socket.socket | None = None

    @property
    def dropped(self) -> int:
        return 0 if self._receiver is None else self._receiver.dropped

    async def send(self, addresses: Addresses, datagrams: Datagrams, vlan: int = 0) -> None:
        if vlan and self._tag is not None:
            self._tagged = self._tagged or self._tag()
            await self._tagged.send_all(addresses, datagrams, vlan)
            return
        names, copies = self._route(addresses)
        if copies is not None:
            datagrams = datagrams.rows(copies)
        sent = 0
        while sent < len(names):
            taken = self._sender.send(names[sent:], datagrams.rows(slice(sent, None)))
            if not taken:
                await writable(self._socket)
            sent += taken

    def listen(self) -> int:
        if self._receiving is None:
            self._receiving, skip = self._listen()
            self._receiver = MultiReceiver(self._receiving, MAX_BYTES, skip=skip)
        return self._receiving.fileno()

    def receive(self) -> Sequence[memoryview]:
        return () if self._receiver is None else self._receiver.receive()

    @property
    def sources(self) -> Sequence[bytes]:
        return () if self._receiver is None else self._receiver.sources

    def close(self) -> None:
        self._socket.close()
        if self._tagged is not None:
            self._tagged.close()
        if self._receiving is not None:
            self._receiving.close()


def network_transport(kind: Kind, place: Place) -> SocketTransport:
    """The transport of a host in a network whose last hop is of this kind."""
    listen = (lambda: _raw(place)) if kind == "raw" else (lambda: _rewritten(place))
    return SocketTransport(
        sending_socket(place),
        listen,
        lambda to: (destinations(to, EVENT_PORT), None),
        lambda: TaggedSocket(place),
    )


class LoopbackTransport(SocketTransport):
    """Between processes of one machine: datagrams go to ports of ::1, which `reach` finds by address."""

    def __init__(self, reach: Sequence[int] | Callable[[bytes], Sequence[int]] = ()) -> None:
        self._reach = reach
        self._bound = _bound(("::1", 0))
        self.port: int = self._bound.getsockname()[1]
        super().__init__(
            socket.socket(socket.AF_INET6, socket.SOCK_DGRAM), lambda: (self._bound, 0), self._spread
        )
        self._socket.setblocking(False)

    def _spread(self, addresses: Addresses) -> tuple[npt.NDArray[Any], Ints | None]:
        if callable(self._reach):
            ports = [self._reach(address.tobytes()) for address in addresses]
            row = np.repeat(np.arange(len(ports)), [len(found) for found in ports])
            to = np.array([port for found in ports for port in found], np.int64)
        else:
            row = np.repeat(np.arange(len(addresses)), len(self._reach))
            to = np.tile(np.array(self._reach, np.int64), len(addresses))
        names = destinations(np.broadcast_to(LOOPBACK, (len(row), 16)), 0)
        names["port"] = to
        return names, row

    def close(self) -> None:
        super().close()
        self._bound.close()


def sending_socket(place: Place, port: int = 0) -> socket.socket:
    """A UDP socket that sends from the place's address out of its interface, multicast included."""
    opened = _bound((str(place.address), port))
    opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, place.interface_number)
    opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, _HOP_LIMIT)
    opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 0)
    return opened


def _bound(name: tuple[str, int]) -> socket.socket:
    opened = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    try:
        opened.setblocking(False)
        _widen(opened)
        opened.bind(name)
    except OSError as error:
        opened.close()
        if error.errno == errno.EADDRINUSE:
            raise
        raise TransportError(
            f"no socket at [{name[0]}]:{name[1]}: {error.strerror}", "check that this host has the address"
        ) from None
    return opened


def _widen(opened: socket.socket) -> None:
    """As much room for bursts as the kernel gives; a privileged process is not held to the usual limit."""
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
    try:
        opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, RECEIVE_BUFFER)
    except PermissionError:
        return


def _rewritten(place: Place) -> tuple[socket.socket, int]:
    try:
        return _bound((str(place.address), EVENT_PORT)), 0
    except OSError as error:
        if isinstance(error, TransportError) or error.errno != errno.EADDRINUSE:
            raise
    try:
        return _raw(place, place.address)
    except TransportError:
        raise TransportError(
            f"another process receives at [{place.address}]:{EVENT_PORT}, and a datagram reaches one of them",
            "give the process CAP_NET_RAW, let one process subscribe for all, or run the network with last_hop raw",
        ) from None


def _raw(place: Place, own: IPv6Address | None = None) -> tuple[socket.socket, int]:
    """A raw socket for UDP that gets events only: those for `own`, or those under the addresses of events."""
    try:
        opened = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_UDP)
    except PermissionError:
        fix = "run as root, give the interpreter CAP_NET_RAW, or run the network with last_hop rewrite"
        raise TransportError("a raw socket is not permitted", fix) from None
    try:
        _attach(opened, _filter(own))
        opened.setblocking(False)
        _widen(opened)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, place.interface.encode() + b"\0")
        # The kernel checks UDP checksums for UDP sockets only, unless it is told where the checksum is.
        opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_CHECKSUM, 6)
        _drain(opened)
    except OSError as error:
        opened.close()
        raise TransportError(f"no raw socket on {place.interface}: {error.strerror}") from None
    return opened, _UDP_HEADER


def _drain(opened: socket.socket) -> None:
    """Throws away what came in before the filter stood."""
    try:
        while True:
            opened.recv(1)
    except BlockingIOError:
        return


def _filter(own: IPv6Address | None) -> list[tuple[int, int, int, int]]:
    """Classic BPF: UDP to the port of events, to an address that events may have or to one address."""
    load_half, load_word, keep, equal, give = 0x28, 0x20, 0x54, 0x15, 0x06
    checks = [(load_half, 2, 0xFFFF, EVENT_PORT)]
    room = IPv6Network(AddressPlan().everything if own is None else own)
    words = (struct.unpack("!4I", one.packed) for one in (room.netmask, room.network_address))
    for at, (mask, word) in enumerate(zip(*words, strict=True)):
        checks += [(load_word, _NETWORK_HEADER + 24 + 4 * at, mask, word)] if mask else []
    program = []
    for at, (load, offset, mask, wanted) in enumerate(checks):
        to_nothing = 3 * (len(checks) - at - 1) + 1
        program += [(load, 0, 0, offset), (keep, 0, 0, mask), (equal, 0, to_nothing, wanted)]
    return [*program, (give, 0, 0, 0xFFFFFFFF), (give, 0, 0, 0)]


def _attach(opened: socket.socket, program: list[tuple[int, int, int, int]]) -> None:
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in program))
    described = struct.pack("@HP", len(program), ctypes.addressof(code))
    opened.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, described)
