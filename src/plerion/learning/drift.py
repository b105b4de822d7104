"""Whether the events, or what the index makes of them, are no longer what they were.

A stream is cut into windows. The first few make the *reference*; each later one is compared with it in two ways.

*Events.* For each attribute the total variation distance of two histograms, half the sum of |p - q|: 0 when they are
alike, 1 when they have nothing in common. Two samples of one distribution differ, too. With n and m events and
v = 1/n + 1/m their distance is on average at most half the sum of sqrt(q(1 - q)v) over the bins (Cauchy-Schwarz), and
exceeds its average by t with a probability of at most exp(-2t²/v) (McDiarmid). Only what lies above both counts as
distance, so a window of few events raises no alarm by chance: one in `1 / CHANCE` windows at most.

*Rate.* A one-sided cumulated sum (Page 1954): s = max(0, s + rate - reference rate - TOLERATED), an alarm when s
exceeds ALARM. A rise by 0.07 is found in three windows, one by 0.03 in eleven, one below TOLERATED never: it is not
worth a new index. What chance alone may add, the standard error of the rate, widens both bounds. It is taken over
events, not pairs, because the deliveries of one event are right or wrong together.

An alarm ends the comparison: the window that raised it is the first of the next reference. So a change is told once,
within a few windows, however long it lasts.

What would break it: events that come round in a cycle longer than the reference (the hours of a day) are told as drift,
which they are; a change that moves values only within their bins shows in the rate or not at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log, sqrt

import numpy as np
import numpy.typing as npt

from plerion.content.box import Box
from plerion.content.schema import MISSING, Schema
from plerion.index.content_index import Cluster
from plerion.index.cuts import equal_cuts, useful_bits
from plerion.index.dz import WHOLE
from plerion.index.encode import cell_plan, fill_cells

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

BIN_BITS = 5
BINS = (1 << BIN_BITS) + 1
"""Of each attribute: equal parts of its axis, on its scale, and the last one for events without a value."""

REFERENCE_WINDOWS = 3
FEWEST_EVENTS = 30  # of a window that says something
CHANCE = 1e-4
TOLERATED, ALARM = 0.02, 0.1


def bins(schema: Schema, points: Floats) -> Ints:
    """For each event and attribute the number of its bin."""
    found = np.empty(points.shape, np.int64)
    for a, attribute in enumerate(schema.attributes):
        cuts = equal_cuts(attribute, min(BIN_BITS, useful_bits(attribute)))
        place = np.zeros(len(points), np.int64)
        if cuts.bits:
            alone = Cluster(WHOLE, Box((-np.inf,), (np.inf,)), (0,) * cuts.bits, (cuts,))
            fill_cells(cell_plan(alone), 0, np.ascontiguousarray(points[:, a]), place)
        found[:, a] = np.where(points[:, a] == MISSING, BINS - 1, place)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Figures:
    """What a window says. They add up: those of two windows are the sums.

    `events` and `squares` are the sums of the events' weights and of their squares, `histogram` (attributes, BINS) the
    weights by bin. `deliveries` and `delivery_squares` are the sums over events of the deliveries of each, and of their
    squares.
    """

    events: float
    squares: float
    histogram: Floats
    deliveries: float = 0.0
    false_positives: float = 0.0
    delivery_squares: float = 0.0

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            self.events + other.events,
            self.squares + other.squares,
            self.histogram + other.histogram,
            self.deliveries + other.deliveries,
            self.false_positives + other.false_positives,
            self.delivery_squares + other.delivery_squares,
        )

    @property
    def size(self) -> float:
        """How many events of equal weight would say as much."""
        return self.events**2 / self.squares if self.squares else 0.0

    @property
    def rate(self) -> float:
        return self.false_positives / self.deliveries if self.deliveries else 0.0

    @property
    def rate_error(self) -> float:
        """The square of the rate's standard error; infinite without deliveries."""
        if not self.deliveries:
            return float("inf")
        share = max(self.rate * (1 - self.rate), 1 / max(4.0, self.size))  # a rate of 0 is not certain either
        return share * self.delivery_squares / self.deliveries**2


@dataclass(frozen=True, slots=True)
class Finding:
    """`drift` is the greatest distance of an attribute that chance does not explain, `attribute` whose it is.

    `rise` is the cumulated sum of the rate; `changed` says in words what is no longer as it was, '' if nothing.
    """

    drift: float = 0.0
    attribute: int | None = None
    rise: float = 0.0
    changed: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """The reference so far, of how many windows it is, and the cumulated sum since."""

    reference: Figures | None = None
    windows: int = 0
    rise: float = 0.0

    @property
    def learning(self) -> bool:
        return self.windows < REFERENCE_WINDOWS

    def step(self, window: Figures, limit: float) -> tuple[Comparison, Finding]:
        """The comparison after a window, and what it found; `limit` is the drift of an attribute that is too much."""
        if window.size < FEWEST_EVENTS:
            return self, Finding(rise=self.rise)
        if self.reference is None or self.learning:
            known = window if self.reference is None else self.reference + window
            return Comparison(known, self.windows + 1), Finding()
        distances = unexplained(self.reference, window)
        worst = int(np.argmax(distances))
        drift = float(distances[worst])
        rise, alarm = self._risen(self.reference, window)
        changed = ["drift"] if drift > limit else []
        changed += ["rise of the rate"] if rise > alarm else []
        finding = Finding(drift, worst if drift else None, rise, " and ".join(changed))
        return (Comparison(window, 1) if changed else replace(self, rise=rise)), finding

    def _risen(self, reference: Figures, window: Figures) -> tuple[float, float]:
        """The cumulated sum and the bound above which it is an alarm."""
        error = sqrt(window.rate_error + reference.rate_error)
        if not np.isfinite(error):
            return self.rise, float("inf")
        rise = self.rise + window.rate - reference.rate - TOLERATED - 2 * error
        return max(0.0, rise), ALARM + 3 * error


def unexplained(one: Figures, other: Figures) -> Floats:
    """For each attribute the distance of the two histograms that lies above what chance explains."""
    p, q = one.histogram / one.events, other.histogram / other.events
    pooled = (one.histogram + other.histogram) / (one.events + other.events)
    spread = 1 / one.size + 1 / other.size
    average = np.sqrt(pooled * (1 - pooled) * spread).sum(axis=1) / 2
    by_chance = average + sqrt(log(len(p) / CHANCE) * spread / 2)
    return np.asarray(np.maximum(0.0, np.abs(p - q).sum(axis=1) / 2 - by_chance))
