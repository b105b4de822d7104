"""What a switch holds, from its answer: the rows of a table at once, everything else entry by entry.

The answer is a chain of entries, each with its length in front; an answer whose lengths do not fit is refused whole
(`MalformedMessage`). A forwarding entry is *understood* when it says exactly what we would have written for its dz
and its ports; an entry that carries our cookie and says anything else is not counted as ours, so that the next
difference writes it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv6Address
from struct import Struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plerion.flow.entry import LOWEST_PRIORITY, Masks
from plerion.index.dzset import DzColumns, Lengths, Words
from plerion.kernel import Int, Word, kernel
from plerion.southbound.openflow.flowmod import write_actions
from plerion.southbound.openflow.messages import MalformedMessage
from plerion.southbound.openflow.octets import Octets, dz_words, mask_words, take
from plerion.southbound.openflow.oxm import fields, match_of
from plerion.southbound.openflow.pipeline import FORWARDING, Action, Entry, Output, Purpose, SetField
from plerion.southbound.openflow.shapes import INSTRUCTION, Ints, Pieces, SwitchShapes, plan_words

Flags = npt.NDArray[np.bool_]

_FIXED = Struct("!HBxIIHHHH4xQQQ")  # what an entry says before its match
_ETH_TYPE, _IP_PROTO = 0x8000_0A02, 0x8000_1401
_IPV6_DST, _IPV6_DST_MASKED = 0x8000_3610, 0x8000_3720


class Columns(NamedTuple):
    """A row for each entry of an answer; of one that is not understood only the place and the packets count."""

    at: Ints
    understood: Flags
    high: Words
    low: Words
    length: Lengths
    ports: Masks
    packets: Words


@dataclass(frozen=True, slots=True)
class Found:
    """One entry as the switch tells it; `entry` is None when it is none that we could have written."""

    entry: Entry | None
    table: int
    priority: int
    cookie: int
    match: bytes  # as it came, to delete the entry by
    packets: int


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """What a switch holds: its table in the order of dz, and all other entries of ours."""

    dz: DzColumns
    ports: Masks
    packets: Words  # by row of the table
    others: tuple[Found, ...]


def read_back(of: SwitchShapes, body: bytes) -> Held:
    """The entries in an assembled answer; a dz that a switch gives twice counts once."""
    octets = np.frombuffer(body, np.uint8)
    at = _chain(octets)
    if len(at) and at[-1] < 0:
        raise MalformedMessage("a list of entries whose lengths do not add up")
    plan = plan_words(of.plan)
    rows = _columns(at, of.fabric.port_words)
    scratch = np.empty(INSTRUCTION + int(of.pieces.size.sum()), np.uint8)
    _read(octets, rows, of.pieces, np.uint64(plan.head), plan.shift, scratch)
    kept = np.flatnonzero(rows.understood)
    kept = kept[np.lexsort((rows.length[kept], rows.low[kept], rows.high[kept]))]
    dz = DzColumns(rows.high[kept], rows.low[kept], rows.length[kept])
    fresh = np.ones(len(kept), np.bool_)
    fresh[1:] = (np.diff(dz.high) != 0) | (np.diff(dz.low) != 0) | (np.diff(dz.length) != 0)
    others = tuple(found(body, place) for place in rows.at[~rows.understood].tolist())
    return Held(dz[fresh], rows.ports[kept[fresh]], rows.packets[kept[fresh]], others)


def _columns(at: Ints, words: int) -> Columns:
    count = len(at)
    high, low, packets = np.zeros((3, count), np.uint64)
    ports = np.zeros((count, words), np.uint64)
    return Columns(at, np.zeros(count, np.bool_), high, low, np.zeros(count, np.uint8), ports, packets)


@kernel
def _chain(body: Octets) -> Ints:
    """Where each entry begins; ends with -1 when the chain is broken."""
    places = np.empty(len(body) // 56 + 1, np.int64)
    count, at = 0, np.int64(0)
    while at < len(body):
        size = np.int64(take(body, at, 2)) if at + 56 <= len(body) else 0
        match = np.int64(take(body, at + 50, 2)) if size >= 56 else 0
        if size < 56 or size % 8 or at + size > len(body) or match < 4 or 48 + (match + 7) // 8 * 8 > size:
            places[count] = -1
            return places[: count + 1]
        places[count] = at
        count += 1
        at += size
    return places[:count]


@kernel
def _read(body: Octets, rows: Columns, pieces: Pieces, head: Word, shift: Int, scratch: Octets) -> None:
    for i in range(len(rows.at)):
        at = rows.at[i]
        rows.packets[i] = take(body, at + 32, 8)
        length = np.int64(take(body, at + 12, 2)) - LOWEST_PRIORITY
        ours = take(body, at + 24, 8) == np.uint64(_COOKIE) and body[at + 2] == FORWARDING
        timeless = take(body, at + 14, 4) == 0
        if not (ours and timeless and 0 <= length <= 128 - shift):
            continue
        fits, first, second = _address(body, at + 48, shift + length)
        if not fits or first >> np.uint64(64 - shift) != head >> np.uint64(64 - shift):
            continue
        begin = at + 48 + (np.int64(take(body, at + 50, 2)) + 7) // 8 * 8
        end = at + np.int64(take(body, at, 2))
        if _ports(body, begin, end, pieces, rows.ports[i], scratch):
            rows.understood[i] = True
            rows.high[i], rows.low[i] = dz_words(shift, first, second)
            rows.length[i] = length


_COOKIE = int(Purpose.FORWARDING.cookie)


@kernel
def _address(body: Octets, at: Int, length: Int) -> tuple[bool, Word, Word]:
    """The address of a match for events under a prefix of this length; False when it matches anything else."""
    first, second, seen = np.uint64(0), np.uint64(0), 0
    mask_first, mask_second = mask_words(length)
    here, end = at + 4, at + np.int64(take(body, at + 2, 2))
    while here + 4 <= end:
        header = np.int64(take(body, here, 4))
        begin, here = here + 4, here + 4 + (header & 0xFF)
        if here > end:
            break
        if header == _ETH_TYPE and take(body, begin, 2) == np.uint64(0x86DD):
            seen |= 1
        elif header == _IP_PROTO and body[begin] == 17:
            seen |= 2
        elif header == (_IPV6_DST if length == 128 else _IPV6_DST_MASKED):
            first, second = take(body, begin, 8), take(body, begin + 8, 8)
            exact = length == 128 or (
                take(body, begin + 16, 8) == mask_first and take(body, begin + 24, 8) == mask_second
            )
            seen |= 4 if exact else 8
        else:
            seen |= 8
    clean = first & ~mask_first == 0 and second & ~mask_second == 0
    return here == end and seen == 7 and clean, first, second


@kernel
def _ports(body: Octets, begin: Int, end: Int, pieces: Pieces, ports: Masks, scratch: Octets) -> bool:
    """Collects the ports of an entry's outputs; True when the entry does with them what we would have written."""
    ports[:] = 0
    here = begin + INSTRUCTION
    while here + 16 <= end:
        size = np.int64(take(body, here + 2, 2))
        if size < 8:
            return False
        if take(body, here, 2) == 0:
            number = np.int64(take(body, here + 4, 4))
            slot = np.searchsorted(pieces.port, number)
            if slot == len(pieces.port) or pieces.port[slot] != number:
                return False
            ports[slot >> 6] |= np.uint64(1) << np.uint64(slot & 63)
        here += size
    written = write_actions(scratch, 0, pieces, ports)
    return end - begin == written and bool(np.all(scratch[:written] == body[begin:end]))


def found(body: bytes, at: int) -> Found:
    """The entry that begins here, one at a time; the chain's lengths were checked before."""
    size, table, _, _, priority, idle, hard, _, cookie, packets, _ = _FIXED.unpack_from(body, at)
    told, end = fields(body, at + _FIXED.size)
    match = match_of(told)
    steps = _instructions(body[end : at + size])
    entry = None
    if match is not None and steps is not None and not idle and not hard:
        entry = Entry(table, priority, match, cookie, *steps)
    return Found(entry, table, priority, cookie, body[at + _FIXED.size : end], packets)


def _instructions(told: bytes) -> tuple[tuple[Action, ...], int | None] | None:
    actions: tuple[Action, ...] | None = ()
    goto: int | None = None
    here = 0
    while here < len(told):
        kind, size = (
            int.from_bytes(told[here : here + 2], "big"),
            int.from_bytes(told[here + 2 : here + 4], "big"),
        )
        if size < 8 or here + size > len(told):
            raise MalformedMessage(f"an instruction says that it has {size} bytes")
        if kind == 1:
            goto = told[here + 4]
        else:
            actions = _actions(told[here + 8 : here + size]) if kind == 4 and actions == () else None
        if actions is None:
            return None
        here += size
    return actions or (), goto


def _actions(told: bytes) -> tuple[Action, ...] | None:
    made: list[Action] = []
    here = 0
    while here < len(told):
        kind, size = (
            int.from_bytes(told[here : here + 2], "big"),
            int.from_bytes(told[here + 2 : here + 4], "big"),
        )
        if size < 8 or here + size > len(told):
            raise MalformedMessage(f"an action says that it has {size} bytes")
        body = told[here + 4 : here + size]
        if kind == 0 and size == 16:
            made.append(Output(int.from_bytes(body[:4], "big"), int.from_bytes(body[4:6], "big")))
        elif kind == 25 and body[:4] == bytes.fromhex("80000606") and size == 16:
            made.append(SetField("eth_dst", body[4:10].hex(":")))
        elif kind == 25 and body[:4] == bytes.fromhex("80003610") and size == 24:
            made.append(SetField("ipv6_dst", str(IPv6Address(body[4:20]))))
        else:
            return None
        here += size
    return tuple(made)
