"""The events that a job works on: from files, or from an event log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own documents use

from plerion.content.errors import InputError
from plerion.content.schema import Schema
from plerion.eventlog.reader import LogReader, Skipped
from plerion.eventlog.records import Kind, attribute_columns
from plerion.pipeline.source import read_events


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """Events as axis positions, kept by Spark while the job lasts, and what was odd about them.

    `odd` has a row for each attribute with missing, clamped or unknown values; `skipped` are files that are no part
    of a log.
    """

    events: DataFrame
    odd: tuple[dict[str, object], ...]
    skipped: tuple[Skipped, ...] = ()


@contextmanager
def seen(spark: SparkSession, paths: Iterable[Path], log: Path | None, schema: Schema) -> Iterator[Seen]:
    """The events of the files or, if there is one, of the log."""
    found = _logged(spark, log, schema) if log is not None else _filed(spark, list(paths), schema)
    found.events.persist()
    try:
        yield found
    finally:
        found.events.unpersist()


def _filed(spark: SparkSession, paths: list[Path], schema: Schema) -> Seen:
    source = read_events(spark, paths, schema)
    rows = [row.asDict() for row in source.counted.collect()]
    odd = [row for row in rows if row["missing"] or row["clamped"] or row["unknown"]]
    return Seen(source.events, tuple(odd))


def _logged(spark: SparkSession, log: Path, schema: Schema) -> Seen:
    found = LogReader(log, schema).paths(Kind.EVENTS)
    if not found.good:
        raise InputError("the log has no events", "import some: `plerion log import`", str(log))
    rows = spark.read.parquet(*(f"file://{Path(path).absolute()}" for path in found.good))
    names = zip(attribute_columns(schema), schema.names, strict=True)
    return Seen(
        rows.select(*(F.col(f"`{held}`").alias(name) for held, name in names)), (), tuple(found.skipped)
    )
