"""The fast ways of the client agree with their definitions: positions, codes, matches, and what was seen before."""

from __future__ import annotations

import time

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from plerion.client.counts import Counts, Latency, Sequences
from plerion.client.delivered import Delivered
from plerion.client.publication import addresses, datagrams, points_of
from plerion.client.reception import Floats, Reception
from plerion.client.window import SIZE, Window, Windows
from plerion.content.box import bounds, boxes
from plerion.content.event import Event, point
from plerion.content.semantics import matches
from plerion.index.address import AddressPlan
from plerion.index.content_index import ContentIndex
from plerion.index.encode import encode
from plerion.wire.event import decode
from tests.laws.indexes import events, filters, indexes, law

HERE, THERE = bytes(15) + b"\1", bytes(15) + b"\2"  # addresses of two hosts


class Kept:
    """An interest that keeps everything."""

    def __init__(self, given: Floats) -> None:
        self.bounds, self.counts = given, Counts()
        self.events: list[Delivered] = []

    def offer(self, events: list[Delivered]) -> None:
        self.events += events


def as_sent(index: ContentIndex, given: list[Event], first: int = 0) -> list[bytes]:
    points = np.array([point(index.schema, event) for event in given])
    found = datagrams(index.schema, points, "p", first, index.epoch, time.time_ns())
    return [found.body[at : at + n] for at, n in zip(found.starts, found.lengths, strict=True)]


@law
@given(st.data())
def test_events_are_handed_to_exactly_those_whose_filter_matches(data: st.DataObject) -> None:
    index = data.draw(indexes())
    sent = data.draw(st.lists(events(index.schema), min_size=1, max_size=8))
    asked = data.draw(st.lists(filters(index.schema), max_size=3))
    kept = [Kept(bounds(boxes(filter), index.schema)) for filter in asked]
    reception = Reception(index)
    for interest in kept:
        reception.admit(interest)
    reception.take(as_sent(index, sent), time.time_ns(), [HERE] * len(sent))
    assert reception.totals.malformed == 0
    assert reception.totals.received == len(sent)
    for filter, interest in zip(asked, kept, strict=True):
        wanted = [at for at, event in enumerate(sent) if matches(filter, event)]
        assert [got.sequence for got in interest.events] == wanted
        for got in interest.events:
            assert point(index.schema, got.event) == point(index.schema, sent[got.sequence])


@law
@given(st.data())
def test_a_datagram_carries_the_event_that_was_published(data: st.DataObject) -> None:
    index = data.draw(indexes())
    sent = data.draw(st.lists(events(index.schema), min_size=1, max_size=5))
    for number, body in enumerate(as_sent(index, sent, 7), 7):
        found = decode(body)
        assert (found.publisher, found.sequence, found.epoch) == ("p", number, index.epoch)
        values = dict(zip(index.schema.names, found.values, strict=True))
        assert point(index.schema, values) == point(index.schema, sent[number - 7])


@law
@given(st.data(), st.integers(0, 4), st.integers(0, 30))
def test_addresses_of_many_codes_are_those_of_each(data: st.DataObject, bits: int, epoch: int) -> None:
    index = data.draw(indexes())
    plan = AddressPlan("ipv6", bits, epoch)
    assume(index.bits <= plan.capacity)
    sent = data.draw(st.lists(events(index.schema), min_size=1, max_size=5))
    codes = encode(index, points_of(index.schema, sent))
    found = [row.tobytes() for row in addresses(plan, codes.dz)]
    assert found == [plan.address(dz).packed for dz in codes.dz]


@law
@given(st.data())
def test_all_copies_of_an_event_are_handed_out_once_and_more_are_doubles(data: st.DataObject) -> None:
    index = data.draw(indexes())
    sent = data.draw(events(index.schema))
    codes = len(index.codes(point(index.schema, sent)))
    arrivals = data.draw(st.integers(1, 5))
    kept = Kept(np.broadcast_to([-np.inf, np.inf], (1, len(index.schema.attributes), 2)))
    reception = Reception(index)
    reception.admit(kept)
    for _ in range(arrivals):
        reception.take(as_sent(index, [sent]), time.time_ns(), [HERE])
    assert len(kept.events) == kept.counts.received == 1
    assert kept.counts.copies == max(0, min(codes, arrivals) - 1)
    assert kept.counts.doubles == arrivals - 1 - kept.counts.copies


@law
@given(st.data())
def test_a_subscription_counts_from_its_beginning_to_its_end_only(data: st.DataObject) -> None:
    index = data.draw(indexes())
    sent = data.draw(st.lists(events(index.schema), min_size=3, max_size=8))
    first, last = sorted(data.draw(st.tuples(st.integers(0, len(sent)), st.integers(0, len(sent)))))
    kept = Kept(np.broadcast_to([-np.inf, np.inf], (1, len(index.schema.attributes), 2)))
    reception = Reception(index)
    for at, body in enumerate(as_sent(index, sent)):
        if at == first:
            reception.admit(kept)
        if at == last and first < last:
            reception.dismiss(kept)
        reception.take([body], time.time_ns(), [HERE])
    expected = list(range(first, last)) if first < last else list(range(first, len(sent)))
    assert [got.sequence for got in kept.events] == expected
    assert kept.counts.received == kept.counts.wanted == len(expected)
    assert kept.counts.false_positives == 0
    assert reception.totals.false_positives == len(sent) - len(expected)


steps = st.lists(
    st.integers(0, 3) | st.integers(0, 3 * SIZE) | st.sampled_from([SIZE - 1, SIZE, SIZE + 1]), max_size=40
)


@law
@given(steps)
def test_a_window_knows_exactly_what_it_has_seen(numbers: list[int]) -> None:
    window, seen, top = Window(), set[int](), -1
    for number in numbers:
        too_old = number <= top - SIZE
        assert window.first_time(number) == (number not in seen and not too_old)
        seen.add(number)
        top = max(top, number)


def test_publishers_that_were_silent_for_longest_are_forgotten() -> None:
    windows = Windows(max_publishers=3)
    for name in "abcabd":
        windows.of(HERE, name).first_time(1)
    assert len(windows) == 3
    assert not windows.of(HERE, "a").first_time(1)
    assert windows.of(HERE, "c").first_time(1)


def test_names_that_one_host_makes_up_cost_another_host_nothing() -> None:
    windows = Windows(max_publishers=3)
    windows.of(HERE, "p").first_time(1)
    for number in range(10):
        windows.of(THERE, f"p{number}").first_time(1)
    assert len(windows) == 3
    assert not windows.of(HERE, "p").first_time(1)


@law
@given(st.data(), st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_whoever_sends_in_the_name_of_another_does_not_silence_that_one(
    data: st.DataObject, forged: int, first: int
) -> None:
    index = data.draw(indexes())
    sent = data.draw(events(index.schema))
    kept = Kept(np.broadcast_to([-np.inf, np.inf], (1, len(index.schema.attributes), 2)))
    kept.counts.sequences = Sequences()
    reception = Reception(index)
    reception.admit(kept)
    reception.take(as_sent(index, [sent], forged), time.time_ns(), [THERE])
    own = as_sent(index, [sent], first)
    reception.take(own, time.time_ns(), [HERE])
    assert [event.sequence for event in kept.events] == [forged, first]
    assert (kept.counts.doubles, kept.counts.copies, kept.counts.gaps) == (0, 0, 0)
    reception.take(own, time.time_ns(), [HERE])
    assert len(kept.events) == 2, "the same host's event again is no other one"


def test_the_mean_latency_stays_meaningful_whatever_times_are_sent() -> None:
    latency = Latency()
    latency.add(np.full(256, 2**62))
    assert latency.total_ns == 256 * 2**40


@law
@given(st.lists(st.integers(0, 10**11), min_size=1, max_size=50), st.floats(0.01, 1))
def test_a_quantile_of_the_latency_is_at_most_a_bucket_too_high(taken: list[int], share: float) -> None:
    latency = Latency()
    latency.add(np.array(taken))
    exact = sorted(taken)[max(0, int(np.ceil(share * len(taken))) - 1)] / 1e9
    found = latency.quantile(share)
    assert found is not None
    assert exact <= found <= max(exact, 1e-9) * 2 ** (1.01 / 16)


@law
@given(st.permutations(range(12)), st.sets(st.integers(0, 11)))
def test_holes_are_the_numbers_between_that_never_came(order: list[int], lost: set[int]) -> None:
    heard = Sequences()
    came = [number for number in order if number not in lost]
    for number in came:
        heard.add(HERE, "p", number)
    assert heard.holes == (max(came) - min(came) + 1 - len(came) if came else 0)


def test_a_batch_with_nothing_in_it_changes_nothing() -> None:
    assert Latency().quantile(0.5) is None
    assert Latency().to_json()["mean"] is None
    assert Counts().gaps is None
