"""A proof that tables deliver: for every publisher and every point of the address space, not for a sample.

The space falls into atoms (see `atoms`); one walk an atom and publisher speaks for all their events, and the number
of atoms is linear in what is deployed. Nothing of `trie` or `delta` is used: what is read are the tables that the
switches would be sent.

A wanted delivery is one from a publisher to a subscription on another host that the network connects; it must happen
exactly once. A second copy at any host, an event that comes back to a port, or a table over its limit refute the state
too, each with an event to try.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from plerion.flow.atoms import Net, Rows, Scratch, atoms, matches, net, scratch, walk
from plerion.flow.entry import Ints, Masks, Tables
from plerion.index.cover import Covers
from plerion.index.dz import MAX_LENGTH, Dz
from plerion.index.dzset import DzColumns, DzSet
from plerion.kernel import Int, kernel
from plerion.topology.graph import HostId, SwitchId, Topology

Fault = Literal["lost", "doubled", "looping", "table full"]
Counts = npt.NDArray[np.int32]

_NO_FAULT, _LOST, _DOUBLED, _LOOPING = 0, 1, 2, 3
_FAULTS: dict[int, Fault] = {_LOST: "lost", _DOUBLED: "doubled", _LOOPING: "looping"}


@dataclass(frozen=True, slots=True)
class CounterExample:
    """An event that refutes the tables (`code` is a full-length dz to trace), or a table that is too large."""

    fault: Fault
    publisher: HostId | None = None
    host: HostId | None = None
    code: Dz | None = None
    switch: SwitchId | None = None
    size: int = 0
    limit: int = 0

    def __str__(self) -> str:
        if self.fault == "table full":
            return f"table full: {self.switch} has {self.size} entries and room for {self.limit}"
        to = f" to {self.host}" if self.host else ""
        return f"{self.fault}: the event {str(self.code).rstrip('0') or '0'}… from {self.publisher}{to}"


@dataclass(frozen=True, slots=True)
class Proof:
    """What was shown; true exactly when there is no counter-example. Counts are over atoms, not events."""

    atoms: int = 0
    deliveries: int = 0  # (atom, publisher, host) that are wanted and happen
    unwanted: int = 0  # the same that nobody wants and happen all the same
    counter_example: CounterExample | None = None

    def __bool__(self) -> bool:
        return self.counter_example is None


def verify(
    tables: Tables,
    covers: Covers,
    hosts: Sequence[HostId],
    advertised: Mapping[HostId, DzSet],
    topology: Topology | None = None,
    limits: Mapping[SwitchId, int] | None = None,
) -> Proof:
    """Proves or refutes the tables for these subscriptions (`covers[i]` at `hosts[i]`) and these publishers.

    `topology` is what survives of the network that the tables were made for.
    """
    for switch, size in tables.sizes().items():
        if size > (limits or {}).get(switch, size):
            full = CounterExample("table full", switch=switch, size=size, limit=(limits or {})[switch])
            return Proof(counter_example=full)
    fabric = tables.fabric
    owner = np.array([fabric.host_number[host] for host in hosts], np.int64)
    sent = [(fabric.host_number[host], dz) for host, cells in advertised.items() for dz in cells]
    space = atoms([tables.dz, covers.dz, DzColumns.of(dz for _, dz in sent)])
    rows = matches(tables, space.first[0], space.last[0], len(space))
    wanted, sends = np.zeros((2, len(space) + 1, len(fabric.attachment)), np.int32)
    _add_up(wanted, np.repeat(owner, np.diff(covers.offsets)), space.first[1], space.last[1])
    _add_up(sends, np.array([host for host, _ in sent], np.int64), space.first[2], space.last[2])
    network = net(fabric, topology or fabric.topology)
    found = _check(network, tables.ports, rows, wanted, sends, scratch(network))
    good, bad, fault, atom, publisher, host = map(int, found)
    if fault == _NO_FAULT:
        return Proof(len(space), good, bad)
    names = fabric.topology.hosts
    code = Dz.from_key(int(space.high[atom]), int(space.low[atom]), MAX_LENGTH)
    example = CounterExample(_FAULTS[fault], names[publisher], None if host < 0 else names[host], code)
    return Proof(len(space), good, bad, example)


@kernel
def _add_up(counts: Counts, owner: Ints, first: Ints, last: Ints) -> None:
    """How many cells of each owner lie over each atom."""
    for i in range(len(owner)):
        counts[first[i], owner[i]] += 1
        counts[last[i], owner[i]] -= 1
    for atom in range(1, len(counts)):
        counts[atom] += counts[atom - 1]


@kernel
def _check(
    net: Net, ports: Masks, rows: Rows, wanted: Counts, sends: Counts, memory: Scratch
) -> tuple[Int, Int, Int, Int, Int, Int]:
    """Walks every atom from every publisher: wanted and unwanted deliveries, and the first fault with its place."""
    good, bad = 0, 0
    for atom in range(len(rows)):
        for publisher in range(len(net.part)):
            if sends[atom, publisher] == 0 or net.part[publisher] < 0:
                continue
            if not walk(net, ports, rows[atom], publisher, memory):
                return good, bad, _LOOPING, atom, publisher, -1
            for host in range(len(net.part)):
                want = wanted[atom, host] > 0 and host != publisher and net.part[host] == net.part[publisher]
                copies = memory.copies[host]
                if copies > 1:
                    return good, bad, _DOUBLED, atom, publisher, host
                if want and copies == 0:
                    return good, bad, _LOST, atom, publisher, host
                if want:
                    good += 1
                elif copies == 1:
                    bad += 1
    return good, bad, _NO_FAULT, -1, -1, -1
