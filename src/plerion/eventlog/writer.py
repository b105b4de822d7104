"""Adds records to a log: columns in, whole files out.

Records wait in memory until there are enough for a file worth reading, or until `flush`. Then each hour's records
become one file, which appears under its name at one instant: a reader, or a kill, at any moment finds whole files only.
What was still waiting when the process died is gone; a log is a sample of what happened, not a journal.

A file that could not be written (the disk is full) keeps its records and its name waiting, so the next `flush` goes on
where the last one stopped and writes nothing twice.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from plerion.content.errors import quoted
from plerion.content.filter import Filter
from plerion.content.schema import Schema
from plerion.eventlog.disk import write_whole
from plerion.eventlog.part import by_hour, encoded, part_name
from plerion.eventlog.records import (
    TIME,
    Floats,
    Ints,
    Kind,
    LogError,
    Texts,
    boxes_to_json,
    columns,
    micros,
    positions_in,
    texts_in,
    wholes_in,
)
from plerion.eventlog.sampling import checked_rate, kept

MAX_ROWS: Final = 1 << 18
MAX_BYTES: Final = 64 << 20
_SMALL: Final = 1024  # appended pieces that are joined into one: a row alone takes kilobytes of bookkeeping
_WRITER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class LogWriter:
    """Appends to the log in a directory, for one schema; used by one task at a time.

    `writer` names the files, so processes that share a log take different ones. `rate` is the share of events, and of
    their deliveries, that is kept: whether one is depends only on its publisher and sequence number, and those that
    are kept have the weight 1 / rate. Files are written when `max_rows` or `max_bytes` are waiting in one kind.
    """

    def __init__(
        self,
        log: str | Path,
        schema: Schema,
        writer: str,
        *,
        rate: float = 1.0,
        max_rows: int = MAX_ROWS,
        max_bytes: int = MAX_BYTES,
        synced: bool = True,
    ) -> None:
        if not _WRITER.fullmatch(writer):
            raise LogError(
                f"a writer named {quoted(writer)}", "use 1 to 64 letters, digits, '.', '_' and '-'"
            )
        self.log = Path(log)
        self.schema = schema
        self.writer = writer
        self.rate = checked_rate(rate)
        self.files = 0
        self._limits = max_rows, max_bytes
        self._synced = synced
        self._waiting = {kind: _Waiting() for kind in Kind}
        self._parts: deque[_Part] = deque()
        self._columns = {kind: columns(kind, schema) for kind in Kind}

    def append_events(
        self,
        times: npt.ArrayLike,
        publishers: Texts,
        sequences: npt.ArrayLike,
        epoch: npt.ArrayLike,
        points: npt.ArrayLike,
    ) -> int:
        """Adds events: a point (a row of axis positions) and a sequence number each; how many the sample kept.

        `times` are seconds since 1970. Publisher and epoch may be one for all. All is checked before any is added.
        """
        stamps, senders, numbers, chosen = self._identified(times, publishers, sequences)
        positions = positions_in(np.asarray(points, np.float64), self.schema)
        if len(positions[0]) != len(stamps):
            raise LogError(f"{len(positions[0])} points at {len(stamps)} times", "give a point a time")
        weights = np.full(len(stamps), 1 / self.rate)
        identity = [senders, numbers, wholes_in(epoch, len(stamps))]
        return self._add(Kind.EVENTS, [stamps, *identity, weights, *positions], chosen)

    def append_deliveries(
        self,
        times: npt.ArrayLike,
        subscriptions: Texts,
        hosts: Texts,
        publishers: Texts,
        sequences: npt.ArrayLike,
        epoch: npt.ArrayLike,
        wanted: npt.ArrayLike,
    ) -> int:
        """Adds deliveries of events to hosts; how many the sample kept: those of the events that it keeps.

        A subscription of None is a delivery for which nobody at the host asked. Hosts, publishers and so on may be one
        for all.
        """
        stamps, senders, numbers, chosen = self._identified(times, publishers, sequences)
        rows = len(stamps)
        who = [texts_in(subscriptions, rows, "subscription"), texts_in(hosts, rows, "host")]
        asked = np.ascontiguousarray(np.broadcast_to(np.asarray(wanted, bool), rows))
        identity = [senders, numbers, wholes_in(epoch, rows)]
        return self._add(
            Kind.DELIVERIES, [stamps, *who, *identity, asked, np.full(rows, 1 / self.rate)], chosen
        )

    def append_subscription(
        self, time: float, id: str, host: str, filter: Filter | str | Floats | None, live: bool = True
    ) -> None:
        """Adds that a subscription began, or with `live=False` that it ended. These are never sampled.

        The filter is its text or its boxes (m, attributes, 2); only one that ended may leave it out.
        """
        if filter is None and live:
            raise LogError(f"subscription {quoted(id)} has no filter", "give its text or its boxes")
        text = filter.text if isinstance(filter, Filter) else filter if isinstance(filter, str) else None
        boxes = boxes_to_json(filter, self.schema) if isinstance(filter, np.ndarray) else None
        who = [texts_in([name], 1, what) for name, what in ((id, "id"), (host, "host"))]
        cells = [*who, [text], [boxes], [live]]
        self._add(Kind.SUBSCRIPTIONS, [micros(time), *cells], np.ones(1, bool))

    def flush(self) -> None:
        """Returns when everything that was added is in files. An OSError leaves the rest waiting for the next one."""
        for kind in Kind:
            self._cut(kind)
        self._write()

    def close(self) -> None:
        self.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _identified(
        self, times: npt.ArrayLike, publishers: Texts, sequences: npt.ArrayLike
    ) -> tuple[Ints, pa.Array, Ints, npt.NDArray[np.bool_]]:
        stamps = micros(times)
        senders, numbers = texts_in(publishers, len(stamps), "publisher"), wholes_in(sequences, len(stamps))
        return stamps, senders, numbers, kept(senders, numbers, self.rate)

    def _add(self, kind: Kind, cells: Sequence[object], chosen: npt.NDArray[np.bool_]) -> int:
        stamps = pa.array(cells[0], pa.int64()).cast(TIME)
        batch = pa.record_batch([stamps, *cells[1:]], schema=self._columns[kind])
        if not chosen.all():
            batch = batch.filter(pa.array(chosen))
        if batch.num_rows:
            waiting = self._waiting[kind]
            waiting.add(batch)
            if waiting.rows >= self._limits[0] or waiting.bytes >= self._limits[1]:
                self._cut(kind)
                self._write()
        return int(batch.num_rows)

    def _cut(self, kind: Kind) -> None:
        """Turns what waits into parts, each with its hour and number, which it keeps until it is written."""
        waiting, self._waiting[kind] = self._waiting[kind], _Waiting()
        if waiting.rows:
            for hour, table in by_hour(pa.Table.from_batches(waiting.large + waiting.small)):
                self._parts.append(_Part(kind, hour, self.files + len(self._parts), table))

    def _write(self) -> None:
        while self._parts:
            kind, hour, number, table = self._parts[0]
            content = encoded(table, kind, self.schema)
            path = self.log / kind / hour / part_name(self.writer, number, content)
            write_whole(path, content, self._synced)
            self._parts.popleft()
            self.files += 1


class _Part(NamedTuple):
    kind: Kind
    hour: str
    number: int
    table: pa.Table


class _Waiting:
    """Batches of one kind in the order in which they came."""

    def __init__(self) -> None:
        self.large: list[pa.RecordBatch] = []
        self.small: list[pa.RecordBatch] = []
        self.rows = self.bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.small.append(batch)
        self.rows += batch.num_rows
        self.bytes += batch.nbytes
        if len(self.small) >= _SMALL:
            joined = pa.Table.from_batches(self.small).combine_chunks()
            self.large += joined.to_batches()
            self.small = []
