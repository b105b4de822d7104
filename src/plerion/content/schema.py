"""A schema names the attributes of the event space and lays each one out as an axis.

Every attribute, a number or one of a list of texts, becomes an axis of float positions, so that the rest of
the system knows only half-open intervals. A number stands at itself; a text stands at its rank in the
declared list. An event without a value stands at MISSING, below every value of every axis: one more point,
not a special case. So `(-inf, +inf)` is 'anything, even missing' and `[start, end)` is 'any value'.

The top of an axis must be a float that is above every value. That is the next double for real numbers and
`high + 1` for whole ones, which is why whole bounds stay below 2**53: there `high + 1` would be `high`.
"""

import math
import numbers
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from plerion.content.errors import EventError, SchemaError, quoted, suggestion

__all__ = ["MISSING", "Attribute", "Enumeration", "Number", "Schema", "SchemaError", "read_schema"]

MISSING: Final = -math.inf
MAX_ATTRIBUTES: Final = 1024
MAX_VALUES: Final = 65_536
MAX_NAME: Final = 128
MAX_VALUE: Final = 1024  # characters of one text value
MAX_WHOLE: Final = 2**53 - 1

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def _check_text(text: object, what: str, longest: int, path: tuple[str | int, ...]) -> None:
    if not isinstance(text, str):
        raise SchemaError(f"{what} is {quoted(text)}", "write it as text, in quotes", path)
    if not text:
        raise SchemaError(f"{what} is empty", "give it at least one character", path)
    if len(text) > longest:
        raise SchemaError(f"{what} has {len(text)} characters", f"use at most {longest}", path)
    if _UNPRINTABLE.search(text):
        raise SchemaError(f"{what} {quoted(text)} has a control character", "remove it", path)


@dataclass(frozen=True, slots=True)
class Number:
    """A numeric attribute from `low` to `high`, both included, as IEEE doubles."""

    name: str
    low: float
    high: float
    integer: bool = False
    scale: Literal["linear", "log"] = "linear"

    def __post_init__(self) -> None:
        _check_text(self.name, "the name", MAX_NAME, ("name",))
        for key, bound in (("low", self.low), ("high", self.high)):
            object.__setattr__(self, key, _finite(bound, key))
            if self.integer and (bound != math.floor(bound) or abs(bound) > MAX_WHOLE):
                fix = "use whole numbers within ±(2**53 - 1), or drop 'integer'"
                raise SchemaError(f"{key} {bound!r} is no bound for an integer", fix, (key,))
        if self.low > self.high:
            raise SchemaError(f"low {self.low!r} is above high {self.high!r}", "swap them", ("low",))
        if not math.isfinite(self.end - self.low):
            raise SchemaError("high - low is not finite", "use bounds that are closer together", ("high",))
        if self.scale not in ("linear", "log"):
            raise SchemaError(f"scale is {quoted(self.scale)}", "use 'linear' or 'log'", ("scale",))
        if self.scale == "log" and self.low <= 0:
            fix = "raise low above 0 or use scale: linear"
            raise SchemaError(f"low {self.low!r} has no logarithm", fix, ("low",))

    @property
    def start(self) -> float:
        """The lowest position that a value can have."""
        return self.low

    @property
    def end(self) -> float:
        """The first position above every value."""
        return self.high + 1 if self.integer else math.nextafter(self.high, math.inf)

    def axis(self, value: object) -> float:
        """The position of a raw value; None and NaN are MISSING; what is no value raises EventError."""
        if value is None:
            return MISSING
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise self._refusal(value, "is not a number", "send a number, or nothing for a missing value")
        try:
            position = float(value)
        except OverflowError:
            position = math.inf
        if math.isnan(position):
            return MISSING
        if not self.low <= position <= self.high:
            raise self._refusal(value, f"is outside {self._bound}", "correct the value or widen the schema")
        if self.integer and position != math.floor(position):
            raise self._refusal(value, "is not whole", "round the value or drop 'integer' from the schema")
        return position

    @property
    def _bound(self) -> str:
        return f"{self.low:g} to {self.high:g}"

    def _refusal(self, value: object, what: str, fix: str) -> EventError:
        return EventError(f"{quoted(self.name)}: {quoted(value)} {what}", fix, self.name, value, self._bound)


def _finite(bound: object, key: str) -> float:
    if isinstance(bound, bool) or not isinstance(bound, numbers.Real):
        raise SchemaError(f"{key} is {quoted(bound)}", "give a number", (key,))
    try:
        position = float(bound)
    except OverflowError:
        position = math.inf
    if not math.isfinite(position):
        raise SchemaError(f"{key} is not finite", "give the lowest and highest value that can occur", (key,))
    return position


@dataclass(frozen=True, slots=True)
class Enumeration:
    """A text attribute that takes one of `values`; their declared order is the order of the axis."""

    name: str
    values: tuple[str, ...]
    _ranks: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_text(self.name, "the name", MAX_NAME, ("name",))
        if not 1 <= len(self.values) <= MAX_VALUES:
            raise SchemaError(f"{len(self.values)} values", f"give 1 to {MAX_VALUES}", ("values",))
        ranks: dict[str, int] = {}
        for rank, value in enumerate(self.values):
            _check_text(value, "the value", MAX_VALUE, ("values", rank))
            if ranks.setdefault(value, rank) != rank:
                raise SchemaError(f"{quoted(value)} is there twice", "list each value once", ("values", rank))
        object.__setattr__(self, "_ranks", ranks)

    @property
    def start(self) -> float:
        """The position of the first value."""
        return 0.0

    @property
    def end(self) -> float:
        """One above the position of the last value."""
        return float(len(self.values))

    def rank(self, value: str) -> int | None:
        """The place of a value in the declared order, or None when it is not one of them."""
        return self._ranks.get(value)

    def axis(self, value: object) -> float:
        """The position of a raw value; None and NaN are MISSING; what is no value raises EventError."""
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return MISSING
        rank = self._ranks.get(value) if isinstance(value, str) else None
        if rank is None:
            known = suggestion(value if isinstance(value, str) else "", self.values)
            what = f"{quoted(self.name)}: {quoted(value)} is not one of its {len(self.values)} values"
            raise EventError(what, known, self.name, value, f"{len(self.values)} values")
        return float(rank)


Attribute: TypeAlias = Number | Enumeration


@dataclass(frozen=True)
class Schema:
    """The attributes of an event space in a fixed order; every box, point and index uses this order."""

    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.attributes) <= MAX_ATTRIBUTES:
            what = f"{len(self.attributes)} attributes"
            raise SchemaError(what, f"give 1 to {MAX_ATTRIBUTES}", ("attributes",))
        seen: set[str] = set()
        for at, attribute in enumerate(self.attributes):
            if attribute.name in seen:
                what = f"two attributes are named {quoted(attribute.name)}"
                raise SchemaError(what, "rename one", ("attributes", at, "name"))
            seen.add(attribute.name)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(attribute.name for attribute in self.attributes)

    @cached_property
    def starts(self) -> tuple[float, ...]:
        return tuple(attribute.start for attribute in self.attributes)

    @cached_property
    def ends(self) -> tuple[float, ...]:
        return tuple(attribute.end for attribute in self.attributes)

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Where each name stands in the order."""
        return {name: at for at, name in enumerate(self.names)}

    def position(self, name: str) -> int:
        """Where the attribute stands in the order; an unknown name raises SchemaError with a suggestion."""
        at = self.positions.get(name)
        if at is None:
            raise SchemaError(f"there is no attribute {quoted(name)}", suggestion(name, self.names))
        return at

    @classmethod
    def from_document(cls, document: object) -> "Schema":
        """The schema that a parsed YAML or JSON document describes; `to_document` is its inverse."""
        _check_keys(document, ("attributes",), ())
        listed = cast(Mapping[str, Any], document).get("attributes")
        if not isinstance(listed, list | tuple):
            raise SchemaError(
                "'attributes' is not a list", "start each attribute with '- name: …'", ("attributes",)
            )
        if len(listed) > MAX_ATTRIBUTES:
            raise SchemaError(f"{len(listed)} attributes", f"give 1 to {MAX_ATTRIBUTES}", ("attributes",))
        return cls(tuple(_attribute(entry, ("attributes", at)) for at, entry in enumerate(listed)))

    def to_document(self) -> dict[str, Any]:
        """Plain lists, dicts, texts and numbers, with defaults left out."""
        return {"attributes": [_entry(attribute) for attribute in self.attributes]}


_NUMBER_KEYS = ("name", "low", "high", "integer", "scale")
_ENUMERATION_KEYS = ("name", "values")


def _check_keys(entry: object, known: tuple[str, ...], path: tuple[str | int, ...]) -> None:
    if not isinstance(entry, Mapping):
        raise SchemaError(f"{quoted(entry)} stands where keys should", f"give {', '.join(known)}", path)
    for key in entry:
        if key not in known:
            raise SchemaError(f"unknown key {quoted(key)}", suggestion(str(key), known), (*path, key))


def _attribute(entry: object, path: tuple[str | int, ...]) -> Attribute:
    listed = isinstance(entry, Mapping) and "values" in entry
    known = _ENUMERATION_KEYS if listed else _NUMBER_KEYS
    _check_keys(entry, known, path)
    given = dict(cast(Mapping[str, Any], entry))
    for key in known[:2] if listed else known[:3]:
        if key not in given:
            fix = "a number needs name, low and high; a text needs name and values"
            raise SchemaError(f"{quoted(key)} is missing", fix, path)
    try:
        if not listed:
            if not isinstance(given.get("integer", False), bool):
                raise SchemaError("'integer' is not true or false", "write true or false", ("integer",))
            return Number(**given)
        if not isinstance(given["values"], list | tuple):
            raise SchemaError("'values' is not a list", "write [first, second, …]", ("values",))
        return Enumeration(given["name"], tuple(given["values"]))
    except SchemaError as error:
        raise SchemaError(error.what, error.fix, path + error.path) from None


def _entry(attribute: Attribute) -> dict[str, Any]:
    if isinstance(attribute, Enumeration):
        return {"name": attribute.name, "values": list(attribute.values)}
    entry: dict[str, Any] = {"name": attribute.name, "low": attribute.low, "high": attribute.high}
    if attribute.integer:
        entry |= {"low": int(attribute.low), "high": int(attribute.high), "integer": True}
    return entry if attribute.scale == "linear" else entry | {"scale": attribute.scale}


def read_schema(path: str | Path) -> Schema:
    """The schema in a YAML file; SchemaError says file, line and column of what is wrong with it."""
    from plerion.content.yaml_file import load  # noqa: PLC0415 - the YAML reader is slow to import

    document = load(Path(path))
    try:
        return Schema.from_document(document.content)
    except SchemaError as error:
        raise document.located(error) from None
