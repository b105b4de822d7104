"""Columns of a CSV or Parquet file, converted to what the schema needs or refused at file, row and column.

Arrow reads whole columns and is fast, but does not say which cell it choked on. So a file is read at full
speed first, and only a file that is wrong is read again, slowly, to find the first place where it is.

Rows count from 0 after the header, as everywhere. A text file's error also names the line, found by reading
the file again: quoted cells may span lines and blank lines are skipped, so it does not follow from the row.
"""

import csv
import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.dataset
from numpy.typing import NDArray

from plerion.content.errors import InputError, quoted, suggestion

Kind: TypeAlias = Literal["number", "text", "time"]

# How an empty cell is spelled. A text attribute that declares one of these as a value has it as a value.
ABSENT: Final = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-NaN", "-nan", "NULL", "null")


# What reading a file that is not what its name says can end in. Only some of them are a ValueError.
_UNREADABLE: Final = (OSError, EOFError, ValueError, csv.Error, zlib.error, pa.ArrowException)


@dataclass(frozen=True, slots=True)
class Table:
    """Some columns of a file. Every method returns one value a row or raises InputError with its place."""

    path: Path
    columns: Mapping[str, Any]
    rows: int

    def numbers(self, column: str) -> NDArray[np.float64]:
        """The column as doubles, NaN where a cell is empty."""
        cells = self.columns[column]
        kind = cells.type
        numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
        if not any(check(kind) for check in numeric):
            raise self.error(f"holds {kind}", "store numbers in this column", column=column)
        return np.asarray(cells.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)

    def texts(self, column: str) -> list[str]:
        """The column as text, '' where a cell is empty."""
        return ["" if cell is None else cell for cell in self._strings(column).to_pylist()]

    def ranks(self, column: str, values: Sequence[str]) -> NDArray[np.float64]:
        """The place of each cell among the values, NaN where a cell is empty."""
        cells = self._strings(column)
        found = pc.index_in(cells, value_set=pa.array(values, pa.string()))
        absent = pc.or_(pc.is_null(cells), pc.is_in(cells, value_set=pa.array(ABSENT)))
        stray = pc.and_(pc.is_null(found), pc.invert(absent))
        if pc.any(stray).as_py():
            row = pc.index(stray, True).as_py()
            cell = cells[row].as_py()
            what = f"{quoted(cell)} is not one of the {len(values)} values"
            raise self.error(what, suggestion(cell, values), row, column)
        return np.asarray(found.cast(pa.float64()).to_numpy(), dtype=np.float64)

    def seconds(self, column: str) -> NDArray[np.float64]:
        """The column as seconds (since 1970 where it holds dates), NaN where a cell is empty."""
        cells = self.columns[column]
        if pa.types.is_date(cells.type) or pa.types.is_timestamp(cells.type):
            micros = cells.cast(pa.timestamp("us", getattr(cells.type, "tz", None)), safe=False)
            return np.asarray(micros.cast(pa.int64()).cast(pa.float64(), safe=False).to_numpy()) / 1e6
        if pa.types.is_string(cells.type):
            fix = "write numbers of seconds or times such as 2018-04-26T14:48:09Z"
            raise self.error("some cells are no times", fix, column=column)
        return self.numbers(column)

    def error(self, what: str, fix: str, row: int | None = None, column: str | None = None) -> InputError:
        """The error with this file's name and, in a text file, the line of the row."""
        line = None
        if row is not None and not _is_parquet(self.path):
            # The row says where it is too, and the file may be one that Arrow can read and `csv` cannot.
            with suppress(*_UNREADABLE):
                line = next((line for at, line, _ in _records(self.path) if at == row), None)
        return InputError(what, fix, str(self.path), row, column, line)

    def _strings(self, column: str) -> Any:
        cells = self.columns[column]
        try:
            return cells.cast(pa.string())
        except pa.ArrowException:
            raise self.error(f"holds {cells.type}", "store text in this column", column=column) from None


def header(path: Path) -> tuple[str, ...]:
    """The names of the file's columns; a name that is there twice is refused."""
    try:
        if _is_parquet(path):
            names = tuple(pyarrow.dataset.dataset(path, format="parquet").schema.names)
        else:
            names = next((tuple(cells) for _, _, cells in _records(path, -1)), ())
    except InputError:
        raise
    except _UNREADABLE as error:
        raise _unreadable(path, error) from None
    if not names:
        raise InputError("the file is empty", "start it with a line of column names", str(path))
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"two columns are named {quoted(name)}", "rename one", str(path))
        seen.add(name)
    return names


def read_table(path: Path, kinds: Mapping[str, Kind]) -> Table:
    """The named columns of the file, which must have them."""
    try:
        if _is_parquet(path):
            table = pyarrow.dataset.dataset(path, format="parquet").to_table(columns=list(kinds))
        else:
            table = _read_csv(path, kinds)
    except _UNREADABLE as error:
        raise (_first_fault(path, kinds) or _unreadable(path, error)) from None
    return Table(path, {name: table.column(name) for name in kinds}, table.num_rows)


def _is_parquet(path: Path) -> bool:
    name = path.name.lower()
    if name.endswith((".parquet", ".pq")):
        return True
    if name.endswith((".csv", ".csv.gz")):
        return False
    raise InputError("the name does not tell the format", "name it .csv, .csv.gz or .parquet", str(path))


def _read_csv(path: Path, kinds: Mapping[str, Kind]) -> Any:
    types = {"number": pa.float64(), "text": pa.string()}
    convert = arrow_csv.ConvertOptions(
        include_columns=list(kinds),
        column_types={name: types[kind] for name, kind in kinds.items() if kind != "time"},
        null_values=list(ABSENT),
    )
    parse = arrow_csv.ParseOptions(newlines_in_values=True)
    with pa.input_stream(str(path), compression="detect") as stream:
        return arrow_csv.read_csv(stream, parse_options=parse, convert_options=convert)


def _records(path: Path, first: int = 0) -> Iterator[tuple[int, int, list[str]]]:
    """(row, line, cells) of a text file, the header being row -1; blank lines do not count."""
    opener: Any = gzip.open if path.name.lower().endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
        lines = csv.reader(text)
        row, line = -1, 1
        for cells in lines:
            if cells and row >= first:
                yield row, line, cells
            row += bool(cells)
            line = lines.line_num + 1


def _first_fault(path: Path, kinds: Mapping[str, Kind]) -> InputError | None:
    """The first place at which a text file is no table of these kinds, or None if something else is wrong."""
    if path.is_dir() or not path.exists() or _is_parquet(path):
        return None
    try:
        names = header(path)
        places = {name: at for at, name in enumerate(names) if kinds.get(name) == "number"}
        for row, line, cells in _records(path):
            if len(cells) != len(names):
                what = f"{len(cells)} cells under {len(names)} columns"
                return InputError(what, "add or remove commas, or quote the cell", str(path), row, None, line)
            for name, at in places.items():
                if not _is_number(cells[at]):
                    fix = "write a number, or nothing for a missing value"
                    return InputError(f"{quoted(cells[at])} is not a number", fix, str(path), row, name, line)
            if any("\udc80" <= letter <= "\udcff" for cell in cells for letter in cell):
                return InputError("the text is not UTF-8", "save it as UTF-8", str(path), row, None, line)
    except _UNREADABLE:
        return None
    return None


def _is_number(cell: str) -> bool:
    cell = cell.strip(" \t")
    if cell in ABSENT:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _unreadable(path: Path, error: Exception) -> InputError:
    if isinstance(error, OSError) and error.strerror:
        return InputError(f"cannot be read ({error.strerror})", "check the path", str(path))
    said = (str(error).splitlines() or [type(error).__name__])[0]
    return InputError(f"cannot be read: {said[:200]}", "check that the file is whole", str(path))
