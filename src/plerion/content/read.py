"""Files of events and of interests become arrays, checked cell by cell at the speed of arrays.

An *interest* is a subscription or an advertisement: an id, a host, and the boxes of its filter. The two
forms of the file mean the same: `id, host, filter`, or a low and a high for each attribute, both included
and empty for unbounded. Both empty leaves the attribute free, missing values included.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from plerion.content.box import bounds, boxes
from plerion.content.errors import EventError, FilterError, InputError, quoted, suggestion
from plerion.content.filter import Filter
from plerion.content.parse import parse
from plerion.content.schema import MISSING, Attribute, Enumeration, Schema

if TYPE_CHECKING:
    from plerion.content.table import Kind, Table

__all__ = ["Events", "InputError", "Interests", "read_events", "read_interests"]


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """Events column-wise: `points[row, attribute]` is an axis position, MISSING where there is no value.

    `times` are seconds, NaN where there is none. `absent` names attributes that the file had no column for.
    """

    points: NDArray[np.float64]
    publishers: tuple[str, ...] | None = None
    times: NDArray[np.float64] | None = None
    absent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Interests:
    """Subscriptions or advertisements column-wise; row i has the boxes `bounds[offsets[i]:offsets[i + 1]]`.

    A row has no boxes when its filter can match nothing. `texts` are the filters as written, if they were.
    """

    ids: tuple[str, ...]
    hosts: tuple[str, ...]
    offsets: NDArray[np.int64]
    bounds: NDArray[np.float64]
    texts: tuple[str, ...] | None = None

    @classmethod
    def of(cls, rows: Iterable[tuple[str, str, Filter]], schema: Schema | None = None) -> "Interests":
        """(id, host, filter) rows that were built in memory. Without rows the width comes from `schema`."""
        ids, hosts, filters = _transposed(rows)
        schema = filters[0].schema if filters else schema
        if schema is None:
            return cls((), (), np.zeros(1, np.int64), np.empty((0, 0, 2)), ())
        for row, filter in enumerate(filters):
            if filter.schema != schema:
                raise InputError("the filter has another schema", "use one schema for all rows", row=row)
        _check_names(ids, hosts, lambda what, fix, row, column: InputError(what, fix, None, row, column))
        parts = [bounds(boxes(filter), schema) for filter in filters]
        return _stacked(ids, hosts, parts, schema, tuple(filter.text for filter in filters))


def read_events(path: str | Path, schema: Schema) -> Events:
    """The events of a CSV or Parquet file; InputError at the first cell that is no value of its attribute.

    Columns that are neither attributes nor `time` nor `publisher` are ignored. An attribute without a column
    is missing in every event and listed in `absent`; a file without any attribute's column is refused.
    """
    from plerion.content.table import header, read_table  # noqa: PLC0415 - Arrow is slow to import

    path = Path(path)
    names = header(path)
    kinds: dict[str, Kind] = {name: "text" for name in ("publisher",) if name in names}
    kinds |= {name: "time" for name in ("time",) if name in names}
    found = [attribute for attribute in schema.attributes if attribute.name in names]
    if not found:
        what = f"no column is named like an attribute; the columns are {_some(names)}"
        raise InputError(what, f"name columns {_some(schema.names)}", str(path))
    kinds |= {attribute.name: _kind(attribute) for attribute in found}
    table = read_table(path, kinds)
    points = np.full((table.rows, len(schema.attributes)), MISSING)
    for attribute in found:
        points[:, schema.position(attribute.name)] = _positions(table, attribute)
    return Events(
        points,
        tuple(table.texts("publisher")) if "publisher" in kinds else None,
        table.seconds("time") if kinds.get("time", "text") != "text" else None,
        tuple(name for name in schema.names if name not in names),
    )


def read_interests(path: str | Path, schema: Schema) -> Interests:
    """The subscriptions or advertisements of a CSV or Parquet file; InputError at the first wrong row."""
    from plerion.content.table import header, read_table  # noqa: PLC0415 - Arrow is slow to import

    path = Path(path)
    names = header(path)
    kinds: dict[str, Kind] = {"id": "text", "host": "text"}
    ranged = _range_columns(path, names, schema)
    if "filter" in names:
        kinds["filter"] = "text"
    for name in kinds:
        if name not in names:
            raise InputError(f"there is no column '{name}'", _FORMS, str(path))
    if ("filter" in names) == bool(ranged):
        raise InputError("'filter' and ranges are both there" if ranged else "no filters", _FORMS, str(path))
    table = read_table(path, {**kinds, **{name: _kind(attribute) for name, attribute in ranged.items()}})
    ids, hosts = tuple(table.texts("id")), tuple(table.texts("host"))
    _check_names(ids, hosts, table.error)
    if ranged:
        return _from_ranges(table, ids, hosts, schema)
    texts = tuple(table.texts("filter"))
    return _stacked(ids, hosts, _from_texts(table, texts, schema), schema, texts)


_FORMS = "give id, host, filter, or id, host and <attribute>_low, <attribute>_high columns"


def _some(names: Sequence[str]) -> str:
    return ", ".join(quoted(name) for name in names[:6]) + (", …" if len(names) > 6 else "")


def _kind(attribute: Attribute) -> "Kind":
    return "text" if isinstance(attribute, Enumeration) else "number"


def _axis(table: "Table", column: str, attribute: Attribute) -> NDArray[np.float64]:
    """Ranks or numbers, NaN where a cell is empty; not yet held against the attribute's bounds."""
    if isinstance(attribute, Enumeration):
        return table.ranks(column, attribute.values)
    return table.numbers(column)


def _positions(table: "Table", attribute: Attribute) -> NDArray[np.float64]:
    values = _axis(table, attribute.name, attribute)
    missing = np.isnan(values)
    fine = (values >= attribute.start) & (values < attribute.end)
    if not isinstance(attribute, Enumeration) and attribute.integer:
        fine &= values == np.floor(values)
    fine |= missing
    if not fine.all():
        row = int(np.argmin(fine))
        try:
            attribute.axis(float(values[row]))
        except EventError as error:
            raise table.error(error.what, error.fix, row, attribute.name) from None
    return np.where(missing, MISSING, values)


def _transposed(
    rows: Iterable[tuple[str, str, Filter]],
) -> tuple[tuple[str, ...], tuple[str, ...], list[Filter]]:
    listed = list(rows)
    return tuple(row[0] for row in listed), tuple(row[1] for row in listed), [row[2] for row in listed]


def _check_names(
    ids: Sequence[str], hosts: Sequence[str], error: Callable[[str, str, int | None, str | None], InputError]
) -> None:
    """Every row has an id of its own and a host."""
    for column, names in (("id", ids), ("host", hosts)):
        if "" in names:
            raise error("the cell is empty", f"give every row its {column}", names.index(""), column)
    if len(set(ids)) < len(ids):
        seen: set[str] = set()
        for row, name in enumerate(ids):
            if name in seen:
                what = f"{quoted(name)} is already the id of row {ids.index(name)}"
                raise error(what, "give every row its own", row, "id")
            seen.add(name)


def _stacked(
    ids: tuple[str, ...],
    hosts: tuple[str, ...],
    parts: Sequence[NDArray[np.float64]],
    schema: Schema,
    texts: tuple[str, ...],
) -> Interests:
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    empty = np.empty((0, len(schema.attributes), 2))
    return Interests(ids, hosts, offsets, np.concatenate([empty, *parts]), texts)


def _from_texts(table: "Table", texts: Sequence[str], schema: Schema) -> list[NDArray[np.float64]]:
    """The boxes of each text; one that many rows share is parsed once."""
    known: dict[str, NDArray[np.float64]] = {}
    for row, text in enumerate(texts):
        if text not in known:
            try:
                known[text] = bounds(boxes(parse(text, schema)), schema)
            except FilterError as error:
                what = f"{error.what} ({error.place} of the filter)"
                raise table.error(what, error.fix, row, "filter") from None
    return [known[text] for text in texts]


def _range_columns(path: Path, names: Sequence[str], schema: Schema) -> Mapping[str, Attribute]:
    """The columns that bound an attribute; one that ends like a bound of no attribute is a misspelling."""
    ranged: dict[str, Attribute] = {}
    for name in names:
        attribute, _, side = name.rpartition("_")
        if attribute and side in ("low", "high"):
            if attribute not in schema.positions:
                what = f"the column {quoted(name)} bounds no attribute"
                raise InputError(what, suggestion(attribute, schema.names), str(path))
            ranged[name] = schema.attributes[schema.position(attribute)]
    return ranged


def _from_ranges(table: "Table", ids: tuple[str, ...], hosts: tuple[str, ...], schema: Schema) -> Interests:
    found = np.empty((table.rows, len(schema.attributes), 2))
    found[:] = (-np.inf, np.inf)
    kept = np.ones(table.rows, bool)
    for at, attribute in enumerate(schema.attributes):
        lows, highs = (_bound(table, attribute, side) for side in ("low", "high"))
        crossed = lows > highs
        if crossed.any():
            row = int(np.argmax(crossed))
            what = f"the low of {quoted(attribute.name)} is above its high"
            raise table.error(what, "swap them", row, f"{attribute.name}_low")
        held = ~(np.isnan(lows) & np.isnan(highs))
        found[held, at] = _half_open(lows[held], highs[held], attribute)
        kept &= found[:, at, 0] < found[:, at, 1]
    offsets = np.zeros(table.rows + 1, np.int64)
    np.cumsum(kept, out=offsets[1:])
    return Interests(ids, hosts, offsets, found[kept])


def _bound(table: "Table", attribute: Attribute, side: str) -> NDArray[np.float64]:
    column = f"{attribute.name}_{side}"
    if column not in table.columns:
        return np.full(table.rows, np.nan)
    return _axis(table, column, attribute)


def _half_open(
    lows: NDArray[np.float64], highs: NDArray[np.float64], attribute: Attribute
) -> NDArray[np.float64]:
    """Inclusive bounds as [low, high) within [start, end]; NaN is unbounded."""
    if isinstance(attribute, Enumeration) or attribute.integer:
        lows, highs = np.ceil(lows), np.floor(highs) + 1
    else:
        highs = np.nextafter(highs, np.inf)
    lows = np.where(np.isnan(lows), attribute.start, lows)
    highs = np.where(np.isnan(highs), attribute.end, highs)
    return np.clip(np.stack([lows, highs], axis=-1), attribute.start, attribute.end)
