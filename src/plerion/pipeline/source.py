"""Files of events as a table of axis positions: CSV (`.csv`, `.csv.gz`) or Parquet, files or directories or a list.

The columns are those of `schemas.events`. A file is cut into parts by its size, so that the same files have the same
partitions everywhere; what cannot be cut (`.gz`, one large row group, lines within quotes) is one part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own documents use
from pyspark.sql.types import StructType

from plerion.content.errors import InputError, quoted
from plerion.content.schema import Attribute, Enumeration, Schema
from plerion.content.table import header
from plerion.pipeline import axes, schemas
from plerion.pipeline.axes import Axis, column
from plerion.pipeline.errors import said
from plerion.pipeline.session import scratch

Paths = str | Path | Iterable[str | Path]

_CSV = (".csv", ".csv.gz")
_NANOSECONDS = "spark.sql.legacy.parquet.nanosAsLong"


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """`events` as they stand in the files, and `counted`, a row an attribute: what was missing, clamped or unknown.

    `absent` names the attributes that no file has a column for.
    """

    events: DataFrame
    counted: DataFrame
    absent: tuple[str, ...]

    def spread(self, parts: int) -> DataFrame:
        """The events dealt out anew to so many partitions, for files that Spark cannot cut. The order is lost."""
        return self.events.repartition(parts)


def read_events(spark: SparkSession, paths: Paths, schema: Schema) -> Source:
    """The events of all files; an attribute without a column is missing in every event.

    Columns that are neither attributes nor `time` nor `publisher` are ignored; files without any attribute's column
    are refused.
    """
    listed = [str(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
    rows, nanoseconds = _rows(spark, listed)
    if not set(rows.columns) & set(schema.names):
        what = f"no column is named like an attribute; the columns are {_some(rows.columns)}"
        raise InputError(what, f"name columns {_some(schema.names)}", listed[0])
    try:
        return _source(rows, schema, nanoseconds)
    except InputError as error:
        raise InputError(error.what, error.fix, listed[0], error.row, error.column) from None


def _source(rows: DataFrame, schema: Schema, nanoseconds: bool) -> Source:
    kinds, read = rows.schema, []
    for attribute in schema.attributes:
        rows, axis = _axis(rows, attribute, kinds)
        read.append(axis)
    wanted = schemas.events(schema, schemas.TIME in kinds.names, schemas.PUBLISHER in kinds.names).names
    others = {
        schemas.TIME: lambda: axes.seconds(schemas.TIME, kinds[schemas.TIME].dataType, nanoseconds),
        schemas.PUBLISHER: lambda: column(schemas.PUBLISHER).cast("string"),
    }
    more = [others[name]().alias(name) for name in wanted[len(read) :]]
    rows, found = axes.staged(rows, read, more)
    positions = [axis.position.alias(axis.attribute.name) for axis in found]
    absent = tuple(name for name in schema.names if name not in kinds.names)
    return Source(rows.select(*positions, *wanted[len(read) :]), axes.counted(rows, found), absent)


def _axis(rows: DataFrame, attribute: Attribute, kinds: StructType) -> tuple[DataFrame, Axis]:
    if attribute.name not in kinds.names:
        return rows, axes.absent(attribute)
    kind = kinds[attribute.name].dataType
    if isinstance(attribute, Enumeration):
        return axes.enumerated(rows, attribute, kind)
    return rows, axes.number(attribute, kind)


def _rows(spark: SparkSession, paths: Sequence[str]) -> tuple[DataFrame, bool]:
    """The cells as they stand, and whether `time` is a whole number of nanoseconds."""
    if not paths:
        raise InputError("there are no files of events", "give at least one path")
    formats = {path.lower().endswith(_CSV) for path in paths}
    if len(formats) > 1:
        raise InputError("CSV and Parquet are both there", "give files of one format", paths[0])
    places = [_place(path) for path in paths]
    try:
        if formats == {True}:
            return _csv(spark, paths, places), False
        nanoseconds = any(_has_nanoseconds(path) for path in paths if _is_here(path))
        if nanoseconds:
            spark.conf.set(_NANOSECONDS, "true")
        merged = spark.read.option("mergeSchema", len(places) > 1)
        return merged.parquet(*places), nanoseconds
    except (PySparkException, Py4JError) as error:
        raise InputError(
            f"cannot be read: {said(error)}", "check the path and the format", paths[0]
        ) from None


def _csv(spark: SparkSession, paths: Sequence[str], places: Sequence[str]) -> DataFrame:
    """Cells as text. A file with quoted cells that span lines has to stay one part, so they are looked for first."""
    headers = {header(Path(path)) for path in paths if _is_here(path) and Path(path).is_file()}
    if len(headers) > 1:
        raise InputError("the files have different columns", "give files with the same first line", paths[0])
    cut = not all(path.endswith(".gz") for path in paths)
    if cut:
        lines = spark.read.text(list(places))
        quotes = F.length("value") - F.length(F.replace("value", F.lit('"'), F.lit("")))
        cut = lines.where(quotes % 2 == 1).isEmpty()
    read = spark.read.options(header=True, escape='"', multiLine=not cut, encoding="UTF-8")
    rows = read.csv(list(places))
    return rows.toDF(*(name.removeprefix("\ufeff") for name in rows.columns))


def _is_here(path: str) -> bool:
    return "://" not in path


def _place(path: str) -> str:
    """The path as Spark wants it: whole, and by a link when its name has what Spark takes for a pattern or a scheme."""
    if not _is_here(path):
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


def _has_nanoseconds(path: str) -> bool:
    """Whether `time` is in nanoseconds, which Spark knows only as whole numbers."""
    try:
        found = pyarrow.dataset.dataset(path, format="parquet").schema
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(f"cannot be read: {said(error)}", "check that the file is whole", path) from None
    if schemas.TIME not in found.names:
        return False
    kind = found.field(schemas.TIME).type
    return bool(pa.types.is_timestamp(kind)) and kind.unit == "ns"


def _some(names: Sequence[str]) -> str:
    return ", ".join(quoted(name) for name in names[:6]) + (", …" if len(names) > 6 else "")
