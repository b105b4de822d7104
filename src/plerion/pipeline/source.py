"""Files of events as a table of axis positions: CSV (`.csv`, `.csv.gz`) or Parquet, files or directories or a list.

The columns are those of `schemas.events`. The same files have the same partitions everywhere (`files`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

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
from plerion.pipeline.files import (
    Cut,
    csv_cut,
    dealt_out,
    in_nanoseconds,
    is_here,
    parquet_cut,
    parquet_datasets,
    place,
)

Paths = str | Path | Iterable[str | Path]

_CSV = (".csv", ".csv.gz")
_NANOSECONDS = "spark.sql.legacy.parquet.nanosAsLong"


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """`events` as the files have them, and `counted`, a row an attribute: what was missing, clamped or unknown.

    `absent` names the attributes that no file has a column for.
    """

    events: DataFrame
    counted: DataFrame
    absent: tuple[str, ...]


def read_events(spark: SparkSession, paths: Paths, schema: Schema) -> Source:
    """The events of all files; an attribute without a column is missing in every event.

    Columns that are neither attributes nor `time` nor `publisher` are ignored; files without any attribute's column
    are refused.
    """
    listed = [str(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
    rows, cut, nanoseconds = _rows(spark, listed)
    if not set(rows.columns) & set(schema.names):
        what = f"no column is named like an attribute; the columns are {_some(rows.columns)}"
        raise InputError(what, f"name columns {_some(schema.names)}", listed[0])
    try:
        found = _source(rows, schema, nanoseconds)
    except InputError as error:
        raise InputError(error.what, error.fix, listed[0], error.row, error.column) from None
    return replace(found, events=dealt_out(found.events, cut))


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


def _rows(spark: SparkSession, paths: Sequence[str]) -> tuple[DataFrame, Cut, bool]:
    """The cells as they stand, how they are cut, and whether `time` is a whole number of nanoseconds."""
    if not paths:
        raise InputError("there are no files of events", "give at least one path")
    formats = {path.lower().endswith(_CSV) for path in paths}
    if len(formats) > 1:
        raise InputError("CSV and Parquet are both there", "give files of one format", paths[0])
    places = [place(path) for path in paths]
    try:
        return _csv(spark, paths, places) if formats == {True} else _parquet(spark, paths, places)
    except (PySparkException, Py4JError) as error:
        raise InputError(
            f"cannot be read: {said(error)}", "check the path and the format", paths[0]
        ) from None


def _parquet(spark: SparkSession, paths: Sequence[str], places: Sequence[str]) -> tuple[DataFrame, Cut, bool]:
    found = parquet_datasets(paths)
    nanoseconds = in_nanoseconds(found, schemas.TIME)
    if nanoseconds:
        spark.conf.set(_NANOSECONDS, "true")
    cut = parquet_cut(found) if len(found) == len(paths) else Cut()
    return spark.read.option("mergeSchema", len(places) > 1).parquet(*places), cut, nanoseconds


def _csv(spark: SparkSession, paths: Sequence[str], places: Sequence[str]) -> tuple[DataFrame, Cut, bool]:
    """Cells as text. A file with quoted cells that span lines has to stay one part, so they are looked for first."""
    headers = {header(Path(path)) for path in paths if is_here(path) and Path(path).is_file()}
    if len(headers) > 1:
        raise InputError("the files have different columns", "give files with the same first line", paths[0])
    whole = all(path.endswith(".gz") for path in paths)
    if not whole:
        quotes = F.length("value") - F.length(F.replace("value", F.lit('"'), F.lit("")))
        whole = not spark.read.text(list(places)).where(quotes % 2 == 1).isEmpty()
    read = spark.read.options(header=True, escape='"', multiLine=whole, encoding="UTF-8")
    rows = read.csv(list(places))
    named = rows.toDF(*(name.removeprefix("\ufeff") for name in rows.columns))
    return named, csv_cut(paths, not whole), False


def _some(names: Sequence[str]) -> str:
    return ", ".join(quoted(name) for name in names[:6]) + (", …" if len(names) > 6 else "")
