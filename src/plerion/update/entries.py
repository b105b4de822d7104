"""Entries that a plan speaks of: one type, column-wise, that every strategy can be written with.

A steady network matches the dz alone. While it changes, an entry may also match the port that the event came in by, a
VLAN id or the epoch in its address, may tag or untag, and its priority is free. Two tables as in the pipeline: the EDGE
admits what a host sends (and may tag it), FORWARDING says where it goes. What an entry is known by is its table,
switch, match and priority; all else is what it does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from plerion.flow.entry import Ints, Masks
from plerion.flow.fabric import Fabric
from plerion.index.dz import Dz
from plerion.index.dzset import DzColumns
from plerion.topology.graph import Port, SwitchId

ANY = -1
"""In a match: whatever it is. As a VLAN id to set: leave it as it is."""

UNTAGGED = 0
"""As a VLAN id to match or to set: no tag."""

GROUPS = 256
"""As an epoch: the addresses of groups, apart from those of contents; the dz is then the number of the group."""

Columns = npt.NDArray[np.int64]


class Table(IntEnum):
    EDGE = 0
    FORWARDING = 1


class Side(IntEnum):
    """Which state an entry belongs to, or which index an event was coded with; BETWEEN understands both."""

    OLD = 1
    NEW = 2
    BETWEEN = 4


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of `Entries`, for looking at."""

    table: Table
    switch: SwitchId
    dz: Dz
    in_port: int
    vlan: int
    epoch: int
    priority: int
    ports: frozenset[int]
    set_vlan: int
    untag: bool
    bridge: bool
    side: Side

    def matches(self, in_port: int, code: Dz, epoch: int, vlan: int) -> bool:
        return (
            self.in_port in (ANY, in_port)
            and self.vlan in (ANY, vlan)
            and (self.epoch == epoch or (self.epoch == ANY and epoch != GROUPS))
            and self.dz.covers(code)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Many entries. `ports` are sets of the switch's slots; an edge entry has none, it lets in or bridges."""

    fabric: Fabric
    table: Columns
    switch: Columns
    dz: DzColumns
    in_port: Columns
    vlan: Columns
    epoch: Columns
    priority: Columns
    ports: Masks
    set_vlan: Columns  # ANY leaves the tag alone
    untag: npt.NDArray[np.bool_]  # before ports that lead to hosts
    bridge: npt.NDArray[np.bool_]  # to the controller, and nowhere else
    side: Columns

    def __len__(self) -> int:
        return len(self.switch)

    def __getitem__(self, rows: slice | npt.NDArray[np.generic]) -> Entries:
        return Entries(self.fabric, *(getattr(self, name)[rows] for name in _COLUMNS))

    def __iter__(self) -> Iterator[Entry]:
        names = self.fabric.topology.switches
        for row in range(len(self)):
            x = int(self.switch[row])
            yield Entry(
                Table(int(self.table[row])),
                names[x],
                self.dz.dz(row),
                int(self.in_port[row]),
                int(self.vlan[row]),
                int(self.epoch[row]),
                int(self.priority[row]),
                frozenset(self.fabric.ports(x, self.ports[row])),
                int(self.set_vlan[row]),
                bool(self.untag[row]),
                bool(self.bridge[row]),
                Side(int(self.side[row])),
            )

    def identity(self) -> tuple[npt.NDArray[np.generic], ...]:
        """The columns that an entry is known by."""
        dz = self.dz
        return (
            dz.low, dz.high, dz.length, self.epoch, self.vlan, self.in_port, self.priority, self.switch, self.table
        )  # fmt: skip

    def behaviour(self) -> npt.NDArray[np.int64]:
        """What the entries do, a row each."""
        does = np.column_stack((self.set_vlan, self.untag, self.bridge)).astype(np.int64)
        return np.column_stack((does, self.ports.view(np.int64)))


_COLUMNS = tuple(field.name for field in fields(Entries) if field.name != "fabric")


def rows(
    fabric: Fabric,
    switch: Columns,
    dz: DzColumns,
    ports: Masks,
    side: Side,
    *,
    priority: Columns | int,
    table: Table = Table.FORWARDING,
    in_port: Columns | int = ANY,
    vlan: int = ANY,
    epoch: int = ANY,
    set_vlan: int = ANY,
    untag: bool = False,
    bridge: bool = False,
) -> Entries:
    """Entries from columns, where one value may stand for a whole column."""

    def column(value: Columns | int) -> Columns:
        return np.broadcast_to(np.asarray(value, np.int64), (len(switch),))

    flag = np.ones(len(switch), np.bool_)
    return Entries(
        fabric, column(int(table)), column(switch), dz, column(in_port), column(vlan), column(epoch), column(priority),
        ports, column(set_vlan), flag & untag, flag & bridge, column(int(side)),
    )  # fmt: skip


def no_entries(fabric: Fabric) -> Entries:
    nowhere = np.empty(0, np.int64)
    ports = np.empty((0, fabric.port_words), np.uint64)
    return rows(fabric, nowhere, DzColumns.of(()), ports, Side.BETWEEN, priority=0)


def listed(fabric: Fabric, entries: Iterable[Entry]) -> Entries:
    """Entries from rows written out: the inverse of looking at them."""
    found = list(entries)
    ports = np.zeros((len(found), fabric.port_words), np.uint64)
    for row, one in enumerate(found):
        begin = int(fabric.first[fabric.switch_number[one.switch]])
        for port in one.ports:
            slot = fabric.slot(Port(one.switch, port)) - begin
            ports[row, slot // 64] |= np.uint64(1 << slot % 64)

    def numbers(name: str) -> Columns:
        return np.array([getattr(one, name) for one in found], np.int64)

    switch = np.array([fabric.switch_number[one.switch] for one in found], np.int64)
    dz, does = DzColumns.of(one.dz for one in found), (numbers("untag") > 0, numbers("bridge") > 0)
    in_port, vlan, epoch, priority = map(numbers, ("in_port", "vlan", "epoch", "priority"))
    return Entries(
        fabric, numbers("table"), switch, dz, in_port, vlan, epoch, priority, ports, numbers("set_vlan"), *does,
        numbers("side"),
    )  # fmt: skip


def joined(parts: Sequence[Entries]) -> Entries:
    """The rows of all parts, one part after the other."""
    fabric = parts[0].fabric
    names = [name for name in _COLUMNS if name != "dz"]
    columns: dict[str, Any] = {name: np.concatenate([getattr(p, name) for p in parts]) for name in names}
    return Entries(fabric, dz=DzColumns.joined([part.dz for part in parts]), **columns)


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """What switches are told in one round; an entry in both parts is replaced, at once.

    A switch takes additions from the highest priority down, then replacements, then deletions from the lowest priority
    up. So where priority grows with length no event meets a shorter entry because the longer one is not there *yet*, or
    not there *any more*, even on a switch that takes changes one by one.
    """

    removed: Entries
    added: Entries

    def __len__(self) -> int:
        return len(self.removed) + len(self.added)

    def inverse(self) -> Changes:
        return Changes(self.added, self.removed)

    def at(self, switch: int) -> Changes:
        """The part of one switch."""
        return Changes(self.removed[self.removed.switch == switch], self.added[self.added.switch == switch])

    def switches(self) -> Ints:
        """The switches that are told anything."""
        return np.union1d(self.removed.switch, self.added.switch)

    def by_switch(self) -> Iterator[tuple[int, Changes]]:
        """The part of each switch that is told anything; all of them cost one sort, where `at` looks at every row."""
        switches = self.switches()
        sides = zip(_cut(self.removed, switches), _cut(self.added, switches), strict=True)
        for x, (removed, added) in zip(switches.tolist(), sides, strict=True):
            yield x, Changes(removed, added)


def _cut(entries: Entries, switches: Ints) -> Iterator[Entries]:
    """The rows of each switch, in their order."""
    ranked = entries[np.argsort(entries.switch, kind="stable")]
    ends = np.searchsorted(ranked.switch, switches, side="right")
    for begin, end in zip(np.searchsorted(ranked.switch, switches).tolist(), ends.tolist(), strict=True):
        yield ranked[begin:end]


def no_changes(fabric: Fabric) -> Changes:
    return Changes(no_entries(fabric), no_entries(fabric))


def added(entries: Entries) -> Changes:
    return Changes(no_entries(entries.fabric), entries)


def removed(entries: Entries) -> Changes:
    return Changes(entries, no_entries(entries.fabric))


def changes(old: Entries, new: Entries) -> Changes:
    """The fewest changes from `old` to `new`; an entry that does the same in both is left alone."""
    at_old, at_new = shared(old, new)
    same = (old.behaviour()[at_old] == new.behaviour()[at_new]).all(axis=1)
    kept_old, kept_new = np.ones(len(old), np.bool_), np.ones(len(new), np.bool_)
    kept_old[at_old[same]] = False
    kept_new[at_new[same]] = False
    return Changes(old[kept_old], new[kept_new])


def shared(one: Entries, other: Entries) -> tuple[Ints, Ints]:
    """The rows of entries that both know, in both."""
    if not len(one) or not len(other):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    keys = [np.concatenate(pair) for pair in zip(one.identity(), other.identity(), strict=True)]
    order = np.lexsort(keys)
    equal = np.ones(max(0, len(order) - 1), np.bool_)
    for key in keys:
        ranked = key[order]
        equal &= ranked[1:] == ranked[:-1]
    before = np.flatnonzero(equal)
    # The sort is stable and no side has an entry twice, so of each equal pair the first is of `one`.
    return order[before], order[before + 1] - len(one)


def applied(change: Changes, entries: Entries) -> Entries:
    """The entries after the changes."""
    gone, _ = shared(entries, joined([change.removed]))
    kept = np.ones(len(entries), np.bool_)
    kept[gone] = False
    present, _ = shared(entries, change.added)
    kept[present] = False
    return joined([entries[kept], change.added])
