"""Entries and tables: what a switch is told, as values and, for many, column-wise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plerion.flow.fabric import Fabric
from plerion.index.dz import Dz
from plerion.index.dzset import DzColumns
from plerion.topology.graph import SwitchId

Ints = npt.NDArray[np.int64]
Masks = npt.NDArray[np.uint64]

LOWEST_PRIORITY = 100  # below it is room for what is not Plerion's


@dataclass(frozen=True, slots=True)
class FlowEntry:
    """Events under `dz` leave by `ports`, unless a longer dz has an entry of its own."""

    dz: Dz
    ports: frozenset[int]

    @property
    def priority(self) -> int:
        """Grows with the length, so that the switch picks the smallest cell around an event."""
        return LOWEST_PRIORITY + self.dz.length


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """All entries of all switches: switch x owns rows `first[x]` to `first[x + 1]`, sorted by dz.

    A dz stands at most once in a table. Row i of `ports` is a set of the switch's slots (see `Fabric`).
    """

    fabric: Fabric
    first: Ints
    dz: DzColumns
    ports: Masks  # (rows, words)

    def __len__(self) -> int:
        return len(self.dz)

    def sizes(self) -> dict[SwitchId, int]:
        return {s: int(n) for s, n in zip(self.fabric.topology.switches, np.diff(self.first), strict=True)}

    def rows(self, switch: SwitchId) -> range:
        x = self.fabric.switch_number[switch]
        return range(int(self.first[x]), int(self.first[x + 1]))

    def entries(self, switch: SwitchId) -> Iterator[FlowEntry]:
        """The entries of one switch in the order of their dz."""
        x = self.fabric.switch_number[switch]
        for row in self.rows(switch):
            yield FlowEntry(self.dz.dz(row), frozenset(self.fabric.ports(x, self.ports[row])))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tables):
            return NotImplemented
        columns = [(t.first, t.dz.high, t.dz.low, t.dz.length, t.ports) for t in (self, other)]
        same = all(np.array_equal(mine, theirs) for mine, theirs in zip(*columns, strict=True))
        return same and self.fabric.topology == other.fabric.topology

    __hash__ = None  # type: ignore[assignment]  # holds arrays


def no_tables(fabric: Fabric) -> Tables:
    """Every table empty."""
    return Tables(
        fabric,
        np.zeros(fabric.switches + 1, np.int64),
        DzColumns.of(()),
        np.empty((0, fabric.port_words), np.uint64),
    )


def tables_of(fabric: Fabric, entries: Mapping[SwitchId, Iterable[FlowEntry]]) -> Tables:
    """Tables from entries written out, in any order."""
    by_switch = [sorted(entries.get(switch, ()), key=lambda e: e.dz) for switch in fabric.topology.switches]
    rows = [(x, entry) for x, table in enumerate(by_switch) for entry in table]
    ports = np.zeros((len(rows), fabric.port_words), np.uint64)
    for row, (x, entry) in enumerate(rows):
        begin, end = fabric.first[x], fabric.first[x + 1]
        if not entry.ports <= set(fabric.port[begin:end].tolist()):
            raise ValueError(
                f"{fabric.topology.switches[x]} does not have all ports of {sorted(entry.ports)}"
            )
        for slot in np.searchsorted(fabric.port[begin:end], sorted(entry.ports)).tolist():
            ports[row, slot // 64] |= np.uint64(1 << (slot % 64))
    first = np.cumsum([0, *map(len, by_switch)]).astype(np.int64)
    return Tables(fabric, first, DzColumns.of(entry.dz for _, entry in rows), ports)
