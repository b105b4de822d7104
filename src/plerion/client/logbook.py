"""What a session sends and receives, sampled into the event log that the pipeline learns from."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from plerion.client.reception import Arrived, Floats
from plerion.client.subscription import Subscription
from plerion.content.schema import Schema
from plerion.eventlog.writer import LogWriter

FLUSH_SECONDS: Final = 30.0


class Keeping(NamedTuple):
    """Where a session's log goes, which share of what happens it keeps, and how often files appear."""

    folder: str | Path
    rate: float = 1.0
    flush_seconds: float = FLUSH_SECONDS


class Logbook:
    """One writer for one session; files appear as often as is wanted while there is traffic, and at the end."""

    def __init__(self, kept: Keeping, schema: Schema, session: str) -> None:
        self._writer = LogWriter(kept.folder, schema, session, rate=kept.rate)
        self._flush_seconds = kept.flush_seconds
        self._flushed = time.monotonic()

    def sent(self, publisher: str, first: int, epoch: int, points: Floats, time_ns: int) -> None:
        """Events of one batch, numbered from `first`."""
        times, numbers = np.full(len(points), time_ns / 1e9), first + np.arange(len(points))
        self._writer.append_events(times, publisher, numbers, epoch, points)
        self._flush_in_time()

    def arrived(self, arrived: Arrived, host: str, names: list[str]) -> None:
        """A delivery a subscription that wanted the event, and one for nobody where none did."""
        event, column = np.nonzero(arrived.wanted)
        nobody = np.flatnonzero(~arrived.wanted.any(axis=1))
        rows = [*event.tolist(), *nobody.tolist()]
        if not rows:
            return
        self._writer.append_deliveries(
            np.full(len(rows), arrived.received_ns / 1e9),
            [*(names[at] for at in column.tolist()), *[None] * len(nobody)],
            host,
            [arrived.events[at].publisher for at in rows],
            [arrived.events[at].sequence for at in rows],
            [arrived.events[at].epoch for at in rows],
            np.arange(len(rows)) < len(event),
        )
        self._flush_in_time()

    def subscribed(self, made: Subscription, host: str, live: bool) -> None:
        """A subscription began or ended."""
        self._writer.append_subscription(time.time(), made.name, host, made.filter, live)

    def close(self) -> None:
        self._writer.close()

    def _flush_in_time(self) -> None:
        if time.monotonic() - self._flushed > self._flush_seconds:
            self._flushed = time.monotonic()
            self._writer.flush()
