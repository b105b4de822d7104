"""Gives a log back: whatever is whole, of this format, version, kind and schema. The rest is named, never fatal.

Many processes write to a log for months; one file that a full disk cut off, or that somebody put there, must not cost
the others. So every answer comes with what it left out, and why.

Times are seconds since 1970; a range is `since <= time < until`, and None is unbounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from plerion.content.read import Interests
from plerion.content.schema import Schema
from plerion.eventlog.part import HOUR_MICROS, Part, glanced, hour_start, opened
from plerion.eventlog.records import EventRecords, Kind, LogError, columns, micros
from plerion.eventlog.standing import Standing

_ALWAYS: Final = (-(1 << 63), (1 << 63) - 1)  # in microseconds, first and end


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something in the log's directory that is left out, and why."""

    path: Path
    reason: str


class Paths(NamedTuple):
    """Files to read, by hour, and what to leave alone."""

    good: tuple[Path, ...]
    skipped: tuple[Skipped, ...]


class Reading(NamedTuple):
    """The rows of all good files, by hour, as an Arrow table."""

    table: pa.Table
    skipped: tuple[Skipped, ...]


class EventReading(NamedTuple):
    """The events of all good files, by hour."""

    events: EventRecords
    skipped: tuple[Skipped, ...]


class LiveSubscriptions(NamedTuple):
    """Who asked for what at some time."""

    interests: Interests
    skipped: tuple[Skipped, ...]


class LogReader:
    """Reads the log in a directory, for one schema: the given one, or else that of the latest file in it.

    A directory that is not there, or has no file of the log in it, is an empty log.
    """

    def __init__(self, log: str | Path, schema: Schema | None = None) -> None:
        self.log = Path(log)
        self._schema = schema

    @property
    def schema(self) -> Schema | None:
        """The schema whose records are given back; None when none was given and there is no file to ask."""
        if self._schema is None:
            self._schema = self._latest_schema()
        return self._schema

    def parts(
        self, kind: Kind, since: float | None = None, until: float | None = None, whole: bool = False
    ) -> Iterator[Part | Skipped]:
        """The files with times in the range, by hour, from their footers.

        `whole` reads each of them, checks every bit and gives its rows in the range; one is in memory at a time.
        """
        return self._parts(kind, _micro(since, _ALWAYS[0]), _micro(until, _ALWAYS[1]), whole)

    def paths(
        self, kind: Kind, since: float | None = None, until: float | None = None, whole: bool = False
    ) -> Paths:
        """The same as two lists: the files that Spark may be given, and the others."""
        good: list[Path] = []
        skipped: list[Skipped] = []
        for part in self.parts(kind, since, until, whole):
            good.append(part.path) if isinstance(part, Part) else skipped.append(part)
        return Paths(tuple(good), tuple(skipped))

    def read(self, kind: Kind, since: float | None = None, until: float | None = None) -> Reading:
        """All rows in the range at once; `parts` with `whole` is for a log that is larger than memory."""
        tables: list[pa.Table] = [columns(kind, self._known_schema).empty_table()]
        skipped: list[Skipped] = []
        for part in self.parts(kind, since, until, whole=True):
            tables.append(part.table) if isinstance(part, Part) else skipped.append(part)
        return Reading(pa.concat_tables(tables), tuple(skipped))

    def events(self, since: float | None = None, until: float | None = None) -> EventReading:
        """The logged events in the range as arrays."""
        table, skipped = self.read(Kind.EVENTS, since, until)
        return EventReading(EventRecords.of(table, self._known_schema), skipped)

    def subscriptions_at(self, time: float) -> LiveSubscriptions:
        """The subscriptions that were live at a time: those whose last record up to and with it says so.

        Of records of one time the last in the order of the files counts. One whose filter cannot be read is skipped.
        """
        standing = Standing(self._known_schema)
        skipped: list[Skipped] = []
        for part in self._parts(Kind.SUBSCRIPTIONS, _ALWAYS[0], int(micros(time)[0]) + 1, whole=True):
            standing.take(part.path, part.table) if isinstance(part, Part) else skipped.append(part)
        interests, refused = standing.interests()
        return LiveSubscriptions(interests, (*skipped, *(Skipped(*refusal) for refusal in refused)))

    def _latest_schema(self) -> Schema | None:
        for kind in Kind:
            for folder in reversed(_visible(self.log / kind)):
                for path in reversed(_visible(folder)):
                    with suppress(LogError):
                        return opened(path, kind).schema
        return None

    @property
    def _known_schema(self) -> Schema:
        if self.schema is None:
            raise LogError(f"{self.log} holds no log", "give its schema, or a directory that was written to")
        return self.schema

    def _parts(self, kind: Kind, first: int, end: int, whole: bool) -> Iterator[Part | Skipped]:
        for found in self._entries(kind, first, end):
            part = found if isinstance(found, Skipped) else self._examined(found, kind, whole)
            if isinstance(part, Skipped):
                yield part
            elif part.first < end and part.last >= first:
                yield _within(part, first, end)

    def _entries(self, kind: Kind, first: int, end: int) -> Iterator[Path | Skipped]:
        """What lies in the folders of these hours, by hour and name; a name with a dot or '_' first is hidden."""
        for folder in _visible(self.log / kind):
            start = hour_start(folder.name)
            if start is None or not folder.is_dir():
                yield Skipped(folder, "foreign: it is no hour of the log")
            elif start < end and start + HOUR_MICROS > first:
                yield from _visible(folder)

    def _examined(self, path: Path, kind: Kind, whole: bool) -> Part | Skipped:
        try:
            part = opened(path, kind) if whole else glanced(path, kind)
        except LogError as error:
            return Skipped(path, error.summary)
        return part if part.schema == self.schema else Skipped(path, "it has another schema")


def _visible(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith((".", "_")))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _micro(time: float | None, unbounded: int) -> int:
    return unbounded if time is None else int(micros(time)[0])


def _within(part: Part, first: int, end: int) -> Part:
    if part.table is None or (first <= part.first and part.last < end):
        return part
    times = part.table["time"].cast(pa.int64())
    return replace(
        part, table=part.table.filter(pc.and_(pc.greater_equal(times, first), pc.less(times, end)))
    )
