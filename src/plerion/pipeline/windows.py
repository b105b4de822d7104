"""The windows that are open, what closes them, and what is said of each: the stream's memory, without Spark.

Time is the events' own. The *watermark* is the latest time in the log; a window is closed when the watermark is a
given lateness past its end. A record that comes after that is *late*: it is counted, and nothing else. A time
in the future (a publisher's wrong clock) moves the watermark no further than the present, or all others would be late.

Everything that a batch of files changes is in one `Record`, which is written as a whole when the batch is done. A batch
that is run again after a crash finds its record and only repeats what follows from it (`stream`).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import numpy as np

from plerion.learning.drift import BINS, Comparison, Figures
from plerion.pipeline.steps.batches import Floats
from plerion.pipeline.steps.windows import Cut, Row

EVENTS, DELIVERIES = 5, 3  # sums in front of the histogram, and of logged deliveries


class Tally(msgspec.Struct):
    """The sums of one window: `events` and `deliveries` as `steps.windows` gives them, without the times, added up."""

    events: list[float]
    deliveries: list[float]


class Sampled(msgspec.Struct):
    """Recent events, those with the smallest keys; columns of equal length, positions as bytes of doubles."""

    windows: list[int] = []
    keys: list[float] = []
    judging: list[bool] = []
    points: bytes = b""

    def halves(self, attributes: int) -> tuple[Floats, Floats]:
        """The half to choose an index by, and the half to judge it by."""
        points = np.frombuffer(self.points).reshape(-1, attributes)
        judging = np.array(self.judging, bool)
        return points[~judging], points[judging]


class Compared(msgspec.Struct):
    """A `drift.Comparison` as it is kept: `figures` are those of the reference, the histogram last."""

    figures: list[float] = []
    windows: int = 0
    rise: float = 0.0


class Record(msgspec.Struct):
    """All that is known after a batch, and what the batch gave: a line a window that it closed, and proposals."""

    batch: int = -1
    latest: int = -(1 << 63)
    first_open: int = -(1 << 63)
    tallies: dict[int, Tally] = {}
    sampled: Sampled = msgspec.field(default_factory=Sampled)
    compared: Compared = msgspec.field(default_factory=Compared)
    source: str = ""
    asked_at: int | None = None
    late: int = 0
    skipped: int = 0
    lines: list[dict[str, Any]] = []
    proposals: dict[str, bytes] = {}
    left_out: list[tuple[str, str]] = []


def taken(record: Record, rows: Iterable[Row], cut: Cut, now: int) -> Record:
    """The record with the sums of another batch of files; no window is closed yet. `now` is in microseconds."""
    found = msgspec.structs.replace(record, batch=record.batch + 1, lines=[], proposals={}, left_out=[])
    found.tallies = dict(record.tallies)
    width = len(cut.schema.names)
    fresh: list[Floats] = []
    for what, window, path, reason, values in rows:
        match what:
            case "skipped":
                found.left_out.append((path, reason))
                found.skipped += 1
            case "late":
                found.late += int(values[0])
            case "sample":
                fresh.append(values.reshape(-1, 3 + width))
            case _:
                known = found.tallies.get(window) or Tally(
                    [0.0] * (EVENTS + width * BINS), [0.0] * DELIVERIES
                )
                found.tallies[window] = _with(known, what, values[1:])
                found.latest = max(found.latest, min(int(values[0]), now))
    found.sampled = _sample(record.sampled, fresh, cut)
    return found


def _with(known: Tally, what: str, values: Floats) -> Tally:
    added = (np.array(known.events if what == "events" else known.deliveries) + values).tolist()
    return Tally(added, known.deliveries) if what == "events" else Tally(known.events, added)


def _sample(known: Sampled, fresh: list[Floats], cut: Cut) -> Sampled:
    """The events of the latest windows with the smallest keys."""
    if not fresh:
        return known
    width = len(cut.schema.names)
    more = np.concatenate(fresh)
    windows = np.concatenate((known.windows, more[:, 0])).astype(np.int64)
    keys = np.concatenate((known.keys, more[:, 1]))
    judging = np.concatenate((known.judging, more[:, 2])).astype(bool)
    points = np.concatenate((np.frombuffer(known.points).reshape(-1, width), more[:, 3:]))
    some = np.flatnonzero(windows > windows.max() - cut.recent)
    some = some[np.argsort(keys[some], kind="stable")[: cut.sample]]
    return Sampled(
        windows[some].tolist(), keys[some].tolist(), judging[some].tolist(), points[some].tobytes()
    )


def due(record: Record, length: int, lateness: int) -> list[int]:
    """The windows that the watermark closes, in order; from now on what belongs to one of them is late."""
    record.first_open = max(record.first_open, (record.latest - lateness) // length)
    return sorted(window for window in record.tallies if window < record.first_open)


def line_of(tally: Tally, window: int, length: int) -> dict[str, Any]:
    """What is said of a window: the logged deliveries when there are any, or else what the index would do."""
    events, _, delivered, wanted, _ = tally.events[:EVENTS]
    logged = tally.deliveries[0] > 0
    if logged:
        delivered, wanted, _ = tally.deliveries
    return {
        "window": window_name(window, length),
        "seconds": length / 1e6,
        "events": events,
        "source": "deliveries" if logged else "index",
        "deliveries": delivered,
        "wanted": wanted,
        "false_positives": delivered - wanted,
        "rate": (delivered - wanted) / delivered if delivered else 0.0,
    }


def figures_of(tally: Tally, attributes: int) -> Figures:
    """The window as drift detection takes it."""
    events, squares, delivered, wanted, delivery_squares = tally.events[:EVENTS]
    if tally.deliveries[0] > 0:
        delivered, wanted, delivery_squares = tally.deliveries
    histogram = np.array(tally.events[EVENTS:]).reshape(attributes, BINS)
    return Figures(events, squares, histogram, delivered, delivered - wanted, delivery_squares)


def to_comparison(kept: Compared, attributes: int) -> Comparison:
    if not kept.figures:
        return Comparison()
    (events, squares, *rest), histogram = kept.figures[:5], kept.figures[5:]
    reference = Figures(events, squares, np.array(histogram).reshape(attributes, BINS), *rest)
    return Comparison(reference, kept.windows, kept.rise)


def from_comparison(found: Comparison) -> Compared:
    known = found.reference
    if known is None:
        return Compared()
    sums = [known.events, known.squares, known.deliveries, known.false_positives, known.delivery_squares]
    return Compared([*sums, *known.histogram.ravel().tolist()], found.windows, found.rise)


def window_name(window: int, length: int) -> str:
    """The start of a window, 20130401T000000Z, with a fraction where it has one: names sort as times do."""
    start = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=window * length)
    fraction = f".{start.microsecond:06}" if length % 1_000_000 else ""
    return f"{start:%Y%m%dT%H%M%S}{fraction}Z"
