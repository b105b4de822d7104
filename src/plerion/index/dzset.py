"""Canonical sets of disjoint dz: equal exactly when they cover the same points."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plerion.index.dz import WHOLE, Dz

Words = npt.NDArray[np.uint64]
Lengths = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class DzSet:
    """Disjoint cells in order, no two of which could be written as one.

    Build one with `DzSet.of`; equality is then equality of the regions. Every operation costs
    at most the two sizes times the length of a dz.
    """

    cells: tuple[Dz, ...] = ()

    @classmethod
    def of(cls, cells: Iterable[Dz]) -> DzSet:
        kept: list[Dz] = []
        for dz in sorted(cells):
            if kept and kept[-1].covers(dz):
                continue
            kept.append(dz)
            while len(kept) > 1 and _siblings(kept[-2], kept[-1]):
                upper = kept.pop()
                kept[-1] = Dz(upper.bits >> 1, upper.length - 1)
        return cls(tuple(kept))

    @classmethod
    def parse(cls, *texts: str) -> DzSet:
        return cls.of(map(Dz.parse, texts))

    def __iter__(self) -> Iterator[Dz]:
        return iter(self.cells)

    def __len__(self) -> int:
        return len(self.cells)

    def __bool__(self) -> bool:
        return bool(self.cells)

    def __str__(self) -> str:
        return "{" + ", ".join(str(dz) or "ε" for dz in self.cells) + "}"

    def __or__(self, other: DzSet) -> DzSet:
        return DzSet.of((*self.cells, *other.cells))

    def __and__(self, other: DzSet) -> DzSet:
        """Two cells that meet lie one in the other, so a meeting is always the longer of two."""
        common: list[Dz] = []
        mine, theirs = list(self.cells[::-1]), list(other.cells[::-1])
        while mine and theirs:
            a, b = mine[-1], theirs[-1]
            if a.covers(b):
                common.append(theirs.pop())
            elif b.covers(a):
                common.append(mine.pop())
            else:
                (mine if a < b else theirs).pop()
        return DzSet(tuple(common))

    def __sub__(self, other: DzSet) -> DzSet:
        pieces: list[Dz] = []
        starts = [hole.start for hole in other.cells]
        pending = list(self.cells[::-1])
        while pending:
            cell = pending.pop()
            nearest = max(0, bisect_right(starts, cell.start) - 1)
            holes = other.cells[nearest : bisect_left(starts, cell.end)]
            if any(hole.covers(cell) for hole in holes[:1]):
                continue
            if any(cell.covers(hole) for hole in holes):
                pending += (cell.child(1), cell.child(0))
            else:
                pieces.append(cell)
        return DzSet.of(pieces)

    def covers(self, dz: Dz) -> bool:
        return any(cell.covers(dz) for cell in self.cells)

    def overlaps(self, other: DzSet) -> bool:
        return bool(self & other)


def _siblings(lower: Dz, upper: Dz) -> bool:
    return lower.length == upper.length and upper.length > 0 and lower.bits ^ upper.bits == 1


NOTHING = DzSet()
EVERYTHING = DzSet((WHOLE,))


@dataclass(frozen=True, slots=True, eq=False)
class DzColumns:
    """Many dz column-wise: left-aligned 64-bit words and lengths, as kernels take them."""

    high: Words
    low: Words
    length: Lengths

    @classmethod
    def of(cls, cells: Iterable[Dz]) -> DzColumns:
        listed = list(cells)
        keys = np.array([dz.key() for dz in listed], dtype=np.uint64).reshape(-1, 2)
        lengths = np.array([dz.length for dz in listed], dtype=np.uint8)
        return cls(np.ascontiguousarray(keys[:, 0]), np.ascontiguousarray(keys[:, 1]), lengths)

    @classmethod
    def joined(cls, parts: Sequence[DzColumns]) -> DzColumns:
        """The rows of all parts, one part after the other."""
        none = np.empty(0, np.uint64)
        return cls(
            np.concatenate([none, *(part.high for part in parts)]),
            np.concatenate([none, *(part.low for part in parts)]),
            np.concatenate([none.astype(np.uint8), *(part.length for part in parts)]),
        )

    def __len__(self) -> int:
        return len(self.length)

    def __getitem__(self, rows: slice | npt.NDArray[np.generic]) -> DzColumns:
        return DzColumns(self.high[rows], self.low[rows], self.length[rows])

    def dz(self, row: int) -> Dz:
        return Dz.from_key(int(self.high[row]), int(self.low[row]), int(self.length[row]))

    def __iter__(self) -> Iterator[Dz]:
        return map(Dz.from_key, self.high.tolist(), self.low.tolist(), self.length.tolist())

    def texts(self) -> list[str]:
        return [str(dz) for dz in self]
