"""Bytes that a switch sent, as values: every length is checked before anything is read by it.

This decoder is ours and not os_ken's, because that one trusts the lengths inside a message: an element that claims
to be 0 bytes long keeps it in its loop for ever. A clock around it would be a weak guard. An alarm signal works in
one thread of the process only and can go off anywhere in it; a thread cannot be stopped from outside; a process for
each message costs more than the message. So the time budget is in the shape of this code: a message is at most
65,535 bytes, every loop goes forward by at least 4 of them or raises `MalformedMessage`, and nothing is read twice.
That is linear work with a known end: the costliest message that we could make takes some 10 ms of the processor,
a usual one some microseconds. Answers in parts can be longer than a message; they have limits of their own
(`channel.MAX_ANSWER`, `readback.MAX_OTHERS`) and long ones are read beside the event loop (`inspection.aside`).
`python -m benchmarks.openflow fuzz` measures all of it over a million mutated messages and the costly ones, and the
tests over some thousands. os_ken remains the measure of what is right: what it reads in a valid message is what we
read (tests), and what we send is encoded by it (`codec`).

Kinds of message that nobody asks a switch for are not looked into at all (`Unread`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct

from plerion.southbound.openflow.messages import (
    HEADER,
    VERSION,
    BarrierReply,
    BundleControl,
    BundleStep,
    EchoReply,
    EchoRequest,
    Error,
    Features,
    Hello,
    MalformedMessage,
    MultipartReply,
    PacketIn,
    PortCounters,
    PortDescription,
    PortStatus,
    Received,
    TableCounters,
    Unread,
)
from plerion.southbound.openflow.oxm import fields, padded

ONF = 0x4F4E_4600  # the experimenter id of the bundles that came to OpenFlow 1.3 by an extension
BUNDLE_CONTROL, BUNDLE_ADD = 2300, 2301

_HEADER = Struct("!BBHI")
_HELLO, _ERROR = 0, 1
_TYPE_CODE = Struct("!HH")
_FEATURES = Struct("!QIBB2xI4x")
_PACKET_IN = Struct("!IHBBQ")
_BUNDLE = Struct("!IIIHH")
_PORT = Struct("!I4x6s2x16sII24x")
_PORT_COUNTERS = Struct("!I4xQQ16xQQ56x")
_TABLE_COUNTERS = Struct("!B3xIQQ")
_LINK_DOWN, _CONFIGURED_DOWN = 1, 1
_PORT_GONE = 1


def decode(frame: bytes) -> tuple[int, Received]:
    """The number and the value of one whole message; raises `MalformedMessage` and nothing else."""
    if len(frame) < HEADER:
        raise MalformedMessage(f"a message has {HEADER} bytes or more, not {len(frame)}")
    version, kind, length, xid = _HEADER.unpack_from(frame)
    if length != len(frame):
        raise MalformedMessage(f"a message of {len(frame)} bytes says that it has {length}")
    if kind == _HELLO:
        return xid, _hello(version, frame)
    if version != VERSION and kind != _ERROR:  # a peer that knows no common version says so in its own
        raise MalformedMessage(f"a message of version {version}, agreed was {VERSION}")
    return xid, _READERS.get(kind, _unread)(frame)


def _hello(version: int, frame: bytes) -> Hello:
    versions: frozenset[int] | None = None
    at = HEADER
    while at < len(frame):
        kind, length = _unpacked(_TYPE_CODE, frame, at)
        if length < 4 or at + length > len(frame):
            raise MalformedMessage(f"an element of a hello says that it has {length} bytes")
        if kind == 1 and length % 4 == 0 and versions is None:
            bitmap = int.from_bytes(frame[at + 4 : at + 8], "big")
            versions = frozenset(bit for bit in range(32) if bitmap >> bit & 1)
        at += padded(length)
    return Hello(version, versions)


def _error(frame: bytes) -> Error:
    kind, code = _unpacked(_TYPE_CODE, frame, HEADER)
    return Error(kind, code, frame[HEADER + 4 :])


def _features(frame: bytes) -> Features:
    dpid, _, tables, auxiliary, capabilities = _unpacked(_FEATURES, frame, HEADER)
    return Features(dpid, tables, auxiliary, capabilities)


def _packet_in(frame: bytes) -> PacketIn:
    _, total, _, _, cookie = _unpacked(_PACKET_IN, frame, HEADER)
    found, end = fields(frame, HEADER + _PACKET_IN.size)
    if "in_port" not in found:
        raise MalformedMessage("a packet without the port that it came in by")
    payload = frame[end + 2 :]
    return PacketIn(int.from_bytes(found["in_port"][0], "big"), cookie, payload, len(payload) < total)


def _port_status(frame: bytes) -> PortStatus:
    if len(frame) != HEADER + 8 + _PORT.size:
        raise MalformedMessage(f"the status of a port in {len(frame)} bytes")
    return PortStatus(_port(frame, HEADER + 8), frame[HEADER] == _PORT_GONE)


def _port(body: bytes, at: int) -> PortDescription:
    number, _, name, config, state = _PORT.unpack_from(body, at)
    up = not (config & _CONFIGURED_DOWN or state & _LINK_DOWN)
    return PortDescription(number, name.split(b"\0")[0].decode("ascii", "replace"), up)


def _multipart(frame: bytes) -> MultipartReply:
    part, flags = _unpacked(_TYPE_CODE, frame, HEADER)
    if len(frame) < HEADER + 8:
        raise MalformedMessage("an answer in parts without room for its kind")
    return MultipartReply(part, bool(flags & 1), frame[HEADER + 8 :])


def _experimenter(frame: bytes) -> BundleControl | Unread:
    if len(frame) < HEADER + _BUNDLE.size:
        return _unread(frame)
    experimenter, kind, bundle, step, _ = _BUNDLE.unpack_from(frame, HEADER)
    if (experimenter, kind) != (ONF, BUNDLE_CONTROL) or step > BundleStep.DISCARDED:
        return _unread(frame)
    return BundleControl(bundle, BundleStep(step))


def _unread(frame: bytes) -> Unread:
    return Unread(frame[1], frame[HEADER:])


_READERS: dict[int, Callable[[bytes], Received]] = {
    _ERROR: _error,
    2: lambda frame: EchoRequest(frame[HEADER:]),
    3: lambda frame: EchoReply(frame[HEADER:]),
    4: _experimenter,
    6: _features,
    10: _packet_in,
    12: _port_status,
    19: _multipart,
    21: lambda _: BarrierReply(),
}


def port_descriptions(body: bytes) -> tuple[PortDescription, ...]:
    """The ports in an assembled answer."""
    return tuple(_port(body, at) for at in _rows(body, _PORT, "ports"))


def port_counters(body: bytes) -> tuple[PortCounters, ...]:
    rows = (_PORT_COUNTERS.unpack_from(body, at) for at in _rows(body, _PORT_COUNTERS, "counters of ports"))
    return tuple(PortCounters(port, rx, tx, lost + unsent) for port, rx, tx, lost, unsent in rows)


def table_counters(body: bytes) -> tuple[TableCounters, ...]:
    rows = _rows(body, _TABLE_COUNTERS, "counters of tables")
    return tuple(TableCounters(*_TABLE_COUNTERS.unpack_from(body, at)) for at in rows)


def _rows(body: bytes, row: Struct, what: str) -> Iterator[int]:
    if len(body) % row.size:
        raise MalformedMessage(f"{what} in {len(body)} bytes, which is no multiple of {row.size}")
    return iter(range(0, len(body), row.size))


def _unpacked(layout: Struct, frame: bytes, at: int) -> tuple[int, ...]:
    if at + layout.size > len(frame):
        raise MalformedMessage(f"a message ends after {len(frame)} bytes, in the middle of a field")
    return layout.unpack_from(frame, at)
