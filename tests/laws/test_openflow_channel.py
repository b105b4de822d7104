"""How bytes were cut on their way makes no difference to a channel, and damaged ones end it in order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.mutations import a_packet_in, a_port, message, multipart, mutated, ready_channel, samples
from plerion.southbound.openflow.channel import Channel
from plerion.southbound.openflow.codec import encode
from plerion.southbound.openflow.messages import (
    BarrierRequest,
    BundleControl,
    BundleStep,
    EchoRequest,
    Error,
    Hello,
    MultipartRequest,
    Part,
)
from plerion.southbound.openflow.phases import TRANSITIONS, Closed, Occurrence, Phase

GREETING = [encode(Hello(), 1), samples()[5]]


def started() -> tuple[Channel, int, int, int]:
    """A channel that has shaken hands and waits for a barrier, for statistics and for a bundle of three."""
    channel = ready_channel()
    barrier = channel.ask(BarrierRequest(), 0.0)
    statistics = channel.ask(MultipartRequest(Part.TABLES), 0.0)
    bundle = channel.bundle(3, lambda first, _: b"".join(message(14, b"", first + i) for i in range(3)), 0.0)
    channel.outgoing()
    return channel, barrier, statistics, bundle


BARRIER, STATISTICS, BUNDLE = started()[1:]
CLOSE = BUNDLE + 4
said = st.sampled_from(
    [
        encode(EchoRequest(b"are you there"), 99),
        a_packet_in(b"x" * 50),
        message(12, bytes([2]) + bytes(7) + a_port()),
        message(21, b"", BARRIER),
        multipart(Part.TABLES, bytes(24), more=True, xid=STATISTICS),
        multipart(Part.TABLES, bytes(24), xid=STATISTICS),
        encode(Error(5, 1, b"full"), BUNDLE + 2),
        encode(Error(1, 1, b"?"), 4711),
        encode(BundleControl(BUNDLE, BundleStep.OPENED), BUNDLE),
        encode(BundleControl(BUNDLE, BundleStep.CLOSED), CLOSE),
        encode(BundleControl(BUNDLE, BundleStep.COMMITTED), CLOSE + 1),
        message(21, b"", CLOSE + 2),
        message(25, bytes(16)),
        message(19, b""),  # too short: ends the connection
        encode(Hello(), 1),  # out of place: ends it, too
    ]
)


def fed(channel: Channel, parts: Sequence[bytes]) -> tuple[list[Occurrence], bytes, Phase]:
    found: list[Occurrence] = []
    for part in parts:
        found += channel.receive(part, 1.0)
    return found, b"".join(channel.outgoing()), channel.phase


def cut(octets: bytes, places: Sequence[int]) -> list[bytes]:
    ends = sorted({place % (len(octets) + 1) for place in places} | {0, len(octets)})
    return [octets[a:b] for a, b in pairwise(ends)]


@settings(deadline=None)
@given(st.lists(said, max_size=12), st.lists(st.integers(0, 5000), max_size=6))
def test_bytes_one_by_one_give_what_they_give_at_once(messages: list[bytes], places: list[int]) -> None:
    octets = b"".join(messages)
    if not octets:
        return
    at_once = fed(started()[0], [octets])
    assert fed(started()[0], [octets[i : i + 1] for i in range(len(octets))]) == at_once
    assert fed(started()[0], cut(octets, places)) == at_once
    assert fed(started()[0], messages) == at_once


@given(st.lists(st.integers(0, 200), max_size=5))
def test_a_greeting_may_be_cut_anywhere(places: list[int]) -> None:
    octets = b"".join(GREETING)
    whole = fed(Channel(0.0), [octets])
    assert whole[2] is Phase.READY
    assert fed(Channel(0.0), cut(octets, places)) == whole


def test_another_order_of_messages_is_noticed() -> None:
    """The law above compares something: what happened, in its order, and what was sent."""
    echo, packet, barrier = encode(EchoRequest(b"1"), 9), a_packet_in(), message(21, b"", BARRIER)
    straight = fed(started()[0], [echo, packet, barrier])
    assert fed(started()[0], [barrier, packet, echo])[0] != straight[0]
    assert fed(started()[0], [packet, barrier])[1] != straight[1]


def test_mutated_conversations_end_in_order_or_go_on() -> None:
    chance, valid, ended = random.Random(6653), samples(), 0
    channel = started()[0]
    for i in range(5_000):
        found = channel.receive(mutated(valid[i % len(valid)], chance) or b"\0", 1.0)
        closings = [one for one in found if isinstance(one, Closed)]
        assert len(closings) <= 1
        assert (channel.phase is Phase.CLOSED) >= bool(closings)
        if closings:
            assert found[-1] == closings[0]
            assert channel.receive(b"anything", 1.0) == []
            ended += 1
        if closings or i % 10 == 0:  # a length that promises too much swallows what follows
            channel = started()[0]
    assert ended > 500


def test_every_phase_can_end_and_nothing_follows_the_end() -> None:
    assert TRANSITIONS.keys() == set(Phase)
    assert TRANSITIONS[Phase.CLOSED] == {}
    for phase, ways in TRANSITIONS.items():
        assert phase is Phase.CLOSED or Phase.CLOSED in ways.values()
