"""A CloudEvent comes out as it went in, and its attributes are those of the event."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from plerion.client import Delivered, from_cloudevent, to_cloudevent
from plerion.content.errors import EventError
from plerion.wire.event import EventDatagram, decode, encode
from tests.unit.client_network import SCHEMA

PLAIN: dict[str, Any] = {"specversion": "1.0", "id": "7", "source": "/sensors/3", "type": "reading"}

DOCUMENTS = {
    "values in data": PLAIN | {"data": {"temperature": 21.5, "room": "hall", "unit": "C"}},
    "values beside data": PLAIN | {"floor": 3, "room": "attic", "data": {"temperature": 1.5}},
    "a text as data": PLAIN | {"floor": 3, "data": "hello", "datacontenttype": "text/plain"},
    "no data": PLAIN | {"floor": 3, "time": "2026-01-01T00:00:00Z"},
    "no value at all": PLAIN,
    "empty data": PLAIN | {"data": {}},
    "null in data": PLAIN | {"data": {"temperature": None, "floor": 3}},
    "lists in data": PLAIN | {"data": {"floor": 3, "seen": [1, {"a": None}]}},
    "binary data": PLAIN | {"floor": 3, "data_base64": "AQID"},
}


def delivered(values: dict[str, Any], extra: dict[str, Any] | None) -> Delivered:
    sent = EventDatagram(
        "h1/0", 5, 0, 1_700_000_000_000_000_000, [values.get(n) for n in SCHEMA.names], extra
    )
    got = decode(encode(sent))
    raw: Any = tuple(float(value) if isinstance(value, int) else value for value in got.values)
    return Delivered(SCHEMA, raw, got.publisher, got.sequence, got.epoch, got.time_ns, got.time_ns, got.extra)


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_cloudevent_comes_out_as_it_went_in(document: dict[str, Any]) -> None:
    values, extra = from_cloudevent(msgspec.json.decode(msgspec.json.encode(document)), SCHEMA)
    assert to_cloudevent(delivered(values, extra)) == document


def test_values_are_found_wherever_they_stand() -> None:
    values, _ = from_cloudevent(DOCUMENTS["values beside data"], SCHEMA)
    assert values == {"temperature": 1.5, "floor": 3, "room": "attic"}


def test_an_event_that_was_no_cloudevent_becomes_one() -> None:
    document = to_cloudevent(delivered({"floor": 3}, None))
    assert document == {
        "specversion": "1.0",
        "id": "5",
        "source": "/plerion/h1/0",
        "type": "plerion.event",
        "time": "2023-11-14T22:13:20Z",
        "datacontenttype": "application/json",
        "data": {"floor": 3},
    }
    assert to_cloudevent(delivered({"floor": 3}, {"cloudevent": "not ours"}))["type"] == "plerion.event"


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        PLAIN | {"specversion": "0.3"},
        {"specversion": "1.0", "id": "1", "source": "x"},
        PLAIN | {"id": 7},
        PLAIN | {"id": ""},
        PLAIN | {"floor": "third"},
        PLAIN | {"data": {"temperature": 999}},
        PLAIN | {"data": {"temperature": [1]}},
    ],
)
def test_what_is_no_cloudevent_of_the_schema_is_refused(document: Any) -> None:
    with pytest.raises(EventError):
        from_cloudevent(document, SCHEMA)
