"""An event is a value, or nothing, for each attribute; `point` is where it stands in the space."""

from collections.abc import Mapping
from typing import TypeAlias

from plerion.content.errors import EventError, quoted, suggestion
from plerion.content.schema import Schema

__all__ = ["Event", "EventError", "point"]

Event: TypeAlias = Mapping[str, float | int | str | None]


def point(schema: Schema, event: Event) -> tuple[float, ...]:
    """The checked axis positions of an event, one an attribute in schema order; an absent value is MISSING.

    A name that the schema does not have is refused: it is far more often a misspelling than an extra.
    """
    for name in event:
        if name not in schema.positions:
            what = f"the schema has no attribute {quoted(name)}"
            raise EventError(what, suggestion(str(name), schema.names), str(name), event[name])
    return tuple(attribute.axis(event.get(attribute.name)) for attribute in schema.attributes)
