"""The records of the log: three kinds, each a table of a fixed form.

A position on an attribute's axis is a double, and MISSING is null, so that other programs count it as what it is. The
column of an attribute is its place and its name, `x1_temperature`: an attribute may be called `time` or `hour`, as a
column or a folder of the log is, and two may differ in case only, which Spark does not see.

Times are seconds since 1970 in memory and whole microseconds in the file, the finest that Parquet and Spark share: a
time on a whole microsecond comes back equal (until the year 2106; past it a double has no room for them).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from plerion.content.errors import ContentError, SchemaError
from plerion.content.schema import MISSING, Schema

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Texts: TypeAlias = "str | Sequence[str | None] | pa.Array"  # one for all rows, or one a row

TIME: Final = pa.timestamp("us", "UTC")
MICROS: Final = 1_000_000
FIRST_SECOND: Final = -62_135_596_800  # the year 1
END_SECOND: Final = 253_402_300_800  # the year 10000, which has no name of four digits


class LogError(ContentError):
    """Something cannot be kept in the log, or a directory cannot be one: `what`, and how to `fix` it."""


class Kind(StrEnum):
    """What a record tells of, and the name of the folder that it lies in."""

    EVENTS = "events"
    DELIVERIES = "deliveries"
    SUBSCRIPTIONS = "subscriptions"


_IDENTITY: Final = [("publisher", pa.string()), ("sequence", pa.int64()), ("epoch", pa.int64())]
_FORMS: Final[Mapping[Kind, Sequence[tuple[str, Any]]]] = {
    Kind.EVENTS: [("time", TIME), *_IDENTITY, ("weight", pa.float64())],
    Kind.DELIVERIES: [
        ("time", TIME),
        ("subscription", pa.string()),
        ("host", pa.string()),
        *_IDENTITY,
        ("wanted", pa.bool_()),
        ("weight", pa.float64()),
    ],
    Kind.SUBSCRIPTIONS: [
        ("time", TIME),
        ("id", pa.string()),
        ("host", pa.string()),
        ("filter", pa.string()),
        ("boxes", pa.string()),
        ("live", pa.bool_()),
    ],
}
_NULLABLE: Final = {"subscription", "filter", "boxes"}


def attribute_columns(schema: Schema) -> tuple[str, ...]:
    """The column of each attribute, in schema order: names of letters, digits and '_' that differ without case."""
    return tuple(f"x{at}_{re.sub(r'[^A-Za-z0-9_]', '_', name)}" for at, name in enumerate(schema.names))


def columns(kind: Kind, schema: Schema) -> pa.Schema:
    """The names and types of a kind's columns in this version of the format."""
    fields = [pa.field(name, type, name in _NULLABLE) for name, type in _FORMS[kind]]
    if kind == Kind.EVENTS:
        fields += [pa.field(name, pa.float64()) for name in attribute_columns(schema)]
    return pa.schema(fields)


@dataclass(frozen=True, slots=True, eq=False)
class EventRecords:
    """Logged events column-wise; each stands for `weights` events that were sent, itself among them."""

    times: Floats
    publishers: tuple[str, ...]
    sequences: Ints
    epochs: Ints
    weights: Floats
    points: Floats

    @classmethod
    def of(cls, table: pa.Table, schema: Schema) -> EventRecords:
        points = np.empty((table.num_rows, len(schema.attributes)))
        for at, name in enumerate(attribute_columns(schema)):
            points[:, at] = table[name].fill_null(MISSING).to_numpy()
        return cls(
            seconds(table["time"]),
            tuple(table["publisher"].to_pylist()),
            table["sequence"].to_numpy(),
            table["epoch"].to_numpy(),
            table["weight"].to_numpy(),
            points,
        )


def micros(times: npt.ArrayLike) -> Ints:
    """Seconds as whole microseconds, the nearest; what is no time from the year 1 to 9999 raises LogError."""
    given = np.atleast_1d(np.asarray(times, np.float64))
    fine = (given >= FIRST_SECOND) & (given < END_SECOND)
    if not fine.all():
        at = int(np.argmin(fine))
        what = f"record {at}: {given[at]} is no time from the year 1 to 9999"
        raise LogError(what, "give seconds since 1970-01-01T00:00:00Z")
    # The last microseconds of 9999 are further apart as doubles than one, and must not become the year 10000.
    return np.minimum(np.rint(given * MICROS).astype(np.int64), END_SECOND * MICROS - 1)


def seconds(cells: Any) -> Floats:
    """A time column as seconds since 1970."""
    return np.asarray(cells.cast(pa.int64()).to_numpy(), dtype=np.int64) / MICROS


def positions_in(points: npt.ArrayLike, schema: Schema) -> list[pa.Array]:
    """A column an attribute, null where a position is MISSING or NaN; +inf is no position."""
    given = np.atleast_2d(np.asarray(points, np.float64))
    if given.ndim != 2 or given.shape[1] != len(schema.attributes):
        what = f"points of shape {given.shape} in a space of {len(schema.attributes)} attributes"
        raise LogError(what, "give a row an event and a position an attribute")
    if np.isposinf(given).any():
        raise LogError("a position is infinite", "give MISSING (-inf) for a missing value")
    return [pa.array(column, mask=~np.isfinite(column)) for column in np.ascontiguousarray(given.T)]


def texts_in(given: Texts, rows: int, what: str) -> pa.Array:
    """One text a row; a single one stands for all rows. Without one only a row that `what` allows to have none."""
    cells = pa.repeat(given, rows) if isinstance(given, str) else pa.array(given, pa.string())
    if len(cells) != rows:
        raise LogError(f"{len(cells)} {what}s for {rows} records", "give one for all, or one a record")
    if cells.null_count and what not in _NULLABLE:
        raise LogError(f"a record has no {what}", "give one to every record")
    return cells


def wholes_in(given: npt.ArrayLike, rows: int) -> Ints:
    """One whole number a row; a single one stands for all rows."""
    return np.ascontiguousarray(np.broadcast_to(np.asarray(given, np.int64), rows))


def boxes_to_json(bounds: Floats, schema: Schema) -> str:
    """Boxes (m, attributes, 2) as a list of {attribute: [low, high]}; null and absent attributes are unbounded."""
    boxes = [
        {
            name: (None if low == -np.inf else low, None if high == np.inf else high)
            for name, (low, high) in zip(schema.names, box, strict=True)
            if (low, high) != (-np.inf, np.inf)
        }
        for box in bounds.tolist()
    ]
    return msgspec.json.encode(boxes).decode()


def boxes_from_json(text: str, schema: Schema) -> Floats:
    """The inverse of `boxes_to_json`, to the last bit; LogError for what that did not write."""
    try:
        boxes = msgspec.json.decode(text, type=list[dict[str, tuple[float | None, float | None]]])
        found = np.empty((len(boxes), len(schema.attributes), 2))
        found[:] = (-np.inf, np.inf)
        for box, sides in zip(boxes, found, strict=True):
            for name, (low, high) in box.items():
                sides[schema.position(name)] = (
                    -np.inf if low is None else low,
                    np.inf if high is None else high,
                )
    except (msgspec.MsgspecError, SchemaError) as error:
        raise LogError(f"boxes that cannot be read: {error}") from None
    return found
