"""Files by the names that Spark takes, and the parts that it can cut them into.

Spark cuts Parquet between row groups and CSV between lines; a compressed CSV file or one with line breaks within quotes
it does not cut at all. A million events in one row group would keep one core busy and leave the others idle. So where
the parts are few and large, events are dealt out anew, to a number of partitions that depends on the files alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own documents use

from plerion.content.errors import InputError
from plerion.pipeline.axes import column
from plerion.pipeline.errors import said
from plerion.pipeline.session import scratch

PART_ROWS = 100_000
_MOST_PARTS = 512
_LOOKED_INTO = 64  # files; more are many parts anyway
_ROW_BYTES, _COMPRESSED_ROW_BYTES = 40, 10  # of a line, at a guess


@dataclass(frozen=True, slots=True)
class Cut:
    """How many parts Spark can cut the files into, and about how many rows they have; 0 where that is not known."""

    parts: int = 1
    rows: int = 0


def dealt_out(events: DataFrame, cut: Cut) -> DataFrame:
    """The same events, in partitions of about `PART_ROWS` where the files have few large parts.

    Each partition is in the order of its rows' hashes: the order in which Spark brings them together would vary.
    """
    if cut.rows <= 2 * PART_ROWS * cut.parts:
        return events
    spread = events.repartition(min(_MOST_PARTS, -(-cut.rows // PART_ROWS)))
    return spread.sortWithinPartitions(F.xxhash64(*map(column, events.columns)), *map(column, events.columns))


def is_here(path: str) -> bool:
    """Whether the path is one of this machine's file system."""
    return "://" not in path


def place(path: str) -> str:
    """The path as Spark wants it: whole, and by a link when its name has what Spark takes for a pattern or a scheme."""
    if not is_here(path):
        return path
    if not Path(path).exists():
        raise InputError("cannot be read (No such file or directory)", "check the path", path)
    whole = Path(path).absolute()
    if not re.search(r"[:*?\[\]{}\\]", str(whole)):
        return f"file://{whole}"
    ending = "".join(end for end in whole.suffixes[-2:] if end.isascii() and end[1:].isalnum())
    link = Path(scratch()) / f"{sha256(str(whole).encode()).hexdigest()[:16]}{ending}"
    if not link.is_symlink():
        link.symlink_to(whole)
    return f"file://{link}"


def csv_cut(paths: Sequence[str], between_lines: bool) -> Cut:
    """Of text files, which Spark cuts between lines or not at all."""
    here = [Path(path) for path in paths if is_here(path)]
    if between_lines or len(here) < len(paths):
        return Cut()
    rows = (
        file.stat().st_size // (_COMPRESSED_ROW_BYTES if file.suffix == ".gz" else _ROW_BYTES)
        for file in here
    )
    return Cut(len(here), sum(rows))


def parquet_cut(datasets: Iterable[pyarrow.dataset.Dataset]) -> Cut:
    """Of Parquet files, which Spark cuts between row groups."""
    files = [file for found in datasets for file in found.get_fragments()]
    if len(files) > _LOOKED_INTO:
        return Cut()
    return Cut(max(1, sum(file.num_row_groups for file in files)), sum(file.count_rows() for file in files))


def parquet_datasets(paths: Sequence[str]) -> list[pyarrow.dataset.Dataset]:
    """The Parquet files and directories of this machine among the paths, looked at without reading events."""
    found = []
    for path in filter(is_here, paths):
        try:
            found.append(pyarrow.dataset.dataset(path, format="parquet"))
        except (OSError, ValueError, pa.ArrowException) as error:
            raise InputError(f"cannot be read: {said(error)}", "check that the file is whole", path) from None
    return found


def in_nanoseconds(datasets: Iterable[pyarrow.dataset.Dataset], name: str) -> bool:
    """Whether the column holds nanoseconds, which Spark knows only as whole numbers."""
    kinds = [found.schema.field(name).type for found in datasets if name in found.schema.names]
    return any(pa.types.is_timestamp(kind) and kind.unit == "ns" for kind in kinds)
