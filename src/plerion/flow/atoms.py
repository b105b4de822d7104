"""The address space cut where anybody could tell two codes apart, and the walk of one atom's events.

All cells that anybody speaks of (entries, covers, advertisements) begin and end at some key. Between two such keys
lies an *atom*: no table and no cover tells two codes in it apart, so what holds for one holds for all, and a
statement about every atom is a statement about every possible event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plerion.flow.entry import Ints, Masks, Tables
from plerion.flow.fabric import Fabric
from plerion.index.dzset import DzColumns, Lengths, Words
from plerion.index.words import after
from plerion.kernel import Int, kernel, lean
from plerion.topology.graph import Port, SwitchId, Topology

Rows = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Atoms:
    """Atom i holds the keys from (high[i], low[i]) to the next one's; the first begins at 0, the last ends the space.

    `first[p]` and `last[p]` give, for each cell of the p-th part, the atoms it consists of (last excluded).
    """

    high: Words
    low: Words
    first: tuple[Ints, ...]
    last: tuple[Ints, ...]

    def __len__(self) -> int:
        return len(self.high)


def atoms(parts: Sequence[DzColumns]) -> Atoms:
    """The atoms of all cells in all parts; at most two a cell and one more. Costs a sort."""
    high, low, length = (
        np.concatenate([getattr(p, name) for p in parts]) for name in ("high", "low", "length")
    )
    end_high, end_low = _ends(high, low, length)
    ends_space = (end_high == 0) & (end_low == 0)
    keys_high = np.concatenate(([np.uint64(0)], high, end_high))
    keys_low = np.concatenate(([np.uint64(0)], low, end_low))
    order = np.lexsort((keys_low, keys_high))
    sorted_high, sorted_low = keys_high[order], keys_low[order]
    starts = np.concatenate(
        ([True], (sorted_high[1:] != sorted_high[:-1]) | (sorted_low[1:] != sorted_low[:-1]))
    )
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(starts) - 1
    first, last = number[1 : len(high) + 1], number[len(high) + 1 :]
    last[ends_space] = int(starts.sum())
    splits = np.cumsum([len(part) for part in parts])[:-1]
    return Atoms(
        sorted_high[starts], sorted_low[starts], tuple(np.split(first, splits)), tuple(np.split(last, splits))
    )


def matches(tables: Tables, first: Ints, last: Ints, count: int) -> Rows:
    """For each atom and switch the row of the entry that an event there matches, -1 if none."""
    rows = np.full((count, tables.fabric.switches), -1, np.int32)
    _paint(rows, tables.first, first, last)
    return rows


@kernel
def _ends(high: Words, low: Words, length: Lengths) -> tuple[Words, Words]:
    end_high, end_low = np.empty_like(high), np.empty_like(low)
    for i in range(len(high)):
        end_high[i], end_low[i] = after(high[i], low[i], np.int64(length[i]))
    return end_high, end_low


@kernel
def _paint(rows: Rows, table_first: Ints, first: Ints, last: Ints) -> None:
    """Entries come in the order of their dz, a cell before those inside it, so the longest match paints last."""
    for x in range(len(table_first) - 1):
        for row in range(table_first[x], table_first[x + 1]):
            rows[first[row] : last[row], x] = row


class Net(NamedTuple):
    """The surviving network for walks: where each slot leads (-1: nowhere) and where each host sends from."""

    first: Ints
    switch_of: Ints
    peer_slot: Ints
    host: Ints
    attachment: Ints  # -1 for a host that is cut off
    part: Ints  # by host: the connected part of the network that it is in, -1 when it is cut off


def net(fabric: Fabric, topology: Topology) -> Net:
    """The links of `topology`, what survives of the fabric's own, as arrays."""
    alive = np.zeros(len(fabric.port), np.bool_)
    for switch in topology.switches:
        for number in topology.ports(switch):
            alive[fabric.slot(Port(switch, number))] = True
    part_of = {switch: i for i, part in enumerate(topology.components()) for switch in part}
    part = np.full(len(fabric.attachment), -1, np.int64)
    for host in topology.hosts:
        part[fabric.host_number[host]] = part_of[SwitchId(topology.attachment(host).node)]
    return Net(
        fabric.first,
        fabric.switch_of,
        np.where(alive, fabric.peer_slot, -1),
        np.where(alive, fabric.host, -1),
        np.where(part >= 0, fabric.attachment, -1),
        part,
    )


class Scratch(NamedTuple):
    """Memory that walks use again, and where they leave what they found.

    The trail lists the slots that the event left by, each with its cause: the place in the trail of the slot by which
    it had come to that switch, -1 at the first. Causes stand before their effects.
    """

    copies: Ints  # by host
    came: Ints  # by slot: the number of the walk that last came in by it
    queue: Ints  # places in the trail whose far end is still to be visited
    trail: Ints
    cause: Ints
    trail_length: Ints  # one number
    walks: Ints  # one number


def scratch(net: Net) -> Scratch:
    """Memory for walks: an event comes to a switch once by each port to a switch and once from its publisher."""
    degree = np.diff(net.first)
    arrivals = np.bincount(net.switch_of[net.peer_slot >= 0], minlength=len(degree)) + 1
    room = int((degree * arrivals).sum()) + 1
    return Scratch(
        np.zeros(len(net.attachment), np.int64),
        np.zeros(len(net.switch_of), np.int64),
        *np.empty((3, room), np.int64),
        *np.zeros((2, 1), np.int64),
    )


@lean
def walk(net: Net, ports: Masks, matched: Rows, publisher: Int, memory: Scratch) -> bool:
    """Leaves the event's copies and trail in `memory`; False when it comes in by one port twice, and stops there.

    `matched` is the row of `matches` for the event's atom; the compiled twin of `ModelNetwork.walk`.
    """
    memory.copies[:] = 0
    memory.walks[0] += 1
    came, cause, length, waiting = net.attachment[publisher], -1, 0, 0
    while True:
        if memory.came[came] == memory.walks[0]:
            memory.trail_length[0] = length
            return False
        memory.came[came] = memory.walks[0]
        x = net.switch_of[came]
        row, begin = matched[x], net.first[x]
        for slot in range(begin, net.first[x + 1] if row >= 0 else begin):
            bit = (ports[row, (slot - begin) >> 6] >> np.uint64((slot - begin) & 63)) & np.uint64(1)
            if bit == 0 or slot == came:
                continue
            memory.trail[length], memory.cause[length] = slot, cause
            if net.host[slot] >= 0:
                memory.copies[net.host[slot]] += 1
            elif net.peer_slot[slot] >= 0:
                memory.queue[waiting] = length
                waiting += 1
            length += 1
        if waiting == 0:
            memory.trail_length[0] = length
            return True
        waiting -= 1
        cause = memory.queue[waiting]
        came = net.peer_slot[memory.trail[cause]]
