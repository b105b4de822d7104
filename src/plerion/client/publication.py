"""From what an application publishes to datagrams and their addresses, many events at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plerion.client.errors import NotAdvertised
from plerion.client.mmsg import Addresses, Datagrams, Ints
from plerion.content.errors import EventError, quoted
from plerion.content.event import Event, point
from plerion.content.schema import MISSING, Attribute, Enumeration, Schema
from plerion.index.address import AddressPlan
from plerion.index.dz import WHOLE, Dz
from plerion.index.dzset import DzColumns
from plerion.index.encode import Codes
from plerion.index.words import cut_keys
from plerion.matching.bitset import BitsetMatcher
from plerion.update.plan import GROUP_BITS
from plerion.wire.event import ENCODER, EventDatagram, check_length
from plerion.wire.event import encode as encode_one

Floats = npt.NDArray[np.float64]
Publishable: TypeAlias = "Event | Sequence[Any] | Mapping[str, Any] | npt.NDArray[Any]"
"""One event (values by name, or in schema order), many (a list of such, an array of positions), or columns by name."""


def points_of(schema: Schema, given: Publishable) -> Floats:
    """The checked positions of everything given, a row an event; EventError at the first value that is none."""
    if isinstance(given, np.ndarray):
        return checked(schema, np.atleast_2d(np.asarray(given, np.float64)))
    if isinstance(given, Mapping):
        if any(isinstance(values, np.ndarray | list | tuple) for values in given.values()):
            return _from_columns(schema, given)
        return np.array([point(schema, given)])
    rows = list(given)
    if rows and isinstance(rows[0], Mapping | list | tuple):
        return np.array([_row(schema, row) for row in rows]).reshape(len(rows), len(schema.attributes))
    return np.array([_row(schema, rows)]) if rows else np.empty((0, len(schema.attributes)))


def _row(schema: Schema, values: Any) -> tuple[float, ...]:
    if isinstance(values, Mapping):
        return point(schema, values)
    if len(values) != len(schema.attributes):
        what = f"an event of {len(values)} values under {len(schema.attributes)} attributes"
        raise EventError(what, f"give {', '.join(schema.names[:6])} in this order, None for a missing value")
    return point(schema, dict(zip(schema.names, values, strict=True)))


def _from_columns(schema: Schema, columns: Mapping[str, Any]) -> Floats:
    for name in columns:
        schema.position(name)
    (rows,) = _one_length(columns)
    points = np.full((rows, len(schema.attributes)), MISSING)
    for at, attribute in enumerate(schema.attributes):
        column = columns.get(attribute.name)
        if column is None:
            continue
        if isinstance(attribute, Enumeration) and not _is_numeric(column):
            points[:, at] = [attribute.axis(None if text is None else str(text)) for text in column]
        else:
            points[:, at] = np.asarray(column, np.float64)
    return checked(schema, points)


def _one_length(columns: Mapping[str, Any]) -> set[int]:
    lengths = {len(column) for column in columns.values()}
    if len(lengths) != 1:
        raise EventError(f"columns of {sorted(lengths)} rows", "give every column the same number of rows")
    return lengths


def _is_numeric(column: Any) -> bool:
    return isinstance(column, np.ndarray) and column.dtype.kind in "iuf"


def checked(schema: Schema, given: Floats) -> Floats:
    """Positions (NaN is MISSING, texts are ranks), each on its axis; EventError names the first that is not."""
    if given.ndim != 2 or given.shape[1] != len(schema.attributes):
        what = f"an array of shape {given.shape} for {len(schema.attributes)} attributes"
        raise EventError(what, "give a row an event and a column an attribute")
    points = np.where(np.isnan(given), MISSING, given)
    whole = np.array([_steps(attribute) for attribute in schema.attributes])
    inside = (points >= np.array(schema.starts)) & (points < np.array(schema.ends))
    fit = (points == MISSING) | (inside & (~whole | (points == np.floor(points))))
    if not fit.all():
        row, at = (int(number) for number in np.argwhere(~fit)[0])
        _refuse(schema.attributes[at], row, float(points[row, at]))
    return points


def _steps(attribute: Attribute) -> bool:
    return isinstance(attribute, Enumeration) or attribute.integer


def _refuse(attribute: Attribute, row: int, position: float) -> None:
    if isinstance(attribute, Enumeration):
        what = f"event {row}: {quoted(attribute.name)} has no value of rank {position:g}"
        raise EventError(what, f"give 0 to {len(attribute.values) - 1}", attribute.name, position)
    try:
        attribute.axis(position)
    except EventError as error:
        error.what = f"event {row}: {error.what}"
        raise


def values_of(schema: Schema, points: Floats) -> Iterable[tuple[Any, ...]]:
    """The values at these positions, as they are sent."""
    columns = []
    for attribute, column in zip(schema.attributes, points.T, strict=True):
        missing = column == MISSING
        if isinstance(attribute, Enumeration):
            values = [*attribute.values, None]
            columns.append([values[rank] for rank in np.where(missing, -1, column).astype(np.int64).tolist()])
            continue
        whole = (
            np.where(missing, 0, column).astype(np.int64).tolist() if attribute.integer else column.tolist()
        )
        if missing.any():
            whole = [None if absent else value for value, absent in zip(whole, missing.tolist(), strict=True)]
        columns.append(whole)
    return zip(*columns, strict=True)


def datagrams(
    schema: Schema,
    points: Floats,
    publisher: str,
    first: int,
    epoch: int,
    time_ns: int,
    extras: Sequence[dict[str, Any] | None] | None = None,
) -> Datagrams:
    """A datagram an event, numbered from `first`."""
    rows = enumerate(values_of(schema, points), first)
    if extras is None:
        encode = ENCODER.encode
        parts = [
            encode(EventDatagram(publisher, number, epoch, time_ns, values, None))  # type: ignore[arg-type]  # a tuple encodes like a list
            for number, values in rows
        ]
    else:
        parts = [
            encode_one(EventDatagram(publisher, number, epoch, time_ns, values, extra))  # type: ignore[arg-type]  # as above
            for (number, values), extra in zip(rows, extras, strict=True)
        ]
    found = Datagrams.of(parts)
    check_length(int(found.lengths.max(initial=0)))
    return found


def addresses(plan: AddressPlan, dz: DzColumns) -> Addresses:
    """Where each code is sent, sixteen bytes a row: `plan.address` of many."""
    room = plan.network(WHOLE)
    shift = room.prefixlen
    high, low = dz.high, dz.low
    start = int(room.network_address)
    words = np.empty((len(dz), 2), ">u8")
    words[:, 0] = (high >> np.uint64(shift)) | np.uint64(start >> 64)
    words[:, 1] = (low >> np.uint64(shift)) | (high << np.uint64(64 - shift)) | np.uint64(start & (2**64 - 1))
    return words.view(np.uint8).reshape(len(dz), 16)


def group_addresses(plan: AddressPlan, groups: Sequence[Dz], codes: Codes) -> tuple[Ints, Addresses]:
    """Where events go while they are sent to groups: to the first whose cell covers a code, each event once a group."""
    high, low = codes.dz.high, codes.dz.low
    chosen = np.full(len(high), -1)
    for number, cell in reversed([*enumerate(groups)]):
        cut_high, cut_low = cut_keys(high, low, np.full(len(high), cell.length, np.uint8))
        chosen[(cut_high == cell.key()[0]) & (cut_low == cell.key()[1])] = number
    event, group = np.unique(np.stack((codes.event, chosen))[:, chosen >= 0], axis=1)
    packed = [plan.group(Dz(number, GROUP_BITS)).network_address.packed for number in range(len(groups))]
    return event, np.frombuffer(b"".join(packed), np.uint8).reshape(-1, 16)[group]


def check_advertised(matcher: BitsetMatcher | None, points: Floats, filters: Sequence[str]) -> None:
    """Refuses events that no advertisement of the session has: the first switch would drop them without a word."""
    if matcher is None:
        fix = "call advertise(filter) with a filter that matches what you will publish"
        raise NotAdvertised("nothing is advertised in this session", fix)
    covered = matcher.matches(points).any(axis=1)
    if not covered.all():
        row: Ints = np.flatnonzero(~covered)
        said = "; ".join(quoted(text) for text in filters[:3])
        raise NotAdvertised(
            f"event {row[0]} (and {len(row) - 1} more) lies outside of what the session advertised: {said}",
            "advertise a filter that matches it, or do not publish it",
        )
