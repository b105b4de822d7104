"""The false-positive rate as hosts see it, from what their sessions report with each sign of life.

A report counts from the beginning of its session, so what happened between two of them is their difference. Reports
are as old as a third of a lease.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

from plerion.controller.lease import Session
from plerion.wire.control import Report

KEPT_SECONDS = 3_600.0


@dataclass(frozen=True, slots=True)
class Seen:
    """Events that reached sessions, and those among them that no filter there matched."""

    received: int = 0
    false_positives: int = 0
    doubles: int = 0

    @property
    def rate(self) -> float | None:
        """The share of false positives; None when nothing was received."""
        return self.false_positives / self.received if self.received else None

    def __add__(self, other: Seen) -> Seen:
        return Seen(
            self.received + other.received,
            self.false_positives + other.false_positives,
            self.doubles + other.doubles,
        )


class Measured:
    """What was seen when; at most an entry a tick with news in the last hour."""

    def __init__(self) -> None:
        self._last: dict[Session, Report] = {}
        self._seen: deque[tuple[float, Seen]] = deque()

    def note(self, reports: Mapping[Session, Report], now: float) -> None:
        """Takes what is news in the latest report of each session."""
        news = Seen()
        for session, report in reports.items():
            before = self._last.get(session, Report())
            if report is before:
                continue
            news += Seen(
                max(0, report.received - before.received),
                max(0, report.false_positives - before.false_positives),
                max(0, report.doubles - before.doubles),
            )
        self._last = dict(reports)
        if news != Seen():
            self._seen.append((now, news))
        while self._seen and self._seen[0][0] < now - KEPT_SECONDS:
            self._seen.popleft()

    def between(self, begin: float, end: float) -> Seen:
        """What was reported from `begin` on and before `end`."""
        return sum((seen for at, seen in self._seen if begin <= at < end), Seen())


def is_worse(before: Seen, after: Seen, margin: float, fewest: int) -> bool:
    """Whether the rate rose by more than the margin, and by more than chance explains (three standard errors)."""
    if min(before.received, after.received) < fewest or before.rate is None or after.rate is None:
        return False
    both = before + after
    share = (both.rate or 0.0) * (1 - (both.rate or 0.0))
    chance = 3 * sqrt(share * (1 / before.received + 1 / after.received))
    return after.rate - before.rate > max(margin * before.rate, chance)
