"""A connection, step by step: the greeting, time, requests and their answers, bundles, and errors in their place."""

from __future__ import annotations

from struct import pack

import pytest

from benchmarks.mutations import message, multipart, ready_channel, samples
from plerion.southbound.openflow import channel as channels
from plerion.southbound.openflow.channel import Channel
from plerion.southbound.openflow.codec import decode, encode
from plerion.southbound.openflow.messages import (
    BarrierReply,
    BarrierRequest,
    BundleControl,
    BundleStep,
    EchoReply,
    EchoRequest,
    Error,
    Hello,
    MultipartReply,
    MultipartRequest,
    Part,
)
from plerion.southbound.openflow.phases import (
    Answered,
    BundleEnded,
    Closed,
    Introduced,
    Phase,
    Refused,
    Timing,
)

FEATURES = samples()[5]
FULL = Error(5, 1, b"")


def kinds(octets: list[bytes]) -> list[int]:
    """The types of the messages in what is to be sent."""
    whole, found, at = b"".join(octets), [], 0
    while at < len(whole):
        found.append(whole[at + 1])
        at += int.from_bytes(whole[at + 2 : at + 4], "big")
    return found


def test_a_switch_is_greeted_asked_and_known() -> None:
    channel = Channel(0.0)
    assert kinds(channel.outgoing()) == [0]
    assert channel.receive(encode(Hello(), 1), 0.1) == []
    assert kinds(channel.outgoing()) == [5]
    (introduced,) = channel.receive(FEATURES, 0.2)
    assert isinstance(introduced, Introduced)
    assert introduced.features.dpid == 1
    assert channel.phase is Phase.READY


def test_a_switch_of_another_version_is_told_so_and_left() -> None:
    channel = Channel(0.0)
    channel.outgoing()
    (closed,) = channel.receive(message(0, b"", version=1), 0.0)
    assert isinstance(closed, Closed)
    assert "version 1" in closed.reason
    (goodbye,) = channel.outgoing()
    assert decode(goodbye)[1] == Error(0, 0, b"OpenFlow 1.3 only")


@pytest.mark.parametrize("early", [FEATURES, encode(EchoRequest(), 1), message(21, b"")])
def test_nothing_but_a_hello_comes_first(early: bytes) -> None:
    (closed,) = Channel(0.0).receive(early, 0.0)
    assert isinstance(closed, Closed)
    assert "out of place while greeting" in closed.reason


def test_echoes_are_answered_with_what_they_brought() -> None:
    channel = ready_channel()
    channel.receive(encode(EchoRequest(b"abc"), 42), 0.0)
    (reply,) = channel.outgoing()
    assert decode(reply) == (42, EchoReply(b"abc"))


def test_a_switch_that_asks_and_never_listens_costs_no_memory() -> None:
    channel = ready_channel()
    for number in range(10_000):
        channel.receive(encode(EchoRequest(bytes(1_000)), number), 0.0)
    assert 0 < sum(map(len, channel.outgoing())) < 1 << 20
    channel.receive(encode(EchoRequest(b"abc"), 42), 0.0)
    assert len(channel.outgoing()) == 1, "one that listens again is answered again"


def test_a_silent_switch_is_asked_once_and_then_given_up() -> None:
    channel = ready_channel(0.0)
    assert channel.deadline == Timing().probe
    assert channel.tick(4.9) == []
    assert channel.outgoing() == []
    assert channel.tick(5.0) == channel.tick(6.0) == []
    assert kinds(channel.outgoing()) == [2]
    assert channel.deadline == Timing().silence
    (closed,) = channel.tick(20.0)
    assert closed == Closed("silent for 20 s")


def test_a_switch_that_answers_lives_on() -> None:
    channel = ready_channel(0.0)
    channel.tick(5.0)
    channel.receive(encode(EchoReply(), 1), 6.0)
    assert channel.deadline == 6.0 + Timing().probe
    assert channel.tick(20.0) == []


def test_a_greeting_that_never_comes_is_not_waited_for() -> None:
    channel = Channel(0.0)
    channel.receive(encode(Hello(), 1)[:5], 9.0)
    assert channel.tick(9.9) == []
    assert channel.tick(10.0) == [Closed("no handshake in 10 s")]


def test_a_request_that_is_not_answered_ends_the_connection() -> None:
    channel = ready_channel(0.0)
    channel.ask(BarrierRequest(), 0.0)
    for second in range(1, 60):
        assert channel.receive(encode(EchoRequest(), 1), float(second)) == []
        assert channel.tick(float(second)) == []
    (closed,) = channel.tick(60.0)
    assert closed == Closed("a request was not answered in 60 s")


def test_answers_find_their_requests_in_any_order() -> None:
    channel = ready_channel()
    first, second = channel.ask(BarrierRequest(), 0.0), channel.ask(BarrierRequest(), 0.0)
    assert channel.receive(message(21, b"", second), 0.0) == [Answered(second, BarrierReply())]
    assert channel.receive(message(21, b"", first), 0.0) == [Answered(first, BarrierReply())]
    assert channel.receive(message(21, b"", first), 0.0) == []
    assert channel.unasked == 1


def test_an_answer_in_parts_is_put_together() -> None:
    channel = ready_channel()
    xid = channel.ask(MultipartRequest(Part.TABLES), 0.0)
    other = channel.ask(MultipartRequest(Part.PORTS), 0.0)
    assert channel.receive(multipart(Part.TABLES, b"a" * 24, more=True, xid=xid), 0.0) == []
    assert channel.receive(multipart(Part.PORTS, b"", xid=other), 0.0) != []
    (answered,) = channel.receive(multipart(Part.TABLES, b"b" * 24, xid=xid), 0.0)
    assert answered == Answered(xid, MultipartReply(Part.TABLES, False, b"a" * 24 + b"b" * 24))


def test_an_answer_without_end_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "MAX_ANSWER", 1000)
    channel = ready_channel()
    xid = channel.ask(MultipartRequest(Part.TABLES), 0.0)
    part = multipart(Part.TABLES, bytes(240), more=True, xid=xid)
    assert channel.receive(part * 4, 0.0) == []
    (closed,) = channel.receive(part, 0.0)
    assert isinstance(closed, Closed)


def test_the_answer_to_another_question_ends_the_connection() -> None:
    channel = ready_channel()
    xid = channel.ask(BarrierRequest(), 0.0)
    (closed,) = channel.receive(multipart(Part.TABLES, b"", xid=xid), 0.0)
    assert isinstance(closed, Closed)


def test_an_error_is_tied_to_the_request_that_caused_it() -> None:
    channel = ready_channel()
    xid = channel.ask(MultipartRequest(Part.FLOWS), 0.0)
    assert channel.receive(encode(FULL, xid), 0.0) == [Refused(xid, FULL)]
    assert channel.receive(encode(FULL, xid), 0.0) == [Refused(0, FULL)]


def a_bundle(channel: Channel, count: int = 3) -> int:
    return channel.bundle(
        count, lambda first, _: b"".join(message(14, b"", first + i) for i in range(count)), 0.0
    )


def test_a_bundle_is_committed_when_the_switch_has_taken_all_of_it() -> None:
    channel = ready_channel()
    bundle = a_bundle(channel)
    assert kinds(channel.outgoing()) == [4, 14, 14, 14, 4]
    assert channel.receive(encode(BundleControl(bundle, BundleStep.OPENED), bundle), 0.0) == []
    assert channel.outgoing() == []
    channel.receive(encode(BundleControl(bundle, BundleStep.CLOSED), bundle + 4), 0.0)
    commit, barrier = channel.outgoing()
    assert decode(commit)[1] == BundleControl(bundle, BundleStep.COMMIT)
    assert (barrier[1], int.from_bytes(barrier[4:8], "big")) == (20, bundle + 6)
    assert channel.receive(encode(BundleControl(bundle, BundleStep.COMMITTED), bundle + 5), 0.0) == []
    assert channel.receive(message(21, b"", bundle + 6), 0.0) == [BundleEnded(bundle)]


def test_a_bundle_with_a_part_that_was_refused_is_discarded_whole() -> None:
    channel = ready_channel()
    bundle = a_bundle(channel)
    channel.outgoing()
    channel.receive(encode(FULL, bundle + 2), 0.0)
    channel.receive(encode(BundleControl(bundle, BundleStep.CLOSED), bundle + 4), 0.0)
    discard, _ = channel.outgoing()
    assert decode(discard)[1] == BundleControl(bundle, BundleStep.DISCARD)
    assert channel.receive(message(21, b"", bundle + 6), 0.0) == [BundleEnded(bundle, ((1, FULL),))]


def test_a_commit_that_fails_names_the_message_that_made_it_fail() -> None:
    channel = ready_channel()
    bundle = a_bundle(channel)
    channel.receive(encode(BundleControl(bundle, BundleStep.CLOSED), bundle + 4), 0.0)
    failed = message(1, pack("!HHI", 0xFFFF, 2300, 0x4F4E_4600), bundle + 5)
    channel.receive(encode(FULL, bundle + 3) + failed, 0.0)
    (ended,) = channel.receive(message(21, b"", bundle + 6), 0.0)
    assert ended == BundleEnded(bundle, ((2, FULL), (-1, Error(0xFFFF, 2300, b"ONF\0"))))


def test_a_switch_without_bundles_refuses_and_nothing_is_in_force() -> None:
    channel = ready_channel()
    bundle = a_bundle(channel)
    channel.outgoing()
    for xid in range(bundle, bundle + 5):
        channel.receive(encode(Error(1, 3), xid), 0.0)
    assert kinds(channel.outgoing()) == [4, 20]
    (ended,) = channel.receive(message(21, b"", bundle + 6), 0.0)
    assert isinstance(ended, BundleEnded)
    assert len(ended.errors) == 5


def test_a_bundle_that_cannot_be_written_leaves_no_trace() -> None:
    channel = ready_channel()

    def fails(_: int, __: int) -> bytes:
        raise ValueError("too long")

    with pytest.raises(ValueError, match="too long"):
        channel.bundle(1, fails, 0.0)
    assert channel.outgoing() == []
    assert channel.deadline == Timing().probe


def test_numbers_start_again_before_they_run_out() -> None:
    channel = ready_channel()
    channel._xid = 0xFFFF_FFF0
    assert a_bundle(channel, 100) == 1


def test_after_the_end_nothing_happens() -> None:
    channel = ready_channel()
    assert channel.receive(b"", 0.0) == [Closed("the switch hung up")]
    assert channel.receive(encode(EchoRequest(), 1), 0.0) == []
    assert channel.tick(1e9) == channel.close("again") == []
