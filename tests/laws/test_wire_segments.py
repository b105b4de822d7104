"""Segments in any order make the message again; what a sender leaves unfinished is bounded and goes away."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plerion.wire.error import WireError
from plerion.wire.segment import BODY, MAX_MESSAGE, MAX_PARTS, WHOLE, Reassembly, segments

law = settings(max_examples=200, deadline=None)

sizes = st.integers(1, WHOLE + 1) | st.integers(1, 4 * BODY) | st.sampled_from([BODY * 2, MAX_MESSAGE])
messages = st.builds(
    lambda size, at: bytes((at + i * 31) & 255 for i in range(size)), sizes, st.integers(0, 255)
)


@law
@given(messages, st.integers(0, 2**64 - 1), st.randoms(use_true_random=False))
def test_a_message_comes_back_from_its_segments_in_any_order(
    message: bytes, name: int, chance: object
) -> None:
    packets = segments(message, name)
    assert all(len(packet) <= WHOLE for packet in packets)
    assert len(packets) <= MAX_PARTS
    chance.shuffle(packets)  # type: ignore[attr-defined]  # Hypothesis types its Random as an object
    whole = Reassembly()
    *before, last = [whole.receive("h1", packet, 0.0) for packet in packets]
    assert before == [None] * (len(packets) - 1)
    assert last == message
    assert whole.held_bytes == 0


@law
@given(st.lists(st.tuples(messages, st.sampled_from("abc")), min_size=1, max_size=4), st.data())
def test_messages_of_several_senders_do_not_mix(sent: list[tuple[bytes, str]], data: st.DataObject) -> None:
    packets = [
        (sender, number, packet)
        for number, (message, sender) in enumerate(sent)
        for packet in segments(message, number)
    ]
    whole, got = Reassembly(), list[bytes]()
    for sender, _, packet in data.draw(st.permutations(packets[:200])):
        found = whole.receive(sender, packet, 0.0)
        got += [] if found is None else [found]
    finished = [
        message
        for n, (message, _) in enumerate(sent)
        if all(p in packets[:200] for p in packets if p[1] == n)
    ]
    assert sorted(got) == sorted(finished)


def test_a_repeated_message_completes_what_was_lost_of_the_first() -> None:
    first, second, third = segments(b"x" * (3 * BODY), 5)
    whole = Reassembly()
    assert whole.receive("h1", first, 0.0) is None
    assert whole.receive("h1", third, 0.1) is None
    assert whole.receive("h1", first, 1.0) is None
    assert whole.receive("h1", second, 1.1) == b"x" * (3 * BODY)


def test_unfinished_messages_are_forgotten_in_time() -> None:
    first, second = segments(b"x" * (2 * BODY), 5)
    whole = Reassembly(lifetime_seconds=5.0)
    whole.receive("h1", first, 0.0)
    assert whole.receive("h1", second, 6.0) is None
    assert whole.held_bytes == BODY


def test_a_flood_of_unfinished_messages_costs_its_sender_only() -> None:
    whole = Reassembly()
    first, second = segments(b"y" * (2 * BODY), 1)
    whole.receive("honest", first, 0.0)
    for number in range(10_000):
        whole.receive("flood", segments(b"x" * (2 * BODY), number)[0], 0.0)
    assert whole.held_bytes <= 5 * BODY
    assert whole.receive("honest", second, 0.0) == b"y" * (2 * BODY)


def test_a_flood_of_senders_is_bounded() -> None:
    limit = 100 * BODY
    whole = Reassembly(max_senders=50, max_held_bytes=limit)
    for number in range(2_000):
        whole.receive(number, segments(b"x" * (2 * BODY), 1)[0], 0.0)
    assert whole.held_bytes <= 50 * BODY
    whole = Reassembly(max_held_bytes=limit)
    for number in range(2_000):
        whole.receive(number, segments(b"x" * (2 * BODY), 1)[0], 0.0)
        assert whole.held_bytes <= limit + BODY


@law
@given(st.binary(max_size=40) | st.binary(max_size=40).map(lambda rest: b"PL" + rest))
def test_any_packet_is_a_message_a_segment_or_refused(packet: bytes) -> None:
    whole = Reassembly()
    try:
        found = whole.receive("h1", packet, 0.0)
    except WireError:
        assert whole.held_bytes == 0
        return
    assert found is None or found == packet or packet.startswith(b"PL")
    assert whole.held_bytes <= len(packet)


def test_parts_that_contradict_each_other_are_refused() -> None:
    whole = Reassembly()
    whole.receive("h1", segments(b"x" * (3 * BODY), 5)[0], 0.0)
    with pytest.raises(WireError):
        whole.receive("h1", segments(b"x" * (4 * BODY), 5)[1], 0.0)
    with pytest.raises(WireError):
        whole.receive("h1", b"x" * (WHOLE + 1), 0.0)
    with pytest.raises(WireError):
        segments(b"x" * (MAX_MESSAGE + 1), 1)
