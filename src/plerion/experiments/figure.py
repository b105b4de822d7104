"""A figure of a paper as data: what it shows, what has to be computed for it, and whether its claim holds here.

A figure is a list of *points*, small values that each name one piece of work; a pure function from a point to *rows*,
the dots of the plot; and a *verdict* on all rows. Points travel to where there is a free core, rows come back, and
nothing else is shared, so a figure is the same however many machines drew it.

Rates are judged on events that nothing was chosen by. Means are over seeds, each with a workload of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

BITS = 23  # what an IPv4 multicast address has room for
EVENTS = 100_000
OURS = "boundary (ours)"
FEWEST_EVENTS, FEWEST_SUBSCRIPTIONS = 400, 20

CLEAR = 0.02  # a rate is clearly lower that is lower by this share

Holds: TypeAlias = Literal["holds", "holds in part", "does not hold"]


@dataclass(frozen=True, slots=True)
class Point:
    """One piece of work of a figure: a workload by name, a line, a number along the axis (0 for all), and a seed."""

    figure: str
    panel: str = ""
    line: str = ""
    at: int = 0
    seed: int = 1
    scale: float = 1.0
    directory: str = ""

    def events(self, count: int = EVENTS) -> int:
        return max(FEWEST_EVENTS, round(self.scale * count))

    def subscriptions(self, count: int) -> int:
        return max(FEWEST_SUBSCRIPTIONS, round(self.scale * count))


@dataclass(frozen=True, slots=True)
class Row:
    """One dot of a plot: the line that it belongs to, and where it is."""

    panel: str
    line: str
    x: float
    y: float
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a claim holds here, and the numbers that say so."""

    holds: Holds
    because: str


@dataclass(frozen=True, slots=True)
class Figure:
    """What is drawn and claimed. `together` is false where points would disturb each other, as clocks do.

    `starts` are the points of one seed, without scale; `reversed_x` draws the axis from many to few; `files` of the
    directory of real data are read. `rates` says that y is a share; `lab` that points are measured on real switches
    here, one after the other, and need root; `emulated` that they are played on the timeline emulator, without Spark.
    """

    name: str
    title: str
    x: str
    y: str
    claim: str
    settings: str
    starts: tuple[Point, ...]
    rows: Callable[[Point], list[Row]]
    verdict: Callable[[Sequence[Row]], Verdict]
    log: Literal["", "x", "y", "xy"] = ""
    reversed_x: bool = False
    together: bool = True
    files: tuple[str, ...] = ()
    rates: bool = True
    lab: bool = False
    emulated: bool = False

    @property
    def here(self) -> bool:
        """Whether this process computes the points itself."""
        return self.lab or self.emulated


Curve: TypeAlias = Mapping[float, float]


def curve(rows: Iterable[Row], line: str, panel: str | None = None) -> Curve:
    """The mean over seeds of a line, by x in order; of one panel, or of the only one."""
    found: dict[float, list[float]] = {}
    for row in rows:
        if row.line == line and panel in (None, row.panel):
            found.setdefault(row.x, []).append(row.y)
    return {x: sum(ys) / len(ys) for x, ys in sorted(found.items())}


def lines(rows: Iterable[Row]) -> list[str]:
    """The names of the lines, ours last, the others by the number that they start with, then by name."""

    def place(line: str) -> tuple[bool, int, str]:
        number = re.match(r"[\d,]+", line)
        return is_ours(line), int(number[0].replace(",", "")) if number else 0, line

    return sorted({row.line for row in rows}, key=place)


def is_ours(line: str) -> bool:
    return "(ours)" in line


def panels(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(row.panel for row in rows))


def saved(lower: float, higher: float) -> float:
    """By which share the first is lower than the second; negative where it is higher."""
    return 1 - lower / higher if higher else 0.0


def savings(lower: Curve, higher: Curve) -> list[float]:
    """The share saved wherever both lines have a dot."""
    return [saved(lower[x], higher[x]) for x in lower if x in higher]


def graded(good: Iterable[bool], because: str) -> Verdict:
    """Holds when all parts of the claim do, in part when some do."""
    parts = list(good)
    holds: Holds = "holds" if all(parts) else "holds in part" if any(parts) else "does not hold"
    return Verdict(holds, because)


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"
