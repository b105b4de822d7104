"""The claims of the stream, measured: a million events a minute keep up, and a proposal comes within seconds.

    python -m benchmarks.stream [scale]

A log of 1,000 subscriptions is written in bulk and read by one watch; then events come at the pace of the claim, a file
a second, and change their distribution: the time is taken from the file that closes the window after the change to the
proposal. Spark has started and kernels are compiled before the clock does.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from time import monotonic
from typing import Any

import numpy as np

from benchmarks.core import Row, row
from benchmarks.workload import Floats, Workload, schema, zipf
from plerion.eventlog.writer import LogWriter
from plerion.index.codec import to_json
from plerion.index.propose import regular
from plerion.pipeline.options import Options

A_MINUTE, SUBSCRIPTIONS = 1_000_000, 1_000
START, BITS = 1_700_000_040.0, 23  # a whole minute
PACED_WINDOW, PACED_SECONDS = 10.0, 45
MINUTES = 4
WIDTHS = (0.2, 0.6)


class Load:
    """Events around the workload's hotspots, as many as asked for, and a log to write them to."""

    def __init__(self, place: Path, seed: int) -> None:
        self.place = place
        self.load: Workload = zipf(SUBSCRIPTIONS, 200_000, seed, WIDTHS)
        self.sequence = 0
        self.writer = LogWriter(place / "log", schema(), "bench", synced=False)
        for at, box in enumerate(self.load.boxes):
            self.writer.append_subscription(START, f"q{at}", f"h{self.load.hotspot[at]}", box[None])
        (place / "index.json").write_bytes(to_json(regular(schema(), BITS)))

    def write(self, begin: float, seconds: float, events: int, moved: Floats | float = 0.0) -> None:
        """One file of events that are spread over these seconds, each `moved` along the axes."""
        rows = (self.sequence + np.arange(events)) % len(self.load.events)
        points = np.clip(self.load.events[rows] + moved, 0, 4095)
        times = START + begin + np.arange(events) * (seconds / events)
        self.writer.append_events(times, "p", self.sequence + np.arange(events), 0, points)
        self.writer.flush()
        self.sequence += events

    def options(self, **changes: Any) -> Options:
        return Options(self.place / "log", self.place / "index.json", self.place / "watch", **changes)


def watched(options: Options, stop: Event, once: bool) -> list[dict[str, Any]]:
    from plerion.pipeline.session import session  # noqa: PLC0415 - Spark loads slowly
    from plerion.pipeline.stream import watch  # noqa: PLC0415 - Spark loads slowly

    lines: list[dict[str, Any]] = []
    watch(session("local[2]").spark, options, stop, once, lines.append, print)
    return lines


def in_bulk(scale: float) -> list[Row]:
    """Events a second of a watch that finds some minutes' worth of them in the log."""
    with TemporaryDirectory() as folder:
        load = Load(Path(folder), 1)
        load.write(0, 30, 2_000)
        watched(load.options(threshold=1.0, drift=1.0), Event(), once=True)
        events = int(A_MINUTE * scale)
        for minute in range(1, MINUTES + 1):
            for part in range(4):
                load.write(60.0 * minute + 15 * part, 15, events // 4)
        began = monotonic()
        lines = watched(load.options(threshold=1.0, drift=1.0), Event(), once=True)
        took = monotonic() - began
    assert len(lines) == MINUTES
    return [row("stream, 1,000 subscriptions, in bulk", MINUTES * events / took, A_MINUTE / 60, "events/s")]


def at_pace(scale: float) -> list[Row]:
    """How long a proposal takes while events go on coming at the pace of the claim."""
    with TemporaryDirectory() as folder:
        load = Load(Path(folder), 2)
        options = load.options(window=PACED_WINDOW, threshold=1.0, lateness=1.0)
        load.write(0, 1, 2_000)
        watched(options, Event(), once=True)
        stop = Event()
        watching = Thread(target=watched, args=(options, stop, False))
        watching.start()
        closing, proposed = paced(load, max(200, int(A_MINUTE / 60 * scale)), Path(folder) / "watch")
        stop.set()
        watching.join()
    return [
        row("stream, from the end of a window to the proposal", proposed - closing, 10, "s", at_most=True),
    ]


def paced(load: Load, events: int, checkpoint: Path) -> tuple[float, float]:
    """Writes a file a second; when the log held what closes the changed window, and when the proposal was there."""
    pause, began, closing = Event(), monotonic(), 0.0
    changed = 3 * PACED_WINDOW + PACED_WINDOW  # after the reference
    for second in range(1, PACED_SECONDS + 60):
        load.write(second, 1.0, events, moved=700.0 if second >= changed else 0.0)
        if second == changed + PACED_WINDOW + 1:
            closing = monotonic()
        while monotonic() < began + second:
            if closing and list((checkpoint / "proposals").glob("*Z.json")):
                return closing, monotonic()
            pause.wait(0.02)
    told = sorted((checkpoint / "windows").glob("*/*.json"))
    raise AssertionError(f"no proposal came: {[json.loads(path.read_bytes())['verdict'] for path in told]}")


MEASUREMENTS: dict[str, Callable[[float], list[Row]]] = {
    "stream in bulk": in_bulk,
    "stream at pace": at_pace,
}

if __name__ == "__main__":
    for measure in MEASUREMENTS.values():
        for found in measure(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0):
            print(json.dumps(found))
