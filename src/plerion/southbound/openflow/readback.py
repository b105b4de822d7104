"""What a switch holds, from its answer: the rows that forward at once, everything else entry by entry.

The answer is a chain of entries, each with its length in front; an answer whose lengths do not fit is refused whole
(`MalformedMessage`). An entry is *understood* when it says exactly what we would have written for what it means; an
entry that carries our cookie and says anything else is not counted as ours, so that the next difference writes it
again.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv6Address
from struct import Struct

import numpy as np

from plerion.index.dzset import Words
from plerion.southbound.openflow.addresses import meaning
from plerion.southbound.openflow.messages import MalformedMessage
from plerion.southbound.openflow.octets import INSTRUCTION, Home, Ints, Rows, chain, read
from plerion.southbound.openflow.oxm import fields, match_of
from plerion.southbound.openflow.pipeline import (
    ADMISSION,
    RULE,
    Action,
    Entry,
    Output,
    PopTag,
    Purpose,
    PushTag,
    SetField,
)
from plerion.southbound.openflow.shapes import SwitchShapes
from plerion.update.entries import ANY, Entries, Side, Table, joined, listed

MAX_OTHERS = (
    50_000  # entries of ours that do not forward: furniture and admissions are some thousands at most
)

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
    """What a switch holds: the rows of its entries that forward, and all other entries of ours."""

    forwarding: Entries
    packets: Words  # by row
    others: tuple[Found, ...]

    def __len__(self) -> int:
        return len(self.forwarding) + len(self.others)


def read_back(of: SwitchShapes, body: bytes) -> Held:
    """The entries in an assembled answer; one that a switch gives twice counts once.

    A row that forwards costs well under a microsecond, any other entry some 10 µs, so those are limited.
    """
    octets = np.frombuffer(body, np.uint8)
    at = chain(octets)
    if len(at) and at[-1] < 0:
        raise MalformedMessage("a list of entries whose lengths do not add up")
    rows, pieces, rule = _rows(at, of.fabric.port_words), of.pieces, RULE["events"]
    scratch = np.empty(INSTRUCTION + int(pieces.size.sum()) + len(pieces.untagging), np.uint8)
    read(octets, rows, pieces, Home(rule.table, np.uint64(rule.purpose.cookie)), scratch)
    told = meaning(of.plan, rows.destination)
    ours = rows.ours & told.ours & ((rows.in_port == ANY) | np.isin(rows.in_port, pieces.port))
    if (beside := len(at) - int(ours.sum())) > MAX_OTHERS:
        raise MalformedMessage(f"{beside} entries that do not forward; {MAX_OTHERS} are more than enough")
    table, switch, no_tag, side = (
        np.full(len(at), number) for number in (int(Table.FORWARDING), of.number, ANY, int(Side.BETWEEN))
    )
    every = Entries(
        of.fabric, table, switch, told.dz, rows.in_port, rows.vlan, told.epoch, rows.priority, rows.ports, no_tag,
        rows.untag, rows.bridge, side,
    )  # fmt: skip
    kept = _once(every, np.flatnonzero(ours))
    others = tuple(found(body, place) for place in at[~ours].tolist())
    return Held(every[kept], rows.packets[kept], others)


def _rows(at: Ints, words: int) -> Rows:
    count = len(at)
    in_port, vlan, priority = np.zeros((3, count), np.int64)
    ours, untag, bridge = np.zeros((3, count), np.bool_)
    destination, ports = np.zeros((count, 4), np.uint64), np.zeros((count, words), np.uint64)
    packets = np.zeros(count, np.uint64)
    return Rows(at, ours, in_port, vlan, priority, destination, ports, untag, bridge, packets)


def _once(entries: Entries, rows: Ints) -> Ints:
    """These rows, and of several at one place only one."""
    keys = entries[rows].identity()
    ranked = np.lexsort(keys)
    fresh = np.zeros(len(rows), np.bool_)
    fresh[:1] = True
    for key in keys:
        fresh[1:] |= key[ranked[1:]] != key[ranked[:-1]]
    return rows[ranked[fresh]]


def sorted_out(of: SwitchShapes, told: Held) -> tuple[Entries, list[Found]]:
    """All rows that are understood, those of the edge among them, and all other entries."""
    rows, rest = [], []
    for one in told.others:
        edge = one.table == ADMISSION and one.cookie == Purpose.ADMISSION.cookie
        row = of.dialect.row(of.switch, one.entry) if edge and one.entry is not None else None
        if row is None:
            rest.append(one)
        else:
            rows.append(row)
    return joined([told.forwarding, listed(of.fabric, rows)]), rest


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
        elif kind == 25 and body[:4] == bytes.fromhex("80000c02") and size == 16:
            made.append(SetField("vlan_vid", int.from_bytes(body[4:6], "big")))
        elif kind == 17 and body[:2] == b"\x81\x00":
            made.append(PushTag())
        elif kind == 18:
            made.append(PopTag())
        else:
            return None
        here += size
    return tuple(made)
