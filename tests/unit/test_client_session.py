"""What a session promises, against the real controller logic over real sockets of ::1."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plerion
from plerion.client import (
    AdvertisementRefused,
    ClientError,
    ControllerSilent,
    Delivered,
    LoopbackTransport,
    NotAdvertised,
    SessionClosed,
    Subscription,
    SubscriptionRefused,
    sync,
)
from plerion.client.mmsg import Datagrams
from plerion.client.rehearsal import rehearse
from plerion.content.errors import EventError, FilterError
from plerion.content.schema import Number, Schema
from plerion.controller import rehearsal as controller_rehearsal
from plerion.eventlog.reader import LogReader
from plerion.eventlog.records import Kind
from plerion.index.propose import regular
from plerion.wire import control
from plerion.wire.event import EventDatagram, encode
from tests.unit.client_network import SCHEMA, Network

PATIENCE_SECONDS = 20.0


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    """Kernels that a machine meets for the first time take longer than anybody here has patience for."""
    rehearse()
    controller_rehearsal.rehearse(regular(SCHEMA, 24))


def run(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scene, 3 * PATIENCE_SECONDS))


async def until(holds: Callable[[], bool]) -> None:
    """Waits for a condition, for a bounded time."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():
            await asyncio.sleep(0.005)


async def some(subscription: Subscription, count: int) -> list[Delivered]:
    """The next events, as many as were asked for."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        return [await anext(subscription) for _ in range(count)]


def warm(temperature: float = 35.0, **more: Any) -> dict[str, Any]:
    return {"temperature": temperature, "floor": 3, "room": "attic", **more}


def test_a_subscriber_gets_what_it_asked_for_from_the_first_event_on() -> None:
    async def scene() -> None:
        async with Network.open() as network, network.connect("h1") as here, network.connect("h5") as there:
            await here.advertise("temperature > 0")
            for round_ in range(20):
                async with there.subscribe("temperature > 30 AND room = 'attic'") as hot:
                    await here.publish([warm(31 + round_), warm(20), warm(35, room="hall")])
                    (got,) = await some(hot, 1)
                    assert got.event == warm(31 + round_)
                    assert (got["floor"], type(got["floor"])) == (3, int)
                    assert got.publisher == here.publisher
                    assert hot.counts.wanted == 1

    run(scene())


def test_an_event_that_two_subscriptions_want_is_handed_to_both() -> None:
    async def scene() -> None:
        async with Network.open() as network, network.connect("h1") as here, network.connect("h5") as there:
            await here.advertise("TRUE")
            async with there.subscribe("temperature > 30") as hot, there.subscribe("floor = 3") as third:
                await here.publish(warm(), {"note": "as sent"})
                first, second = await some(hot, 1), await some(third, 1)
                assert first == second
                assert first[0].extra == {"note": "as sent"}
                assert there.totals.received == 1

    run(scene())


def test_counts_say_what_was_wanted_what_was_not_and_what_is_missing() -> None:
    async def scene() -> None:
        opened = Network.open(regular(SCHEMA, 4))
        async with opened as network, network.connect("h1") as here, network.connect("h5") as there:
            await here.advertise("TRUE")
            async with there.subscribe("temperature BETWEEN 21 AND 22") as narrow:
                points = np.column_stack([np.linspace(20, 39.9, 400), np.full(400, 3), np.zeros(400)])
                await here.publish(points)
                await until(lambda: narrow.counts.received == 400)
                exact = int(((points[:, 0] >= 21) & (points[:, 0] <= 22)).sum())
                assert narrow.counts.wanted == exact
                assert narrow.counts.false_positives == 400 - exact
                assert narrow.counts.gaps is None
                assert narrow.counts.latency.count == exact
                assert 0 < (narrow.counts.latency.quantile(0.5) or 0) < PATIENCE_SECONDS
                assert len(narrow) == exact

    run(scene())


def test_gaps_are_counted_where_every_event_is_wanted_and_doubles_are_dropped() -> None:
    async def scene() -> None:
        async with Network.open() as network, network.connect("h1") as here, network.connect("h5") as there:
            await here.advertise("TRUE")
            async with there.subscribe("TRUE") as everything:
                (port,) = network.ports["h5"]
                await here.publish(warm())
                network.ports["h5"] = []
                await here.publish([warm(), warm()])
                network.ports["h5"] = [port, port]
                await here.publish(warm())
                await until(lambda: everything.counts.doubles == 1)
                assert (everything.counts.received, everything.counts.gaps) == (2, 2)
                assert [got.sequence for got in await some(everything, 2)] == [0, 3]

    run(scene())


def test_what_is_not_advertised_is_refused_before_anything_is_sent() -> None:
    async def scene() -> None:
        async with Network.open() as network, network.connect("h1") as here:
            with pytest.raises(NotAdvertised, match="nothing is advertised"):
                await here.publish(warm())
            name = await here.advertise("temperature > 30")
            with pytest.raises(NotAdvertised, match=r"event 1 .* outside of what the session advertised"):
                await here.publish([warm(), warm(10)])
            assert here.published == 0
            await here.unadvertise(name)
            with pytest.raises(NotAdvertised):
                await here.publish(warm())

    run(scene())


def test_a_wrong_event_or_filter_is_refused_by_name() -> None:
    async def scene() -> None:
        async with Network.open() as network, network.connect("h1") as here:
            await here.advertise("TRUE")
            for event, said in (
                (warm(temperature=99), "'temperature': 99 is outside"),
                ({"temprature": 1}, "did you mean 'temperature'"),
                (warm(room="kitchen"), "'kitchen' is not one of its 3 values"),
                ((1, 2), "an event of 2 values under 3 attributes"),
                (np.array([[1.0, 2.5, 0.0]]), "event 0: 'floor': 2.5 is not whole"),
                (np.array([[1.0, 2.0, 7.0]]), "'room' has no value of rank 7"),
                (np.zeros((2, 5)), "an array of shape"),
                ({"temperature": [1, 2], "floor": [1]}, "the same number of rows"),
            ):
                with pytest.raises(EventError, match=said):
                    await here.publish(event)
            with pytest.raises(FilterError):
                await here.subscribe("temperature >")
            with pytest.raises(FilterError):
                await here.advertise("humidity > 3")
            assert here.published == 0
            assert network.asked["Subscribe"] == 0

    run(scene())


def test_every_way_of_publishing_says_the_same() -> None:
    async def scene() -> None:
        async with Network.open() as network, network.connect("h1") as here, network.connect("h5") as there:
            await here.advertise("TRUE")
            async with there.subscribe("TRUE") as everything:
                await here.publish({"temperature": 21.5, "room": "hall"})
                await here.publish([21.5, None, "hall"])
                await here.publish([{"temperature": 21.5, "room": "hall"}])
                await here.publish([(21.5, None, "hall")])
                await here.publish(np.array([[21.5, np.nan, 1.0]]))
                await here.publish({"temperature": np.array([21.5]), "room": ["hall"]})
                got = await some(everything, 6)
                assert {tuple(one.event.items()) for one in got} == {
                    (("temperature", 21.5), ("floor", None), ("room", "hall"))
                }
                assert [one.sequence for one in got] == list(range(6))

    run(scene())


def test_a_refusal_carries_the_controllers_reason_and_leaves_nothing_behind() -> None:
    async def scene() -> None:
        async with Network.open() as network, network.connect("h1") as here:
            network.quota = 1
            async with here.subscribe("TRUE", "one"):
                with pytest.raises(SubscriptionRefused, match="quota") as caught:
                    await here.subscribe("TRUE", "two")
                assert caught.value.name == "two"
                with pytest.raises(ClientError, match="already"):
                    await here.subscribe("TRUE", "one")
            await here.advertise("temperature > 1", "a")
            with pytest.raises(AdvertisementRefused, match="is taken by another"):
                await here.advertise("temperature > 2", "a")
            assert not network.state.subscriptions

    run(scene())


def test_lost_messages_are_repeated_and_nothing_happens_twice() -> None:
    async def scene() -> None:
        async with Network.open() as network:
            heard: set[tuple[str, int]] = set()

            def lose_the_first(request: control.Request) -> bool:
                key = type(request).__name__, request.number
                return key not in heard and not heard.add(key)  # type: ignore[func-returns-value]  # adds and is true

            network.lose = lose_the_first
            async with network.connect("h1") as here, here.subscribe("TRUE"):
                assert len(network.state.subscriptions) == 1
                assert network.asked["Subscribe"] == 2
            assert not network.state.subscriptions

    run(scene())


def test_a_long_filter_travels_in_segments() -> None:
    async def scene() -> None:
        async with Network.open() as network, network.connect("h1") as here:
            text = " OR ".join(f"temperature BETWEEN {n} AND {n + 0.5}" for n in range(60))
            async with here.subscribe(text):
                assert [kept.filter for kept in network.state.subscriptions.values()] == [text]

    run(scene())


def test_without_an_answer_the_error_says_what_to_check() -> None:
    async def scene() -> None:
        transport = LoopbackTransport()
        with pytest.raises(
            ControllerSilent, match=r"no answer to Join .* within 0.3 s.* check that `plerion up`"
        ):
            await plerion.connect(transport=transport, controller=("::1", 9), deadline_seconds=0.3)
        transport.close()

    run(scene())


def test_a_controller_that_forgot_is_told_everything_again() -> None:
    async def scene() -> None:
        async with (
            Network.open() as network,
            network.connect("h1", lease_seconds=0.6) as here,
            network.connect("h5") as there,
        ):
            await here.advertise("TRUE")
            async with there.subscribe("temperature > 30") as hot, there.subscribe("floor = 9"):
                network.forget()
                await until(lambda: here.joins == 2)  # the keep-alive found out
                await there.advertise("floor = 1")  # any request finds out, and goes through
                assert there.joins == 2
                assert len(network.state.subscriptions) == 2
                assert len(network.state.advertisements) == 2
                await here.publish(warm())
                assert len(await some(hot, 1)) == 1

    run(scene())


def test_a_subscription_that_is_not_taken_back_ends_with_the_reason() -> None:
    async def scene() -> None:
        async with Network.open() as network, network.connect("h5", lease_seconds=0.6) as there:
            hot = await there.subscribe("temperature > 30")
            network.forget()
            network.quota = 0
            with pytest.raises(SubscriptionRefused, match="quota"):
                await some(hot, 1)

    run(scene())


def test_keep_alives_come_three_times_a_lease_and_leaving_withdraws_everything() -> None:
    async def scene() -> None:
        async with Network.open() as network:
            async with network.connect("h1", lease_seconds=0.3) as here:
                await here.advertise("TRUE")
                await here.subscribe("TRUE")
                await until(lambda: network.asked["KeepAlive"] >= 5)
            assert not network.state.subscriptions
            assert not network.state.advertisements
            with pytest.raises(SessionClosed):
                await here.publish(warm())
            await here.close()

    run(scene())


def test_another_description_is_fetched_and_used_when_it_is_announced() -> None:
    async def scene() -> None:
        async with Network.open() as network, network.connect("h1") as here, network.connect("h5") as there:
            await here.advertise("TRUE")
            hot = await there.subscribe("temperature > 30")
            gone = await there.subscribe("room = 'attic'")
            schema = Schema((Number("floor", 0, 40, integer=True), Number("temperature", -20, 60)))
            network.describe(regular(schema, 24, epoch=7))
            network.notify()
            await until(lambda: here.schema == there.schema == schema)
            with pytest.raises(ClientError, match="no meaning under the new schema"):
                await some(gone, 1)
            assert hot.bounds.shape == (1, 2, 2)
            await hot.close()

    run(scene())


@pytest.mark.parametrize(
    ("policy", "kept"), [("drop-oldest", [15, 16, 17, 18, 19]), ("drop-newest", [0, 1, 2, 3, 4])]
)
def test_a_full_queue_drops_as_it_says_and_counts_it(policy: Any, kept: list[int]) -> None:
    async def scene() -> None:
        async with Network.open() as network, network.connect("h1") as here, network.connect("h5") as there:
            await here.advertise("TRUE")
            slow = await there.subscribe("TRUE", queue=5, on_full=policy)
            await here.publish([warm()] * 20)
            await until(lambda: slow.counts.received == 20)
            assert slow.counts.dropped == 15
            assert [got.sequence for got in await some(slow, 5)] == kept

    run(scene())


def test_a_subscriber_that_waits_loses_nothing_and_gets_all_in_order() -> None:
    async def scene() -> None:
        async with Network.open() as network, network.connect("h1") as here, network.connect("h5") as there:
            await here.advertise("TRUE")
            slow = await there.subscribe("TRUE", queue=50, on_full="wait")
            await here.publish([warm()] * 3_000)
            await until(lambda: len(slow) >= 50)
            assert len(slow) < 1_000  # reading stopped
            got = await some(slow, 3_000)
            assert [one.sequence for one in got] == list(range(3_000))
            assert (slow.counts.dropped, there.dropped) == (0, 0)

    run(scene())


def test_readers_get_what_waits_and_then_the_end() -> None:
    async def scene() -> None:
        async with Network.open() as network, network.connect("h1") as here, network.connect("h5") as there:
            await here.advertise("TRUE")
            async with there.subscribe("TRUE") as everything:
                await here.publish([warm()] * 3)
                await until(lambda: len(everything) == 3)
            assert [got.sequence async for got in everything] == [0, 1, 2]
            assert await everything.batch() == []
            for options in ({"queue": 0}, {"on_full": "explode"}):
                with pytest.raises(ClientError):
                    await there.subscribe("TRUE", **options)

    run(scene())


def test_a_reader_that_gives_up_disturbs_no_other_and_may_come_back() -> None:
    async def scene() -> None:
        async with Network.open() as network, network.connect("h1") as here, network.connect("h5") as there:
            await here.advertise("TRUE")
            everything = await there.subscribe("TRUE")
            patient = asyncio.create_task(some(everything, 1))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(everything.batch(), 0.05)
            await here.publish(warm())
            assert len(await patient) == 1
            await here.publish(warm())
            assert len(await some(everything, 1)) == 1

    run(scene())


def test_malformed_datagrams_are_counted_and_disturb_nobody() -> None:
    async def scene() -> None:
        async with Network.open() as network, network.connect("h1") as here, network.connect("h5") as there:
            await here.advertise("TRUE")
            everything = await there.subscribe("TRUE")
            hostile = LoopbackTransport(network.ports["h5"])
            bad = [
                b"",
                b"\xc1",
                b"x" * 9_000,
                encode(EventDatagram("p", 1, 0, 0, [], None)),
                encode(EventDatagram("p", 1, 0, 0, [99.0, 3, "attic"], None)),
                encode(EventDatagram("p", 1, 0, 0, [9.0, 3.5, "attic"], None)),
                encode(EventDatagram("p", 1, 0, 0, [9.0, 3, "kitchen"], None)),
                encode(EventDatagram("p", 1, 0, 0, ["9.0", 3, "attic"], None)),
                encode(EventDatagram("p", 1, 0, 0, [float("-inf"), 3, "attic"], None)),
            ]
            await hostile.send(np.zeros((len(bad), 16), np.uint8), Datagrams.of(bad))
            hostile.close()
            await here.publish(warm())
            assert len(await some(everything, 1)) == 1
            assert there.totals.malformed == len(bad)
            assert there.totals.received == 1

    run(scene())


def test_a_session_samples_into_the_event_log(tmp_path: Path) -> None:
    async def scene() -> None:
        async with (
            Network.open(regular(SCHEMA, 2)) as network,
            network.connect("h1", log=tmp_path) as here,
            network.connect("h5", log=tmp_path) as there,
        ):
            await here.advertise("TRUE")
            async with there.subscribe("temperature > 35", "hot") as hot:
                await here.publish([warm(33), warm(40)])
                await until(lambda: hot.counts.received == 2)
        reader = LogReader(tmp_path)
        rows = {kind: sum(getattr(part, "rows", 0) for part in reader.parts(kind)) for kind in Kind}
        assert rows == {Kind.EVENTS: 2, Kind.DELIVERIES: 2, Kind.SUBSCRIPTIONS: 2}

    run(scene())


def test_the_facade_without_a_loop_does_the_same() -> None:
    async def scene() -> None:
        async with Network.open() as network:

            def connected(host: str) -> sync.Session:
                return sync.connect(controller=network.target, transport=network.expect(host))

            def application() -> None:
                with connected("h1") as here, connected("h5") as there:
                    here.advertise("TRUE")
                    with there.subscribe("temperature > 30") as hot:
                        assert here.publish([warm(10), warm(40)]) == 2
                        (got,) = hot.batch(PATIENCE_SECONDS)
                        assert got["temperature"] == 40
                        assert hot.counts.wanted == 1
                        assert hot.batch(0.01) == []
                    assert list(hot) == []
                    with pytest.raises(FilterError):
                        there.subscribe("temperature >")
                    assert (here.host, there.host) == ("h1", "h5")

            await asyncio.to_thread(application)

    run(scene())
