"""One file of the log: what its name promises, what its footer says, and the table in it.

A file is `part-<writer>-<number>-<digest>.parquet` in a folder `hour=YYYYMMDDHH`. It can be told apart from everything
else in three steps, each a little dearer:

1. the *name*: it ends in the first half of a SHA-256 of the content;
2. the *footer*: format, version, kind, schema and time range, as key-values, and the columns;
3. the *content*: it has the digest that the name promises. A file that was cut, overwritten or has a flipped bit,
   wherever it is, has not.

Only what passed all three is ever given as records. The first two cost one short read and are what `glanced` checks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from plerion.content.errors import quoted
from plerion.content.schema import Schema
from plerion.eventlog.records import MICROS, Ints, Kind, LogError, columns

FORMAT: Final = "plerion-log"
VERSION: Final = 1
HOUR_MICROS: Final = 3600 * MICROS

_NAME: Final = re.compile(r"part-[A-Za-z0-9._-]+-\d{6,}-([0-9a-f]{32})\.parquet")
_HOUR: Final = re.compile(r"hour=(\d{4})(\d\d)(\d\d)(\d\d)")
_NO_PARQUET: Final = "torn or foreign: it is no Parquet file"


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A file of the log. Its rows have times from `first` to `last`, both included, in microseconds since 1970.

    `table` is there when all of it was read, not only its footer.
    """

    path: Path
    schema: Schema
    rows: int
    first: int
    last: int
    table: pa.Table | None = None


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()[:32]


def part_name(writer: str, number: int, content: bytes) -> str:
    """A name that no other content has; the same content from the same writer has it again."""
    return f"part-{writer}-{number:06}-{digest(content)}.parquet"


def hour_name(micro: int) -> str:
    """The folder of a time, `hour=2013040100`."""
    return "hour=" + re.sub("[-T]", "", str(np.datetime64(micro // HOUR_MICROS, "h")))


def hour_start(folder: str) -> int | None:
    """The first microsecond of the folder's hour, or None when the name is none of an hour."""
    match = _HOUR.fullmatch(folder)
    try:
        return match and int(np.datetime64("{}-{}-{}T{}".format(*match.groups()), "us").astype(np.int64))
    except ValueError:
        return None


def by_hour(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each hour with its folder's name, hours in order and the rows of one in the order they came."""
    hours: Ints = table["time"].cast(pa.int64()).to_numpy() // HOUR_MICROS
    if (hours[1:] < hours[:-1]).any():
        order = np.argsort(hours, kind="stable")
        table, hours = table.take(pa.array(order)), hours[order]
    starts = np.flatnonzero(np.diff(hours, prepend=hours[:1] - 1)).tolist()
    for start, end in zip(starts, [*starts[1:], len(hours)], strict=True):
        yield hour_name(int(hours[start]) * HOUR_MICROS), table.slice(start, end - start)


def encoded(table: pa.Table, kind: Kind, schema: Schema) -> bytes:
    """The content of a file. Equal tables give equal content with the same version of Arrow."""
    times = table["time"].cast(pa.int64()).to_numpy()
    said = {"format": FORMAT, "version": str(VERSION), "kind": kind.value, "schema": schema_json(schema)}
    said |= {"first": str(times.min()), "last": str(times.max())}
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink, table.schema, store_schema=False, write_statistics=["time"], write_page_checksum=True
    ) as file:
        file.write_table(table)
        file.add_key_value_metadata({f"plerion.{key}": value for key, value in said.items()})
    return bytes(sink.getvalue())


def glanced(path: Path, kind: Kind) -> Part:
    """The file by its name and footer; LogError says why it is none of the log's. Costs one short read."""
    _promised(path)
    with _as_refusals(), path.open("rb") as file:
        return _checked(pq.read_metadata(file), path, kind)


def opened(path: Path, kind: Kind) -> Part:
    """The file with its table, every bit as it was written; LogError says why it is not so."""
    promised = _promised(path)
    with _as_refusals():
        content = path.read_bytes()
        if digest(content) != promised:
            raise LogError("torn or altered: the content is not what the name promises")
        with pq.ParquetFile(pa.BufferReader(content)) as file:
            return replace(_checked(file.metadata, path, kind), table=file.read())


def _promised(path: Path) -> str:
    match = _NAME.fullmatch(path.name)
    if match is None:
        raise LogError("foreign: the log gives no file such a name")
    return match[1]


def _checked(metadata: Any, path: Path, kind: Kind) -> Part:
    said = {key.decode("utf-8", "replace"): value for key, value in (metadata.metadata or {}).items()}
    if said.get("plerion.format") != FORMAT.encode():
        raise LogError(f"foreign: the footer does not say {FORMAT}")
    version, held = (
        said.get(f"plerion.{key}", b"").decode("utf-8", "replace") for key in ("version", "kind")
    )
    if version != str(VERSION):
        raise LogError(f"version {quoted(version)}: this release reads version {VERSION}")
    if held != kind:
        raise LogError(f"holds {quoted(held)} where {kind} belong")
    schema = _schema(said.get("plerion.schema", b""))
    if not metadata.schema.to_arrow_schema().equals(columns(kind, schema)):
        raise LogError(f"the columns are not those of {kind} in version {VERSION}")
    first, last = (_whole(said.get(f"plerion.{key}", b"")) for key in ("first", "last"))
    start = hour_start(path.parent.name)
    if start is None or not start <= first <= last < start + HOUR_MICROS:
        raise LogError(f"the times are not those of {quoted(path.parent.name)}")
    return Part(path, schema, metadata.num_rows, first, last)


def _whole(text: bytes) -> int:
    try:
        return int(text)
    except ValueError:
        raise LogError("the footer has no first and last time") from None


@lru_cache(maxsize=64)
def schema_json(schema: Schema) -> str:
    return msgspec.json.encode(schema.to_document()).decode()


@lru_cache(maxsize=64)
def _schema(document: bytes) -> Schema:
    try:
        return Schema.from_document(msgspec.json.decode(document))
    except (ValueError, RecursionError) as error:  # of the document or of what it says
        raise LogError(f"the schema cannot be read: {error}") from None


@contextmanager
def _as_refusals() -> Iterator[None]:
    """What Arrow and the system say about a file that is none of the log's, in the log's words."""
    try:
        yield
    except LogError:
        raise
    except OSError as error:
        said = f"cannot be read ({error.strerror})" if error.strerror else _NO_PARQUET
        raise LogError(said) from None
    except (ValueError, pa.ArrowException):
        raise LogError(_NO_PARQUET) from None
