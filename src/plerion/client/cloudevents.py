"""CloudEvents (specversion 1.0, structured JSON) in and out.

An attribute of the schema is taken from the context attribute of that name, or else from the member of that name of
`data`: context attributes know no fractions. Everything else, `id`, `source`, `type` and the rest of `data` among it,
travels in `extra` and comes out again at the other end; so does a document whose attributes were all used up.

    values, extra = from_cloudevent(document, session.schema)
    await session.publish(values, extra)
    ...
    document = to_cloudevent(delivered)
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from plerion.client.delivered import Delivered
from plerion.content.errors import EventError, quoted
from plerion.content.event import point
from plerion.content.schema import Schema
from plerion.wire.event import Value

SPECVERSION: Final = "1.0"
_KEY: Final = "cloudevent"  # in `extra`: the rest of the document
_CONTEXT: Final = "context"  # in `extra`: attributes that stood beside `data`, not in it
_REQUIRED: Final = ("id", "source", "type")


def from_cloudevent(document: object, schema: Schema) -> tuple[dict[str, Value], dict[str, Any]]:
    """The values and the extra of a CloudEvent; EventError when it is none, or its values are not the schema's."""
    if not isinstance(document, Mapping):
        raise EventError(
            "a CloudEvent is a JSON object", "send structured mode, application/cloudevents+json"
        )
    if document.get("specversion") != SPECVERSION:
        what = f"specversion is {quoted(document.get('specversion'))}"
        raise EventError(what, f"send version {SPECVERSION}")
    for name in _REQUIRED:
        if not isinstance(document.get(name), str) or not document[name]:
            raise EventError(f"a CloudEvent without {name!r}", "every CloudEvent has id, source and type")
    rest = {name: value for name, value in document.items() if name != "specversion"}
    members = dict(rest["data"]) if isinstance(rest.get("data"), Mapping) else None
    values: dict[str, Value] = {}
    context = []
    for name in schema.names:
        if name in _REQUIRED:
            values[name] = rest[name]
        elif rest.get(name) is not None and name != "data":
            values[name] = rest.pop(name)
            context.append(name)
        elif members is not None and members.get(name) is not None:
            values[name] = members.pop(name)
    if members is not None:
        rest["data"] = members
    point(schema, values)
    return values, {_KEY: rest} | ({_CONTEXT: context} if context else {})


def to_cloudevent(delivered: Delivered) -> dict[str, Any]:
    """The document that was published, or for any other event one that says as much."""
    extra = delivered.extra or {}
    kept = extra.get(_KEY)
    values = {name: value for name, value in delivered.event.items() if value is not None}
    if not isinstance(kept, Mapping):
        sent = datetime.fromtimestamp(delivered.time_ns / 1e9, UTC)
        return {
            "specversion": SPECVERSION,
            "id": str(delivered.sequence),
            "source": f"/plerion/{delivered.publisher}",
            "type": "plerion.event",
            "time": sent.isoformat().replace("+00:00", "Z"),
            "datacontenttype": "application/json",
            "data": values,
        }
    context = extra.get(_CONTEXT) or ()
    document = {"specversion": SPECVERSION, **kept}
    members = {name: value for name, value in values.items() if name not in (*context, *_REQUIRED)}
    document |= {name: values[name] for name in context if name in values}
    if members:
        document["data"] = {**(kept.get("data") or {}), **members}
    return document
