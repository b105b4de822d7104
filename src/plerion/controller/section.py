"""A part of a configuration: each value read once, with its type and bounds, and whatever nobody read is an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, TypeVar

from plerion.content.errors import SchemaError, quoted, suggestion

T = TypeVar("T", bound=str)
Path = tuple[str | int, ...]


class Section:
    """The keys of one mapping in a file; errors carry the path to the value."""

    def __init__(self, content: Mapping[str, Any], path: Path = ()) -> None:
        self._content = content
        self._path = path
        self._known: set[str] = set()

    @classmethod
    def of(cls, content: object, path: Path = ()) -> Section:
        if content is None:
            return cls({}, path)
        if not isinstance(content, dict):
            raise SchemaError("names and values belong here", "write name: value, one a line", path)
        return cls(content, path)

    def __contains__(self, key: str) -> bool:
        return key in self._content

    def names(self) -> list[str]:
        """Keys that were not read yet."""
        return [key for key in self._content if key not in self._known]

    def get(self, key: str) -> Any:
        self._known.add(key)
        return self._content.get(key)

    def section(self, key: str) -> Section:
        return Section.of(self.get(key), (*self._path, key))

    def sections(self, key: str) -> list[Section]:
        listed = self.get(key)
        if listed is None:
            return []
        if not isinstance(listed, list):
            raise self.error(key, f"{quoted(key)} is not a list", "start each entry with a dash")
        return [Section.of(entry, (*self._path, key, at)) for at, entry in enumerate(listed)]

    def text(self, key: str, default: str | None = None) -> str:
        found = self.get(key)
        if found is None and default is not None:
            return default
        if found is None:
            raise self.error(key, f"{quoted(key)} is missing", f"add a line {key}: …")
        if not isinstance(found, str) or not found or "\0" in found:
            raise self.error(key, f"{quoted(found)} is no text", "write a name or a path")
        return found

    def number(self, key: str, default: float, low: float, high: float) -> float:
        found = self.get(key)
        if found is None:
            return default
        if isinstance(found, bool) or not isinstance(found, int | float) or not isfinite(found):
            raise self.error(key, f"{quoted(found)} is no number", f"give {low:g} to {high:g}")
        if not low <= found <= high:
            raise self.error(key, f"{quoted(found)} is out of bounds", f"give {low:g} to {high:g}")
        return float(found)

    def whole(self, key: str, default: int, low: int, high: int) -> int:
        found = self.get(key)
        if found is None:
            return default
        if isinstance(found, bool) or not isinstance(found, int) or not low <= found <= high:
            raise self.error(
                key, f"{quoted(found)} is no number here", f"give a whole number, {low} to {high}"
            )
        return found

    def flag(self, key: str, default: bool) -> bool:
        found = self.get(key)
        if found is None:
            return default
        if not isinstance(found, bool):
            raise self.error(key, f"{quoted(found)} is neither true nor false", "write true or false")
        return found

    def choice(self, key: str, allowed: Sequence[T], default: T | None) -> T:
        found = self.get(key)
        if found is None and default is not None:
            return default
        for word in allowed:
            if word == found:
                return word
        what = f"{quoted(key)} is missing" if found is None else f"{quoted(found)} is not known here"
        raise self.error(key, what, suggestion(str(found), allowed))

    def close(self) -> None:
        """Refuses a key that nobody asked for: a misspelt one must not pass in silence."""
        for key in self.names():
            raise self.error(key, f"{quoted(key)} is not known here", suggestion(key, sorted(self._known)))

    def error(self, key: str, what: str, fix: str = "") -> SchemaError:
        return SchemaError(what, fix, (*self._path, key))
