"""A dz names one cell of the event space by the halvings that lead to it (seed 000 §2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import total_ordering

MAX_LENGTH = 112  # what `ff0e::/16` leaves of an IPv6 address
_WORD = (1 << 64) - 1


class DzError(ValueError):
    """Text or numbers that name no cell."""


@total_ordering
@dataclass(frozen=True, slots=True)
class Dz:
    """One cell of the event space, named by the halvings that lead to it.

    ``Dz.parse("011")`` is: lower half, then upper, then upper. The empty dz is the whole
    space. Longer means smaller, so "is a prefix of" and "covers" are the same relation,
    and a switch can decide it with one masked match. Sorted as cells lie in the space,
    a cell before the cells inside it.
    """

    bits: int
    length: int

    def __post_init__(self) -> None:
        if not 0 <= self.length <= MAX_LENGTH:
            raise DzError(f"a dz has 0 to {MAX_LENGTH} bits, not {self.length}")
        if self.bits < 0 or self.bits >> self.length:
            raise DzError(f"{self.bits} does not fit into {self.length} bits")

    @classmethod
    def parse(cls, text: str) -> Dz:
        if len(text) > MAX_LENGTH or text.strip("01"):
            raise DzError(f"a dz is written with up to {MAX_LENGTH} digits 0 and 1, not {text[:120]!r}")
        return cls(int(text, 2) if text else 0, len(text))

    def __str__(self) -> str:
        return f"{self.bits:0{self.length}b}" if self.length else ""

    def __lt__(self, other: Dz) -> bool:
        return (self.start, self.length) < (other.start, other.length)

    @property
    def start(self) -> int:
        """The first of the 2**112 points that the cell covers."""
        return self.bits << (MAX_LENGTH - self.length)

    @property
    def end(self) -> int:
        """One past the last point."""
        return (self.bits + 1) << (MAX_LENGTH - self.length)

    def covers(self, other: Dz) -> bool:
        below = other.length - self.length
        return below >= 0 and other.bits >> below == self.bits

    def overlaps(self, other: Dz) -> bool:
        return self.covers(other) or other.covers(self)

    def child(self, bit: int) -> Dz:
        return Dz(self.bits << 1 | bit, self.length + 1)

    def append(self, other: Dz) -> Dz:
        return Dz(self.bits << other.length | other.bits, self.length + other.length)

    def key(self) -> tuple[int, int]:
        """The bits left-aligned in two 64-bit words: how arrays hold a dz beside its length."""
        aligned = self.bits << (128 - self.length)
        return aligned >> 64, aligned & _WORD

    @classmethod
    def from_key(cls, high: int, low: int, length: int) -> Dz:
        return cls((int(high) << 64 | int(low)) >> (128 - int(length)), int(length))


WHOLE = Dz(0, 0)
