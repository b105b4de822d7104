"""Messages of switches, valid and damaged: what the decoder is thrown at in tests and in `benchmarks.openflow fuzz`."""

from __future__ import annotations

import random
from collections.abc import Iterable
from struct import pack

from plerion.flow.admission import Admission
from plerion.flow.entry import FlowEntry, tables_of
from plerion.flow.fabric import fabric
from plerion.index.address import AddressPlan
from plerion.index.dz import Dz
from plerion.southbound.openflow import decode as decoding
from plerion.southbound.openflow.channel import Channel
from plerion.southbound.openflow.codec import encode
from plerion.southbound.openflow.messages import (
    BundleControl,
    BundleStep,
    Command,
    EchoReply,
    EchoRequest,
    Error,
    FlowMod,
    Hello,
    MalformedMessage,
    MultipartReply,
    Part,
)
from plerion.southbound.openflow.pipeline import Entry, furniture
from plerion.southbound.openflow.readback import read_back, sorted_out
from plerion.southbound.openflow.shapes import SwitchShapes
from plerion.topology.generate import ring
from plerion.update.entries import Side
from plerion.update.state import UNSTAMPED, Stamp, admitting, forwarding

NETWORK = ring(3)
SWITCH = NETWORK.switches[0]
PLAN = AddressPlan()
SHAPES = SwitchShapes(fabric(NETWORK), PLAN, "rewrite", SWITCH)
BUNDLE_ADD_TYPE = 4


def message(kind: int, body: bytes, xid: int = 7, version: int = 4) -> bytes:
    return pack("!BBHI", version, kind, 8 + len(body), xid) + body


def told(entry: Entry, packets: int = 0) -> bytes:
    """An entry as a switch tells it: what the codec writes of match and instructions, behind counters."""
    rest = encode(FlowMod(Command.ADD, entry), 0)[48:]
    size = 48 + len(rest)
    head = (size, entry.table, 5, 6, entry.priority, 0, 0, 0, entry.cookie, packets, 90 * packets)
    return pack("!HBxIIHHHH4xQQQ", *head) + rest


def flow_answer(entries: Iterable[Entry]) -> bytes:
    return b"".join(told(entry, number) for number, entry in enumerate(entries))


def a_port(number: int = 2, name: bytes = b"s1p2", config: int = 0, state: int = 0) -> bytes:
    return pack("!I4x6s2x16sIIIIIIII", number, b"\2\0\0\0\0\1", name, config, state, 0, 0, 0, 0, 0, 0)


def a_packet_in(payload: bytes = b"payload", in_port: int = 3) -> bytes:
    match = pack("!HHII", 1, 12, 0x8000_0004, in_port) + bytes(4)
    return message(10, pack("!IHBBQ", 0xFFFF_FFFF, len(payload), 1, 0, 5) + match + bytes(2) + payload)


def multipart(part: int, body: bytes, more: bool = False, xid: int = 7) -> bytes:
    return message(19, pack("!HH4x", part, more) + body, xid)


def some_entries() -> list[Entry]:
    cells = [Dz(0, 0), Dz(5, 7), Dz(1, 112)]
    tables = tables_of(SHAPES.fabric, {SWITCH: [FlowEntry(dz, frozenset({1, 3})) for dz in cells]})
    admitted = [Admission(SWITCH, 3, dz) for dz in cells]
    stamps = (UNSTAMPED, Stamp(vlan=7, lifted=True))
    rows = [
        *(row for stamp in stamps for row in forwarding(tables, Side.BETWEEN, stamp)),
        *(row for stamp in stamps for row in admitting(SHAPES.fabric, admitted, Side.BETWEEN, stamp)),
    ]
    return [*map(SHAPES.dialect.entry, rows), *sorted(furniture(NETWORK, SWITCH), key=str)]


def samples() -> list[bytes]:
    """A valid message of every kind that a switch sends, and of some that it should not."""
    return [
        message(0, pack("!HHI", 1, 8, 0x12)),
        message(0, b""),
        encode(Error(5, 1, b"what was refused, as it began"), 7),
        encode(EchoRequest(b"ping"), 7),
        encode(EchoReply(b"pong"), 7),
        message(6, pack("!QIBB2xI4x", 1, 0, 254, 0, 0x4F)),
        a_packet_in(),
        message(12, bytes([2]) + bytes(7) + a_port()),
        multipart(Part.FLOWS, flow_answer(some_entries())),
        multipart(Part.FLOWS, b"", more=True),
        multipart(Part.TABLES, b"".join(pack("!B3xIQQ", i, 9, 8, 7) for i in range(3))),
        multipart(Part.PORTS, b"".join(pack("!I4xQQ", i, 1, 2) + bytes(88) for i in (1, 2, 3))),
        multipart(Part.PORT_DESCRIPTIONS, a_port(1) + a_port(2)),
        multipart(0, bytes(1056)),
        multipart(8, pack("!HHHHI", 40, 0, 1, 8, 1) * 3),
        message(21, b""),
        message(25, pack("!I4xQ", 1, 2)),
        message(23, pack("!I4xIHH8x", 1, 7, 40, 0)),
        encode(BundleControl(3, BundleStep.CLOSED), 7),
        message(BUNDLE_ADD_TYPE, pack("!II", 0x2320, 28) + bytes(32)),
    ]


def costly() -> list[bytes]:
    """Messages as long as one can be, made to keep a decoder busy."""
    bare = pack("!HBxIIHHHH4xQQQ", 56, 9, 0, 0, 1, 0, 0, 0, 5, 0, 0) + pack("!HH4x", 1, 4)
    fields = b"".join(pack("!HBB", group, number << 1, 0) for group in range(1, 126) for number in range(128))
    match = pack("!HH", 1, 4 + len(fields)) + fields
    outputs = pack("!HHIH6x", 0, 16, 1, 0) * 4000
    instruction = pack("!HH4x", 4, 8 + len(outputs)) + outputs
    wide = pack("!H", 56 + len(instruction)) + bare[2:] + instruction
    admitted = told(some_entries()[-1 - len(furniture(NETWORK, SWITCH))])
    return [
        message(0, pack("!HHI", 2, 4, 0) * 8190),
        message(10, pack("!IHBBQ", 0xFFFF_FFFF, 0, 1, 0, 5) + match + bytes(-len(match) % 8 + 2)),
        multipart(Part.FLOWS, bare * 1169),
        multipart(Part.FLOWS, admitted * (65_000 // len(admitted))),
        multipart(Part.FLOWS, wide),
    ]


NASTY = (0, 1, 2, 3, 4, 7, 8, 15, 16, 0x7F, 0x80, 0xFF, 0xFFFE, 0xFFFF)


def mutated(frame: bytes, chance: random.Random) -> bytes:
    """The message with one to four wounds; now and then its header is made to tell the truth about its length."""
    found = bytearray(frame)
    for _ in range(chance.randint(1, 4)):
        wound = chance.randrange(6)
        at = chance.randrange(len(found)) if found else 0
        if wound == 0 and found:
            found[at] ^= 1 << chance.randrange(8)
        elif wound == 1 and len(found) >= 2:
            at = min(at, len(found) - 2) & ~1  # where lengths stand
            found[at : at + 2] = chance.choice(NASTY).to_bytes(2, "big")
        elif wound == 2:
            del found[at : at + chance.choice((1, 2, 4, 8, 16, len(found)))]
        elif wound == 3:
            found[at:at] = chance.randbytes(chance.choice((1, 4, 8, 64)))
        elif wound == 4:
            found[at:at] = found[at : at + chance.randint(1, 64)]
        elif found:
            found[at] = chance.randrange(256)
    if len(found) >= 8 and chance.random() < 0.8:
        found[0] = 4 if chance.random() < 0.9 else found[0]
        found[2:4] = min(len(found), 0xFFFF).to_bytes(2, "big")
        del found[0xFFFF:]
    return bytes(found)


def survives(frame: bytes) -> bool:
    """Decodes a message and looks into it as the driver would; whether it was one. Raises only on a bug."""
    try:
        _, value = decoding.decode(frame)
        if isinstance(value, MultipartReply):
            _look_into(value)
    except MalformedMessage:
        return False
    return True


def _look_into(reply: MultipartReply) -> None:
    if reply.part == Part.FLOWS:
        sorted_out(SHAPES, read_back(SHAPES, reply.body))
    elif reply.part == Part.TABLES:
        decoding.table_counters(reply.body)
    elif reply.part == Part.PORTS:
        decoding.port_counters(reply.body)
    elif reply.part == Part.PORT_DESCRIPTIONS:
        decoding.port_descriptions(reply.body)


def ready_channel(now: float = 0.0) -> Channel:
    """A channel that has shaken hands."""
    made = Channel(now)
    made.receive(encode(Hello(), 1) + message(6, pack("!QIBB2xI4x", 1, 0, 254, 0, 0x4F)), now)
    made.outgoing()
    return made
