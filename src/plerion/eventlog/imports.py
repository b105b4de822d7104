"""Files of events and subscriptions become part of a log, each of them once.

Importing is long, can fail at the last row and can be killed, and whoever repeats it must not get every event twice.
So a file is known by its content. Its parts are written aside, under `_importing`, and moved into the log when all of
them are there; then a receipt says that they are. A file whose receipt is there, with all its parts, is not imported
again. Parts without a receipt are what is left of an import that was killed while it moved them, and go before the
next attempt. An import that fails leaves nothing of its files behind.

Sequence numbers are the row's number, and go on from one imported file to the next, so that a publisher and a number
name one event in the whole log.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from plerion.content.errors import quoted
from plerion.content.read import Interests, read_interests
from plerion.content.schema import Schema
from plerion.eventlog.reader import LogReader
from plerion.eventlog.receipts import Receipt, alone, digest_of, keep, parts_of, receipts, writer_of
from plerion.eventlog.records import Floats, Ints, Kind, LogError
from plerion.eventlog.source import Chunk, EventSource
from plerion.eventlog.writer import LogWriter

STAGING = "_importing"


@dataclass(frozen=True, slots=True)
class Options:
    """How events become records.

    `publisher` sent those of which the file does not say who did. `rate` is the share to keep. With `start`, or
    in a file without times, rows are one second apart, from `start` or 1970 on.
    """

    publisher: str = "import"
    rate: float = 1.0
    start: float | None = None


class Outcome(NamedTuple):
    """What became of a file, and whether that was `already` so before."""

    receipt: Receipt
    already: bool


class Imported(NamedTuple):
    """What became of the files of one import."""

    events: Outcome
    subscriptions: Outcome | None


def import_files(
    log: Path,
    schema: Schema,
    events: Path,
    subscriptions: Path | None = None,
    options: Options = Options(),
    progress: Callable[[int], None] | None = None,
) -> Imported:
    """Brings events, and subscriptions live from the first of them on, into the log; all of it or nothing.

    Memory is bounded, whatever the size of the file. `progress` hears how many rows have been read.
    """
    source = EventSource(events, schema)
    interests = None if subscriptions is None else read_interests(subscriptions, schema)
    with alone(log):
        _check_schema(log, schema)
        shutil.rmtree(log / STAGING, ignore_errors=True)
        try:
            sent, asked = _events(log, source, options, progress), None
            if subscriptions is not None and interests is not None:
                begin = sent.receipt.first if sent.receipt.first is not None else options.start or 0.0
                asked = _subscriptions(log, schema, subscriptions, interests, begin)
            _publish(log, [outcome.receipt for outcome in (sent, asked) if outcome and not outcome.already])
        finally:
            shutil.rmtree(log / STAGING, ignore_errors=True)
    return Imported(sent, asked)


def _check_schema(log: Path, schema: Schema) -> None:
    held = LogReader(log).schema
    if held is not None and held != schema:
        fix = "import under the schema that the log was begun with, or into another directory"
        raise LogError(f"{log} holds records of another schema", fix)


def _events(
    log: Path, source: EventSource, options: Options, progress: Callable[[int], None] | None
) -> Outcome:
    digest = digest_of(source.path)
    known = _known(log, Kind.EVENTS, digest)
    said: dict[str, str | float | None] = {"publisher": options.publisher, "sample": options.rate}
    said["start"] = options.start
    if known is not None and len(parts_of(log, Kind.EVENTS, digest)) == known.files:
        if known.options != said:
            listed = ", ".join(f"{name} {value}" for name, value in known.options.items())
            fix = "repeat them, which changes nothing, or import into another directory"
            raise LogError(f"{source.path} was imported already with other options: {listed}", fix)
        return Outcome(known, already=True)
    _discard(log, Kind.EVENTS, digest)
    ends = [receipt.first_sequence + receipt.rows for receipt in receipts(log) if receipt.kind == Kind.EVENTS]
    first = known.first_sequence if known else max(ends, default=0)
    tally = _Tally(source)
    with LogWriter(
        log / STAGING, source.schema, writer_of(digest), rate=options.rate, synced=False
    ) as writer:
        for chunk in source.chunks(timed=source.has_times and options.start is None):
            tally.take(chunk, _append(writer, chunk, options, first))
            if progress is not None:
                progress(tally.rows)
    return Outcome(tally.receipt(digest, said, first, writer.files), already=False)


def _append(writer: LogWriter, chunk: Chunk, options: Options, first: int) -> tuple[Floats, int]:
    """The times of a chunk's rows, and how many of them the sample kept."""
    numbers = chunk.first + np.arange(len(chunk.points))
    times = np.add(numbers, options.start or 0.0, dtype=np.float64) if chunk.times is None else chunk.times
    publishers = options.publisher
    if chunk.publishers is not None:
        publishers = pc.fill_null(chunk.publishers, options.publisher)
    return times, writer.append_events(times, publishers, first + numbers, 0, chunk.points)


class _Tally:
    """Counts what passes by."""

    def __init__(self, source: EventSource) -> None:
        self.source = source
        self.rows = self.kept = 0
        self.first, self.last = np.inf, -np.inf
        self.missing = np.zeros(len(source.schema.attributes), np.int64)
        self.clamped = np.zeros_like(self.missing)

    def take(self, chunk: Chunk, appended: tuple[Floats, int]) -> None:
        times, kept = appended
        self.rows += len(times)
        self.kept += kept
        self.first = min(self.first, times.min(initial=np.inf))
        self.last = max(self.last, times.max(initial=-np.inf))
        self.missing += chunk.missing
        self.clamped += chunk.clamped

    def receipt(
        self, digest: str, options: dict[str, str | float | None], first_sequence: int, files: int
    ) -> Receipt:
        return Receipt(
            kind=Kind.EVENTS,
            source=self.source.path.name,
            digest=digest,
            options=options,
            rows=self.rows,
            kept=self.kept,
            files=files,
            first_sequence=first_sequence,
            first=float(self.first) if self.rows else None,
            last=float(self.last) if self.rows else None,
            missing=self._by_name(self.missing),
            clamped=self._by_name(self.clamped),
            absent=list(self.source.absent),
        )

    def _by_name(self, counts: Ints) -> dict[str, int]:
        names = self.source.schema.names
        return {name: count for name, count in zip(names, counts.tolist(), strict=True) if count}


def _subscriptions(log: Path, schema: Schema, path: Path, interests: Interests, begin: float) -> Outcome:
    """Live from `begin` on; a file that is there already, but only from a later time on, is moved to this one."""
    digest = digest_of(path)
    known = _known(log, Kind.SUBSCRIPTIONS, digest)
    there = known is not None and len(parts_of(log, Kind.SUBSCRIPTIONS, digest)) == known.files
    if known is not None and there and known.first is not None and known.first <= begin:
        return Outcome(known, already=True)
    _discard(log, Kind.SUBSCRIPTIONS, digest)
    live = set(LogReader(log, schema).subscriptions_at(begin).interests.ids)
    for row, id in enumerate(interests.ids):
        if id in live:
            what = f"{path}: row {row}: subscription {quoted(id)} is already live in the log"
            raise LogError(what, "give it an id of its own, or import into another directory")
    with LogWriter(log / STAGING, schema, writer_of(digest), synced=False) as writer:
        for row, (id, host) in enumerate(zip(interests.ids, interests.hosts, strict=True)):
            boxes = interests.bounds[interests.offsets[row] : interests.offsets[row + 1]]
            writer.append_subscription(begin, id, host, interests.texts[row] if interests.texts else boxes)
    rows = len(interests.ids)
    receipt = Receipt(
        kind=Kind.SUBSCRIPTIONS,
        source=path.name,
        digest=digest,
        options={},
        rows=rows,
        kept=rows,
        files=writer.files,
        first=begin,
        last=begin,
    )
    return Outcome(receipt, already=False)


def _known(log: Path, kind: Kind, digest: str) -> Receipt | None:
    return next((r for r in receipts(log) if r.kind == kind and r.digest == digest), None)


def _discard(log: Path, kind: Kind, digest: str) -> None:
    for path in parts_of(log, kind, digest):
        path.unlink(missing_ok=True)
        with suppress(OSError):  # other parts are there
            path.parent.rmdir()


def _publish(log: Path, fresh: list[Receipt]) -> None:
    """Moves what was written aside into the log, all or nothing, and then keeps the receipts.

    They come last, when all of it would survive a power cut.
    """
    staging = log / STAGING
    os.sync()
    try:
        for part in sorted(staging.glob("*/hour=*/part-*")):
            target = log / part.relative_to(staging)
            target.parent.mkdir(parents=True, exist_ok=True)
            part.replace(target)
        os.sync()
        for receipt in fresh:
            keep(log, receipt)
    except BaseException:
        for receipt in fresh:
            _discard(log, receipt.kind, receipt.digest)
        raise
