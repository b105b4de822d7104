"""Every value comes back from its bytes, and every other string of bytes is a WireError, soon and in little memory."""

from __future__ import annotations

import tracemalloc
from contextlib import suppress
from time import thread_time
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plerion.wire import control, event
from plerion.wire.error import WireError
from plerion.wire.event import EventDatagram

law = settings(max_examples=300, deadline=None)
ALLOWED_SECONDS, ALLOWED_BYTES = 0.25, 4 << 20

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
wholes = st.integers(0, 2**63 - 1)
values = st.none() | texts | st.floats(allow_nan=False) | st.integers(-(2**63), 2**64 - 1)
trees = st.recursive(
    st.none() | st.booleans() | texts | st.floats(allow_nan=False) | st.integers(-(2**63), 2**64 - 1),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
events = st.builds(
    EventDatagram,
    texts.filter(bool),
    wholes,
    wholes,
    wholes,
    st.lists(values, max_size=12),
    st.none() | st.dictionaries(texts, trees, max_size=4),
)
names = texts.filter(bool)
sessions = st.integers(0, 2**64 - 1).map("{:016x}".format)
digests = st.integers(0, 2**256 - 1).map("{:064x}".format)
leases = st.floats(0, control.MAX_LEASE_SECONDS, exclude_min=True)
counts = st.integers(1, control.MAX_PARTS)
requests: st.SearchStrategy[control.Request] = st.one_of(
    st.builds(control.Join, wholes, sessions, leases),
    st.builds(control.Describe, wholes, sessions, st.integers(0, control.MAX_PARTS - 1)),
    st.builds(control.Advertise, wholes, sessions, names, texts),
    st.builds(control.Unadvertise, wholes, sessions, names),
    st.builds(control.Subscribe, wholes, sessions, names, texts),
    st.builds(control.Unsubscribe, wholes, sessions, names),
    st.builds(control.KeepAlive, wholes, sessions, st.none() | st.builds(control.Report, *[wholes] * 5)),
    st.builds(control.Leave, wholes, sessions),
)
replies: st.SearchStrategy[control.Reply] = st.one_of(
    st.builds(control.Welcome, wholes, names, leases, wholes, digests, counts),
    st.builds(control.Part, wholes, st.integers(0, control.MAX_PARTS - 1), counts, st.binary(max_size=1024)),
    st.builds(control.Ready, wholes),
    st.builds(control.Refused, wholes, texts),
    st.builds(control.Unknown, wholes),
    st.builds(control.Notice, wholes, wholes, digests),
)


@st.composite
def mutations(draw: st.DrawFn, given: bytes) -> bytes:
    """The bytes with some of them changed, inserted, removed or repeated."""
    found = bytearray(given)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(found)))
        match draw(st.sampled_from(["change", "insert", "cut", "repeat"])):
            case "change" if at < len(found):
                found[at] = draw(st.integers(0, 255))
            case "insert":
                found[at:at] = draw(st.binary(min_size=1, max_size=6))
            case "cut":
                del found[at : at + draw(st.integers(1, 8))]
            case "repeat":
                found[at:at] = found[at : at + draw(st.integers(1, 8))]
    return bytes(found)


@law
@given(events)
def test_an_event_comes_back_from_its_datagram(sent: EventDatagram) -> None:
    assert event.decode(event.encode(sent)) == sent
    assert event.decode_many([event.encode(sent), b"\xc1"]) == [sent, None]


@law
@given(requests)
def test_a_request_comes_back_from_its_bytes(sent: control.Request) -> None:
    assert control.decode_request(control.encode(sent)) == sent


@law
@given(replies)
def test_a_reply_comes_back_from_its_bytes(sent: control.Reply) -> None:
    assert control.decode_reply(control.encode(sent)) == sent


def same(one: Any, other: Any) -> bool:
    """Equal, where NaN equals itself: as bytes."""
    return msgspec.msgpack.encode(one) == msgspec.msgpack.encode(other)


@law
@given(events.flatmap(lambda sent: mutations(event.encode(sent))))
def test_a_damaged_event_is_another_event_or_refused(datagram: bytes) -> None:
    try:
        found = event.decode(datagram)
    except WireError:
        assert event.decode_many([datagram]) == [None]
        return
    assert same(event.decode(event.encode(found)), found)
    assert len(found.publisher) <= event.MAX_PUBLISHER
    assert min(found.sequence, found.epoch, found.time_ns) >= 0
    assert all(value is None or type(value) in (int, float, str) for value in found.values)


@law
@given(requests.flatmap(lambda sent: mutations(control.encode(sent))))
def test_a_damaged_request_is_another_request_or_refused(message: bytes) -> None:
    try:
        found = control.decode_request(message)
    except WireError:
        return
    assert control.decode_request(control.encode(found)) == found


@law
@given(replies.flatmap(lambda sent: mutations(control.encode(sent))))
def test_a_damaged_reply_is_another_reply_or_refused(message: bytes) -> None:
    try:
        found = control.decode_reply(message)
    except WireError:
        return
    assert control.decode_reply(control.encode(found)) == found


@law
@given(st.binary(max_size=200))
def test_any_bytes_are_decoded_or_refused(message: bytes) -> None:
    for decode in (event.decode, control.decode_request, control.decode_reply):
        with suppress(WireError):
            decode(message)


BOMBS = {
    "an array that says it has 4 billion values": b"\xdd\xff\xff\xff\xff",
    "an event with 4 billion values": b"\x97\x01\xa1p\x01\x01\x01\xdd\xff\xff\xff\xff",
    "a map that says it has 4 billion keys": b"\x97\x01\xa1p\x01\x01\x01\x90\xdf\xff\xff\xff\xff",
    "a text of 4 GB": b"\x97\x01\xdb\xff\xff\xff\xff",
    "arrays in arrays": b"\x97\x01\xa1p\x01\x01\x01\x90\x81\xa1a" + b"\x91" * 8_000,
    "maps in maps": b"\x97\x01\xa1p\x01\x01\x01\x90" + b"\x81\xa1a" * 2_500,
    "more than a datagram": b"\x97" + b"\x01" * 100_000,
    "an extension": b"\x97\x01\xa1p\x01\x01\x01\x90\x81\xa1a\xc7\x01\x05x",
    "a filter in a request that never ends": b"\x95\xa9subscribe\x01\xb00000000000000000\xa1n\xdb\xff\xff\xff\xff",
}


@pytest.mark.parametrize("message", BOMBS.values(), ids=BOMBS)
def test_a_bomb_is_refused_at_once(message: bytes) -> None:
    for decode in (event.decode, control.decode_request, control.decode_reply):
        tracemalloc.start()
        began = thread_time()
        with pytest.raises(WireError):
            decode(message)
        spent, (_, peak) = thread_time() - began, tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert spent < ALLOWED_SECONDS
        assert peak < ALLOWED_BYTES


def test_what_no_receiver_would_take_is_not_encoded() -> None:
    for extra in ({"a": "x" * event.MAX_BYTES}, {"a": object()}, {"a": "\ud800"}, {"a": 2**70}):
        with pytest.raises(WireError):
            event.encode(EventDatagram("p", 1, 0, 0, [], extra))
    for unfit in (
        control.Join(1, "not a session id", 1.0),
        control.Join(1, "0" * 16, float("nan")),
        control.Join(1, "0" * 16, 0.0),
        control.Subscribe(1, "0" * 16, "", "TRUE"),
        control.Subscribe(1, "0" * 16, "n", "x" * 70_000),
        control.Part(1, 0, 1, b"x" * 2_000),
    ):
        with pytest.raises(WireError):
            control.encode(unfit)


def test_requests_and_replies_are_not_taken_for_each_other() -> None:
    with pytest.raises(WireError):
        control.decode_reply(control.encode(control.KeepAlive(1, "0" * 16)))
    with pytest.raises(WireError):
        control.decode_request(control.encode(control.Ready(1)))


def test_the_reason_of_a_refusal_is_cut_to_what_fits() -> None:
    told = control.refused(3, "no\ud800 " + "x" * 5_000)
    assert control.decode_reply(control.encode(told)) == told
    assert control.refused(3, "no").reason == "no"


def test_the_bytes_are_those_that_the_format_says() -> None:
    sent = EventDatagram("h1", 7, 0, 5, [1, 2.5, "x", None], None)
    assert msgspec.msgpack.decode(event.encode(sent)) == [1, "h1", 7, 0, 5, [1, 2.5, "x", None], None]
    joined = control.encode(control.Join(1, "0123456789abcdef", 30.0))
    assert msgspec.msgpack.decode(joined) == ["join", 1, "0123456789abcdef", 30.0]
    assert msgspec.msgpack.decode(control.encode(control.KeepAlive(2, "0" * 16)))[0] == "keepalive"
