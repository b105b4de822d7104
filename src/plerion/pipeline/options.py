"""What a watch is told and what it says at its end: values that can be made without Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from plerion.eventlog.records import MICROS
from plerion.learning.propose import Request

CLUSTERS = 64  # one number and not several: a proposal must not keep the stream waiting


@dataclass(frozen=True, slots=True)
class Options:
    """What to watch and when to ask. Times are in seconds; a new index has `bits`, or as many as the one in use."""

    log: Path
    index: Path
    checkpoint: Path
    subscriptions: Path | None = None
    proposals: Path | None = None
    window: float = 60.0
    lateness: float = 2.0
    threshold: float = 0.5
    drift: float = 0.2
    period: float | None = None
    margin: float = 0.05
    sample: int = 8192
    recent: int = 3
    bits: int | None = None
    request: Request = field(default_factory=lambda: Request(clusters=CLUSTERS))

    @property
    def length(self) -> int:
        """Of a window, in microseconds."""
        return max(1, round(self.window * MICROS))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What still waits when the watch ends: windows that are open, and what came too late or was left out for them."""

    open_windows: int
    late: int
    skipped: int
