"""A file of events, chunk by chunk: millions of rows pass through the memory of a few thousand.

`content.read` refuses a file at its first value outside of its attribute's range, which is right for an index that is
to be trusted with every event. A log is a record of what came: there such a value is moved to the border of the range
and counted. What is no value at all (a text that is not listed, a fraction of a whole number) is still refused, with
file, row and column; nearly always the schema is wrong then.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from plerion.content.errors import EventError, InputError, quoted
from plerion.content.schema import MISSING, Attribute, Enumeration, Number, Schema
from plerion.content.table import ABSENT, Kind, Table, header, read_table
from plerion.eventlog.records import END_SECOND, FIRST_SECOND, MICROS, Floats, Ints

CHUNK_ROWS: Final = 1 << 16
_CHUNK_BYTES: Final = 4 << 20  # of text; a row is at most as long
_TIMES: Final = (  # what a text can be; Arrow wants to know beforehand whether there is a zone, and how many digits
    pa.float64(),
    *(pa.timestamp(unit, zone) for unit in ("us", "ns") for zone in ("UTC", None)),
)


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Some rows of a file, the first of them being row `first`; counts are by attribute.

    A publisher is null where the file names none; `publishers` and `times` are None where it has none at all.
    """

    first: int
    points: Floats
    times: Floats | None
    publishers: pa.Array | None
    missing: Ints
    clamped: Ints


class EventSource:
    """The events of a CSV, .csv.gz or Parquet file under a schema."""

    def __init__(self, path: Path, schema: Schema) -> None:
        self.path = path
        self.schema = schema
        names = header(path)
        self.absent = tuple(name for name in schema.names if name not in names)
        if len(self.absent) == len(schema.names):
            what = f"no column is named like an attribute of the schema, such as {quoted(schema.names[0])}"
            raise InputError(what, "rename columns, or give the schema of this file", str(path))
        self._kinds: dict[str, Kind] = {name: "text" for name in ("publisher", "time") if name in names}
        for attribute in schema.attributes:
            if attribute.name in names:
                self._kinds[attribute.name] = "number" if isinstance(attribute, Number) else "text"
        listed = {attribute.name for attribute in schema.attributes if isinstance(attribute, Enumeration)}
        self.has_times = "time" in names and "time" not in listed
        self._has_publishers = self._kinds.get("publisher") == "text"

    def chunks(self, timed: bool) -> Iterator[Chunk]:
        """All rows in their order, with the file's times if `timed`; InputError at the first that is no event."""
        first = 0
        for batch in self._batches():
            cells = {name: pa.chunked_array([batch.column(name)]) for name in self._kinds}
            with self._located(first):
                chunk = self._chunk(Table(self.path, cells, batch.num_rows), first, timed)
            yield chunk
            first += batch.num_rows

    def _chunk(self, table: Table, first: int, timed: bool) -> Chunk:
        count = len(self.schema.attributes)
        points = np.full((table.rows, count), MISSING)
        missing, clamped = np.full(count, table.rows), np.zeros(count, np.int64)
        for at, attribute in enumerate(self.schema.attributes):
            if attribute.name in table.columns:
                values = _values(table, attribute)
                absent = np.isnan(values)
                held = np.clip(values, attribute.start, _top(attribute))
                points[:, at] = np.where(absent, MISSING, held)
                missing[at] = np.count_nonzero(absent)
                clamped[at] = np.count_nonzero(held != values) - missing[at]
        publishers = _publishers(table) if self._has_publishers else None
        return Chunk(first, points, _times(table) if timed else None, publishers, missing, clamped)

    def _batches(self) -> Iterator[Any]:
        opened = self._parquet if self.path.name.lower().endswith((".parquet", ".pq")) else self._csv
        with self._explained():
            yield from opened()

    def _parquet(self) -> Iterator[Any]:
        with pq.ParquetFile(self.path, pre_buffer=False) as file:
            yield from file.iter_batches(CHUNK_ROWS, columns=list(self._kinds))

    def _csv(self) -> Iterator[Any]:
        types = {
            name: pa.float64() if kind == "number" else pa.string() for name, kind in self._kinds.items()
        }
        with (
            pa.input_stream(str(self.path), compression="detect") as stream,
            arrow_csv.open_csv(
                stream,
                arrow_csv.ReadOptions(block_size=_CHUNK_BYTES),
                arrow_csv.ParseOptions(newlines_in_values=True),
                arrow_csv.ConvertOptions(
                    include_columns=list(types), column_types=types, null_values=list(ABSENT)
                ),
            ) as reader,
        ):
            yield from reader

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Arrow does not say which cell it choked on; a file that is wrong is read again to find the place."""
        try:
            yield
        except InputError:
            raise
        except (OSError, EOFError, ValueError, pa.ArrowException) as error:
            read_table(self.path, self._kinds)
            said = (str(error).splitlines() or [type(error).__name__])[0][:200]
            raise InputError(
                f"cannot be read: {said}", "check that the file is whole", str(self.path)
            ) from None

    @contextmanager
    def _located(self, first: int) -> Iterator[None]:
        """Rows are counted from the beginning of the file."""
        try:
            yield
        except InputError as error:
            row = None if error.row is None else first + error.row
            raise Table(self.path, {}, 0).error(error.what, error.fix, row, error.column) from None


def _top(attribute: Attribute) -> float:
    """The highest position that a value can have."""
    return attribute.high if isinstance(attribute, Number) else attribute.end - 1


def _values(table: Table, attribute: Attribute) -> Floats:
    """Ranks or numbers, NaN where a cell is empty; numbers may lie outside of the attribute's range."""
    if isinstance(attribute, Enumeration):
        return table.ranks(attribute.name, attribute.values)
    values = table.numbers(attribute.name)
    if attribute.integer:
        fractions = (values != np.floor(values)) & (values >= attribute.low) & (values <= attribute.high)
        if fractions.any():
            row = int(np.argmax(fractions))
            try:
                attribute.axis(float(values[row]))
            except EventError as error:
                raise table.error(error.what, error.fix, row, attribute.name) from None
    return values


def _publishers(table: Table) -> pa.Array:
    try:
        cells = table.columns["publisher"].cast(pa.string()).combine_chunks()
    except pa.ArrowException:
        raise table.error("holds no text", "store names in this column", column="publisher") from None
    return pc.if_else(pc.equal(cells, ""), None, cells)


def _times(table: Table) -> Floats:
    """Seconds since 1970, from numbers or dates (in UTC unless they say otherwise); every row must have one."""
    cells = table.columns["time"]
    if any(
        check(cells.type) for check in (pa.types.is_string, pa.types.is_large_string, pa.types.is_dictionary)
    ):
        absent = pc.is_in(cells.cast(pa.string()), value_set=pa.array(ABSENT))
        found = _parsed(pc.if_else(absent, None, cells.cast(pa.string())))
    else:
        found = table.seconds("time")
    fine = (found >= FIRST_SECOND) & (found < END_SECOND)
    if not fine.all():
        row = int(np.argmin(fine))
        what = f"{quoted(cells[row].as_py())} is no time from the year 1 to 9999"
        raise table.error(
            what, "write seconds since 1970, or a time such as 2018-04-26T14:48:09Z", row, "time"
        )
    return found


def _parsed(cells: pa.ChunkedArray) -> Floats:
    """Texts as seconds, NaN where one is no time; where forms are mixed, runs of one form are looked for."""
    for form in _TIMES:
        with suppress(pa.ArrowException):
            return _seconds(cells.cast(form))
    if len(cells) == 1:
        return np.full(1, np.nan)
    half = len(cells) // 2
    return np.concatenate([_parsed(cells.slice(0, half)), _parsed(cells.slice(half))])


def _seconds(cells: pa.ChunkedArray) -> Floats:
    if pa.types.is_timestamp(cells.type):
        micros = cells.cast(pa.timestamp("us", cells.type.tz), safe=False).cast(pa.int64())
        return np.asarray(micros.cast(pa.float64()).to_numpy()) / MICROS
    return np.asarray(cells.to_numpy(), dtype=np.float64)
