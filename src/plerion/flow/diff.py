"""What must change to make one set of tables another: entries to add, to modify and to delete."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from plerion.flow.entry import FlowEntry, Ints, Masks, Tables
from plerion.flow.fabric import Fabric
from plerion.index.dzset import DzColumns
from plerion.topology.graph import SwitchId

Kinds = npt.NDArray[np.uint8]


class Kind(IntEnum):
    ADD = 1
    MODIFY = 2
    DELETE = 3


@dataclass(frozen=True, slots=True)
class Change:
    """One flow-mod; of a deleted entry only the dz matters."""

    switch: SwitchId
    kind: Kind
    entry: FlowEntry


@dataclass(frozen=True, slots=True, eq=False)
class Diff:
    """Changes column-wise; no (switch, dz) stands twice, so they may be applied in any order."""

    fabric: Fabric
    switch: Ints
    dz: DzColumns
    kind: Kinds
    ports: Masks  # the new ports; none for a deletion

    def __len__(self) -> int:
        return len(self.kind)

    def __iter__(self) -> Iterator[Change]:
        names = self.fabric.topology.switches
        rows = zip(self.switch.tolist(), self.dz, self.kind.tolist(), self.ports, strict=True)
        for x, dz, kind, ports in rows:
            yield Change(names[x], Kind(kind), FlowEntry(dz, frozenset(self.fabric.ports(x, ports))))


_NOWHERE, _NO_DZ, _NO_KINDS = np.empty(0, np.int64), DzColumns.of(()), np.empty(0, np.uint8)


def no_change(fabric: Fabric) -> Diff:
    return Diff(fabric, _NOWHERE, _NO_DZ, _NO_KINDS, np.empty((0, fabric.port_words), np.uint64))


def diff(old: Tables, new: Tables) -> Diff:
    """The fewest changes that lead from `old` to `new`; `apply` is its inverse."""
    common, at_old, at_new = np.intersect1d(_keys(old), _keys(new), assume_unique=True, return_indices=True)
    gone = np.setdiff1d(np.arange(len(old)), at_old, assume_unique=True)
    fresh = np.setdiff1d(np.arange(len(new)), at_new, assume_unique=True)
    changed = at_new[(old.ports[at_old] != new.ports[at_new]).any(axis=1)] if len(common) else at_new
    kinds = [Kind.DELETE] * len(gone) + [Kind.ADD] * len(fresh) + [Kind.MODIFY] * len(changed)
    rows = [(old, gone), (new, fresh), (new, changed)]
    ports = np.concatenate([tables.ports[at] for tables, at in rows])
    ports[: len(gone)] = 0
    return Diff(
        new.fabric,
        np.concatenate([_switches(tables)[at] for tables, at in rows]),
        DzColumns.joined([tables.dz[at] for tables, at in rows]),
        np.array(kinds, np.uint8),
        ports,
    )


def apply(change: Diff, tables: Tables) -> Tables:
    """The tables after the changes; `apply(diff(a, b), a) == b`."""
    keys, changed = _keys(tables), _diff_keys(change)
    kept = ~np.isin(keys, changed)
    there = change.kind != Kind.DELETE
    switch = np.concatenate((_switches(tables)[kept], change.switch[there]))
    dz = DzColumns.joined([tables.dz[kept], change.dz[there]])
    ports = np.concatenate((tables.ports[kept], change.ports[there]))
    order = np.lexsort((dz.length, dz.low, dz.high, switch))
    first = np.searchsorted(switch[order], np.arange(tables.fabric.switches + 1))
    return Tables(tables.fabric, first.astype(np.int64), dz[order], ports[order])


def coalesced(diffs: Sequence[Diff]) -> Diff:
    """One diff with the effect of several, one after the other."""
    if len(diffs) == 1:
        return diffs[0]
    fabric = diffs[0].fabric
    parts = [(d.switch, d.dz, d.kind, d.ports) for d in diffs]
    switch, kind, ports = (np.concatenate([part[i] for part in parts]) for i in (0, 2, 3))
    dz = DzColumns.joined([part[1] for part in parts])
    whole = Diff(fabric, switch, dz, kind, ports)
    keys = _diff_keys(whole)
    _, last = np.unique(keys[::-1], return_index=True)
    last = len(keys) - 1 - last
    _, first = np.unique(keys, return_index=True)
    net = _net(kind[first], kind[last])
    kept = net > 0
    rows = last[kept]
    return Diff(fabric, switch[rows], dz[rows], net[kept], ports[rows])


def _net(first: Kinds, last: Kinds) -> Kinds:
    """What a first and a last change of one entry come to: an entry that was added and deleted never was."""
    began, ends = first != Kind.ADD, last != Kind.DELETE
    net = np.where(began, np.where(ends, Kind.MODIFY, Kind.DELETE), np.where(ends, Kind.ADD, 0))
    return net.astype(np.uint8)


def _switches(tables: Tables) -> Ints:
    return np.repeat(np.arange(tables.fabric.switches), np.diff(tables.first))


_KEY = np.dtype([("switch", np.int64), ("high", np.uint64), ("low", np.uint64), ("length", np.uint8)])


def _keys(tables: Tables) -> npt.NDArray[np.void]:
    return _packed(_switches(tables), tables.dz)


def _diff_keys(change: Diff) -> npt.NDArray[np.void]:
    return _packed(change.switch, change.dz)


def _packed(switch: Ints, dz: DzColumns) -> npt.NDArray[np.void]:
    keys = np.empty(len(switch), _KEY)
    keys["switch"], keys["high"], keys["low"], keys["length"] = switch, dz.high, dz.low, dz.length
    return keys
