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

import numpy as np

from plerion.flow.entry import Masks
from plerion.index.dzset import DzColumns, Words
from plerion.southbound.openflow.messages import MalformedMessage
from plerion.southbound.openflow.octets import INSTRUCTION, Columns, Ints, chain, read
from plerion.southbound.openflow.oxm import fields, match_of
from plerion.southbound.openflow.pipeline import Action, Entry, Output, SetField
from plerion.southbound.openflow.shapes import SwitchShapes

MAX_OTHERS = 50_000  # entries of ours beside the table: furniture and admissions are some thousands at most

_FIXED = Struct("!HBxIIHHHH4xQQQ")  # what an entry says before its match


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
    """The entries in an assembled answer; a dz that a switch gives twice counts once.

    A row of the table costs well under a microsecond, any other entry some 10 µs, so those are limited.
    """
    octets = np.frombuffer(body, np.uint8)
    at = chain(octets)
    if len(at) and at[-1] < 0:
        raise MalformedMessage("a list of entries whose lengths do not add up")
    rows = _columns(at, of.fabric.port_words)
    scratch = np.empty(INSTRUCTION + int(of.pieces.size.sum()), np.uint8)
    read(octets, rows, of.pieces, of.addressing, scratch)
    if (beside := len(at) - int(rows.understood.sum())) > MAX_OTHERS:
        raise MalformedMessage(
            f"{beside} entries that are none of a table; {MAX_OTHERS} are more than enough"
        )
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
