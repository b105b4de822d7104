"""What the stream remembers, and its one step: a batch of files in, lines about windows and proposals out.

A batch ends with one file, `records/<batch>`, that appears at one instant and holds all that is known after it and all
that it gave. Window files and proposals are copies of parts of it. So a batch that is run again after a crash either
has no record, and nothing that it did before can be seen; or it has one, and only the copies are made again, with the
same names and content.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock
from time import time_ns
from typing import Any

import msgspec
from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession

from plerion.eventlog.disk import write_whole
from plerion.eventlog.part import glanced
from plerion.eventlog.records import MICROS, Kind, LogError
from plerion.learning.drift import Comparison
from plerion.learning.propose import Request
from plerion.pipeline.errors import PipelineError, plainly
from plerion.pipeline.live import Live
from plerion.pipeline.options import Options, Outcome
from plerion.pipeline.proposals import considered, documents, rehearse
from plerion.pipeline.session import Shipped, shipped
from plerion.pipeline.steps.windows import Cut, Versions, local_path, rows_of, window_sums
from plerion.pipeline.windows import (
    Compared,
    Record,
    due,
    figures_of,
    from_comparison,
    line_of,
    taken,
    to_comparison,
)

LEARNING, FINE, LATER = "learning", "fine", "left to a later window"


class Watch:
    """The stream's memory and its one step, a batch of files. `tell` hears a line a window, `complain` a text."""

    def __init__(
        self, options: Options, tell: Callable[[dict[str, Any]], None], complain: Callable[[str], None]
    ) -> None:
        self.options = options
        self.failure: Exception | None = None
        self._tell, self._complain = tell, complain
        self._live = Live(
            options.log,
            options.index,
            options.subscriptions,
            options.length,
            options.request.budget,
            complain,
        )
        self._record = Record()
        self._sent: tuple[Versions, Shipped[Versions]] | None = None
        self._busy, self._ended = Lock(), False

    @property
    def request(self) -> Request:
        """What is asked for, with as many bits as the index in use unless told otherwise."""
        return replace(self.options.request, bits=self.options.bits or self._live.index.bits)

    def rehearse(self) -> None:
        rehearse(self._live.index.schema, self.request)

    def outcome(self) -> Outcome:
        return Outcome(len(self._record.tallies), self._record.late, self._record.skipped)

    def end(self) -> None:
        """Waits for the batch that is under way and lets no other begin."""
        with self._busy:
            self._ended = True

    def take(self, files: DataFrame, number: int) -> None:
        """Spark's batch: either all of it is done and will never be repeated, or nothing is and it raises."""
        with self._busy:
            if self._ended:
                raise PipelineError("the watch has ended")
            try:
                with plainly("the batch failed"):
                    self._take(files, number)
            except Exception as error:
                self.failure = error
                raise

    def _take(self, files: DataFrame, number: int) -> None:
        place = self._place(number)
        if place.exists():
            self._record = _read(place)
        else:
            if self._record.batch != number - 1:
                self._record = _read(self._place(number - 1)) if number else Record()
            self._record = self._judged(self._counted(files, self._record))
            write_whole(place, msgspec.msgpack.encode(self._record))
        self._publish(self._record)
        self._place(number - 2).unlink(missing_ok=True)

    def _place(self, number: int) -> Path:
        return self.options.checkpoint / "records" / f"{number:09}.msgpack"

    def _counted(self, files: DataFrame, record: Record) -> Record:
        """The record with the files' sums."""
        if self._live.refresh():
            record = msgspec.structs.replace(record, compared=Compared())
        options = self.options
        schema = self._live.index.schema
        cut = Cut(schema, options.length, record.first_open, options.recent, options.sample)
        names = [row.path for row in files.select("path").collect()]
        versions = self._live.versions(*_span([local_path(name) for name in names], options.length))
        sums = window_sums(files, cut, self._shipped(files.sparkSession, versions))
        return taken(record, rows_of(sums), cut, time_ns() // 1000)

    def _shipped(self, spark: SparkSession, versions: Versions) -> Shipped[Versions]:
        """Sent anew only when somebody began or ended to ask, or the index is another one."""
        if self._sent is None or [id(asked) for _, asked in self._sent[0]] != [id(a) for _, a in versions]:
            if self._sent is not None and isinstance(self._sent[1], Broadcast):
                self._sent[1].destroy()
            self._sent = versions, shipped(spark, versions)
        return self._sent[1]

    def _judged(self, record: Record) -> Record:
        """The record with the lines of the windows that are over, and the proposal that the last of them calls for."""
        options, asking = self.options, None
        comparison = to_comparison(record.compared, len(self._live.index.schema.names))
        for window in due(record, options.length, round(options.lateness * MICROS)):
            comparison, line = self._line(record, window, comparison)
            record.lines.append(line)
            if line["reason"]:
                asking = window, line
        if record.lines:
            record.lines[0] |= {"late": record.late, "skipped": record.skipped}
            record.late = record.skipped = 0
        record.compared = from_comparison(comparison)
        if asking is not None:
            self._propose(record, *asking)
        return record

    def _line(self, record: Record, window: int, comparison: Comparison) -> tuple[Comparison, dict[str, Any]]:
        """What is said of a window; its tally leaves the record."""
        options, schema, tally = self.options, self._live.index.schema, record.tallies.pop(window)
        line = line_of(tally, window, options.length)
        if line["source"] != record.source:  # pairs of logged deliveries and of the index cannot be compared
            record.source, comparison = line["source"], Comparison()
        learning = comparison.learning
        comparison, finding = comparison.step(figures_of(tally, len(schema.names)), options.drift)
        whose = None if finding.attribute is None else schema.names[finding.attribute]
        reason = f"{finding.changed}: {whose}" if finding.changed.startswith("drift") else finding.changed
        if line["rate"] > options.threshold:
            reason = f"rate over {options.threshold:g}"
        if not reason and self._period_over(record, window):
            reason = "period"
        line |= {
            "drift": finding.drift,
            "attribute": whose,
            "rise": finding.rise,
            "epoch": self._live.index.epoch,
        }
        verdict = LATER if reason else LEARNING if learning else FINE
        return comparison, line | {"late": 0, "skipped": 0, "reason": reason, "verdict": verdict}

    def _period_over(self, record: Record, window: int) -> bool:
        """Counted from the first window on, in the events' time."""
        if record.asked_at is None:
            record.asked_at = window
        period = self.options.period
        return period is not None and (window - record.asked_at) * self.options.window >= period

    def _propose(self, record: Record, window: int, line: dict[str, Any]) -> None:
        index, interests = self._live.index, self._live.interests(window)
        halves = record.sampled.halves(len(index.schema.names))
        found = considered(index, interests, halves, self.request, self.options.margin)
        record.asked_at = window
        line |= {"verdict": found.verdict, "current_rate": found.current_rate}
        line |= {"proposed_rate": found.proposed_rate}
        record.proposals = documents(line["window"], line["reason"], found, interests.interests)

    def _publish(self, record: Record) -> None:
        """Writes the copies of what the record holds; those that are there already stay as they are."""
        options = self.options
        folder = options.proposals or options.checkpoint / "proposals"
        for name, content in record.proposals.items():
            if not (folder / name).exists():
                write_whole(folder / name, content)
        for path, reason in record.left_out:
            self._complain(f"left out: {path}: {reason}")
        for line in record.lines:
            path = options.checkpoint / "windows" / line["window"][:8] / f"{line['window']}.json"
            if not path.exists():
                write_whole(path, msgspec.json.encode(line) + b"\n", synced=False)
                self._tell(line)


def _span(paths: list[Path], length: int) -> tuple[int, int]:
    """The first and last window that the files have records of, from their footers; (0, 0) when none can be read."""
    found = []
    for path in paths:
        with suppress(LogError, ValueError):
            part = glanced(path, Kind(path.parent.parent.name))
            found += [part.first // length, part.last // length]
    return (min(found), max(found)) if found else (0, 0)


def _read(path: Path) -> Record:
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=Record)
    except (OSError, msgspec.MsgspecError) as error:
        what = f"{path} cannot be read: {error}"
        raise PipelineError(what, "give another --checkpoint, which starts over") from None
