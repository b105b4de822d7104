"""Where one attribute's axis is halved, and in which of the resulting cells a position lies.

The rule that keeps covers free of false negatives is that `cell` never decreases as the position grows.
Then the cells that meet a half-open interval are exactly those from the cell of its first position to
the cell of its last, whatever rounding happened inside, provided that everybody uses the same function.
Two kinds of cuts follow it:

* equal halves: one subtraction, one multiplication and a floor, each of which never decreases;
* explicit cuts: comparisons with a sorted array, at most 2**16 - 1 of them.

A logarithmic scale is the bit pattern of a positive double read as an integer. That is a piecewise linear
logarithm, exact and alike on every machine, which the library function is not.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass
from math import ceil, isfinite, nextafter
from sys import float_info

import numpy as np
import numpy.typing as npt

from plerion.content.schema import Attribute, Number

MAX_EQUAL_BITS = 48  # a double tells 2**53 positions apart; the rest is headroom for rounding
MAX_EXPLICIT_BITS = 16


class ContentIndexError(ValueError):
    """A content index that contradicts itself, with the place and what would be right."""


@dataclass(frozen=True, slots=True)
class Cuts:
    """2**bits cells of one attribute: equal parts of [low, end), or parted at the given positions.

    The outer cells reach to infinity, so every position has a cell and MISSING lies in the first.
    """

    bits: int
    low: float
    end: float
    log: bool = False
    discrete: bool = False
    at: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        limit = MAX_EQUAL_BITS if self.at is None else MAX_EXPLICIT_BITS
        if not 0 <= self.bits <= limit:
            raise ContentIndexError(f"an attribute takes 0 to {limit} bits here, not {self.bits}")
        if not self.low < self.end or (self.log and self.low <= 0):
            raise ContentIndexError(
                f"cuts need low < end (and low > 0 on a log scale), not {self.low}, {self.end}"
            )
        if not isfinite(self.end - self.low):
            raise ContentIndexError(f"cuts need finite low, end and end - low, not {self.low}, {self.end}")
        if self.at is not None:
            if len(self.at) != (1 << self.bits) - 1:
                raise ContentIndexError(
                    f"{self.bits} bits need {(1 << self.bits) - 1} cuts, not {len(self.at)}"
                )
            if not all(map(isfinite, self.at)):
                raise ContentIndexError("cuts must be finite numbers")
            if not all(a <= b for a, b in zip(self.at, self.at[1:], strict=False)):
                raise ContentIndexError("cuts must not decrease")

    @property
    def cells(self) -> int:
        return 1 << self.bits

    @property
    def factor(self) -> float:
        """Cells a unit of the (linear or logarithmic) scale; finite, because 0 * inf is in no cell."""
        return min(self.cells / self._above_low(self.end), float_info.max)

    def _above_low(self, position: float) -> float:
        return float(pattern(position) - pattern(self.low)) if self.log else position - self.low

    def cell(self, position: float) -> int:
        """The definition; `encode` holds its compiled twin."""
        if self.at is not None:
            return bisect_right(self.at, position)
        if not position > self.low:
            return 0
        scaled = self._above_low(position) * self.factor
        return int(scaled) if scaled < self.cells else self.cells - 1

    def cells_of(self, low: float, high: float) -> tuple[int, int]:
        """First and last cell that a position in [low, high) can lie in; the interval is not empty."""
        return self.cell(low), self.cell(last_below(high, self.discrete))


def pattern(position: float) -> int:
    """The bit pattern of a positive double; it grows with the position, almost as its logarithm."""
    bits: int = struct.unpack("<q", struct.pack("<d", position))[0]
    return bits


def last_below(high: float, discrete: bool) -> float:
    """The greatest position under `high`: attributes of whole numbers have none between two of them."""
    return ceil(high) - 1.0 if discrete and isfinite(high) else nextafter(high, -float("inf"))


def useful_bits(attribute: Attribute) -> int:
    """How many halvings can tell values of the attribute apart."""
    if isinstance(attribute, Number) and not attribute.integer:
        return MAX_EQUAL_BITS if attribute.low < attribute.high else 0
    cells = int(attribute.end - attribute.start)
    if isinstance(attribute, Number) and attribute.scale == "log" and cells > 1:
        closest = pattern(attribute.high) - pattern(attribute.high - 1)  # the two greatest values
        cells = -(-(pattern(attribute.end) - pattern(attribute.start)) // closest)
    return min((cells - 1).bit_length(), MAX_EQUAL_BITS)


def equal_cuts(attribute: Attribute, bits: int, low: float | None = None, end: float | None = None) -> Cuts:
    """Equal halves of the attribute's whole axis, or of the part [low, end) of it."""
    return Cuts(
        bits=bits,
        low=attribute.start if low is None else low,
        end=attribute.end if end is None else end,
        log=isinstance(attribute, Number) and attribute.scale == "log",
        discrete=not isinstance(attribute, Number) or attribute.integer,
    )


def explicit_cuts(attribute: Attribute, at: npt.ArrayLike) -> Cuts:
    """Cuts at the given positions, 2**n - 1 of them in order."""
    positions = tuple(np.asarray(at, dtype=np.float64).tolist())
    equal = equal_cuts(attribute, 0)
    return Cuts((len(positions)).bit_length(), equal.low, equal.end, equal.log, equal.discrete, positions)
