"""What a switch was last known to hold, for when it cannot be asked."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plerion.flow.admission import Admission
from plerion.flow.diff import Kind
from plerion.flow.entry import Masks
from plerion.index.dzset import DzColumns

Kinds = npt.NDArray[np.uint8]


class Shadow:
    """A table and the changes since; folded together when they have grown, so a change costs what it changes."""

    def __init__(self, words: int) -> None:
        self.admissions: frozenset[Admission] = frozenset()
        self.turn = 0
        self._dz, self._ports = DzColumns.of(()), np.empty((0, words), np.uint64)
        self._changes: list[tuple[DzColumns, Kinds, Masks]] = []
        self._size = 0

    def replace(self, dz: DzColumns, ports: Masks) -> None:
        self._dz, self._ports, self._changes, self._size = dz, ports, [], 0

    def record(self, dz: DzColumns, kind: Kinds, ports: Masks) -> None:
        self._changes.append((dz, kind, ports))
        self._size += len(kind)
        if self._size > 4096 + len(self._dz):
            self.table()

    def table(self) -> tuple[DzColumns, Masks]:
        """The rows in the order of their dz; of several changes of one dz the last counts."""
        if self._changes:
            dz = DzColumns.joined([self._dz, *(change[0] for change in self._changes)])
            there = np.full(len(self._dz), Kind.ADD, np.uint8)
            kind = np.concatenate([there, *(change[1] for change in self._changes)])
            ports = np.concatenate([self._ports, *(change[2] for change in self._changes)])
            order = np.lexsort((dz.length, dz.low, dz.high))  # stable: a later change comes after
            dz, kind, ports = dz[order], kind[order], ports[order]
            last = np.ones(len(kind), np.bool_)
            same = (np.diff(dz.high) == 0) & (np.diff(dz.low) == 0) & (np.diff(dz.length) == 0)
            last[:-1] = ~same
            kept = last & (kind != Kind.DELETE)
            self.replace(dz[kept], ports[kept])
        return self._dz, self._ports
