"""The whole service on simulated switches: hosts in-band, leases, quotas, losses, full tables and restarts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from plerion.controller.config import LeaseTimes
from plerion.controller.inputs import Advertise as AdvertiseInput
from plerion.controller.inputs import Subscribe as SubscribeInput
from plerion.controller.journal import Journal, JournalError
from plerion.controller.memory import replayed
from plerion.controller.quota import Quotas
from plerion.controller.state import Settings
from plerion.index.propose import regular
from plerion.topology import HostId, SwitchId, fat_tree, ring
from plerion.wire.control import (
    Advertise,
    Describe,
    KeepAlive,
    Leave,
    Part,
    Ready,
    Refused,
    Unknown,
    Unsubscribe,
    encode,
)
from plerion.wire.description import digest, unpack
from tests.scenarios.service_scene import (
    SCHEMA,
    SETTINGS,
    Host,
    config,
    network_of,
    serving,
)
from tests.scenarios.simulated_network import SimulatedNetwork, until

S1, S2, S3 = SETTINGS.topology.switches


def test_a_host_joins_learns_the_network_and_is_ready_when_the_switches_are(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(config(tmp_path)) as service:
            h1, h3 = Host(service, "h1"), Host(service, "h3", "f" * 16)
            welcome = await h1.join()
            assert (welcome.host, welcome.lease_seconds) == ("h1", 30.0)
            parts = [await h1.ask(Describe(next(h1.numbers), h1.session, n)) for n in range(welcome.parts)]
            packed = b"".join(part.body for part in parts if isinstance(part, Part))
            assert digest(packed) == welcome.digest
            assert unpack(packed).index == SETTINGS.index
            await h3.join()
            sent = Advertise(next(h1.numbers), h1.session, "a", "TRUE")
            assert await h1.ask(sent) == Ready(sent.number)
            asked = h3.subscribe("q", "x < 100 AND y > 7")
            assert await h3.ask(asked) == Ready(asked.number)
            state = service.controller.state
            assert list(state.subscriptions) == [f"h3/{'f' * 16}/q"]
            assert await service.network.tables() == state.table.tables()
            assert await service.network.admissions() == state.admitted != frozenset()

    asyncio.run(scene())


def test_who_asks_is_who_sits_at_the_port_whatever_the_packet_says(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(config(tmp_path)) as service:
            h1 = Host(service, "h1")
            await h1.join()
            asked = h1.subscribe("q", "TRUE")
            before = len(h1.replies())
            h1.say(encode(asked), source="h3")
            await until(lambda: len(h1.replies()) > before)
            (found,) = service.controller.state.subscriptions.values()
            assert found.host == "h1"

    asyncio.run(scene())


def test_a_repeated_request_gets_the_same_answer_and_happens_once(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(config(tmp_path)) as service:
            h1 = Host(service, "h1")
            await h1.join()
            asked = h1.subscribe("q", "x < 9")
            assert [await h1.ask(asked) for _ in range(3)] == [Ready(asked.number)] * 3
            wrong = h1.subscribe("r", "x <")
            first = await h1.ask(wrong)
            assert isinstance(first, Refused)
            assert await h1.ask(wrong) == first
            assert len(service.controller.state.subscriptions) == 1
            assert service.inband.desk.tally.repeats == 3

    asyncio.run(scene())


def test_bad_datagrams_are_counted_and_cost_nobody_anything(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(config(tmp_path)) as service:
            h1 = Host(service, "h1")
            await h1.join()
            for payload in (
                b"",
                b"\xc1",
                b"PL\x01\x00",
                b"PL" + b"\xff" * 40,
                b"\x93\xa9subscribe",
                b"x" * 1200,
            ):
                h1.say(payload)
            network_of(service).hand_up(h1.place, b"\x00" * 5)
            network_of(service).hand_up(h1.place, b"\x33\x33" + b"\x00" * 10 + b"\x86\xdd" + b"\x60" * 60)
            bomb = h1.subscribe("bomb", " OR ".join(f"(x = {i} AND y = {i})" for i in range(2_000)))
            refusal = await h1.ask(bomb)
            assert isinstance(refusal, Refused)
            assert service.inband.tally.malformed == 8
            asked = h1.subscribe("q", "TRUE")
            assert await h1.ask(asked) == Ready(asked.number)

    asyncio.run(scene())


def test_a_host_that_died_is_withdrawn_after_its_lease_and_one_that_lives_is_not(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(config(tmp_path)) as service:
            dead, alive = Host(service, "h1"), Host(service, "h3")
            assert (await dead.join(1.0)).lease_seconds == 1.0
            await alive.join(1.0)
            for host in (dead, alive):
                await host.ask(Advertise(next(host.numbers), host.session, "a", "TRUE"))
                await host.ask(host.subscribe("q", "x > 3"))
            kept = await service.controller.handle(SubscribeInput("h2/-/operator", "h2", "TRUE"))
            assert kept.ready
            state = service.controller.state

            async def breathe() -> None:
                while any(one.host == "h1" for one in state.subscriptions.values()):
                    breath = KeepAlive(next(alive.numbers), alive.session)
                    assert await alive.ask(breath) == Ready(breath.number)

            await asyncio.wait_for(breathe(), 10)
            assert {one.host for one in state.subscriptions.values()} == {"h2", "h3"}
            await until(lambda: {one.host for one in state.advertisements.values()} == {"h3"})
            lost = dead.subscribe("again", "TRUE")
            assert await dead.ask(lost) == Unknown(lost.number)
            await service.controller.settled()
            assert await service.network.tables() == state.table.tables()

    asyncio.run(scene())


def test_leaving_withdraws_all_of_a_session_and_nothing_else(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(config(tmp_path)) as service:
            one, other = Host(service, "h1", "a" * 16), Host(service, "h1", "b" * 16, 40_001)
            for host in (one, other):
                await host.join()
                await host.ask(host.subscribe("q", "x > 3"))
            left = Leave(next(one.numbers), one.session)
            assert await one.ask(left) == Ready(left.number)
            assert list(service.controller.state.subscriptions) == [f"h1/{'b' * 16}/q"]
            gone = Unsubscribe(next(other.numbers), other.session, "never was")
            assert await other.ask(gone) == Ready(gone.number), "what is not there is withdrawn"

    asyncio.run(scene())


def test_a_flood_is_refused_by_quota_and_others_are_served(tmp_path: Path) -> None:
    async def scene() -> None:
        quotas = Quotas(subscriptions=50, requests_per_second=10_000)
        async with serving(config(tmp_path, quotas=quotas)) as service:
            flooder, other = Host(service, "h1"), Host(service, "h3")
            await flooder.join()
            await other.join()
            for i in range(500):
                flooder.send(flooder.subscribe(f"q{i}", f"x = {i % 256}"))
            asked = other.subscribe("mine", "x < 4")
            assert await other.ask(asked) == Ready(asked.number)
            await until(lambda: len(flooder.replies()) == 2 + 500)
            refusals = [reply for reply in flooder.replies() if isinstance(reply, Refused)]
            assert len(refusals) == 450
            assert refusals[0].reason == (
                "h1 has 50 subscriptions, and at most 50 are allowed: withdraw some first"
            )
            assert len(service.controller.state.subscriptions) == 51
            freed = Unsubscribe(next(flooder.numbers), flooder.session, "q0")
            await flooder.ask(freed)
            again = flooder.subscribe("later", "x = 1")
            assert await flooder.ask(again) == Ready(again.number)

    asyncio.run(scene())


def test_who_asks_too_fast_is_told_so(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(config(tmp_path, quotas=Quotas(requests_per_second=5))) as service:
            h1 = Host(service, "h1")
            await h1.join()
            for _ in range(40):
                h1.send(KeepAlive(next(h1.numbers), h1.session))
            await until(lambda: len(h1.replies()) == 2 + 40)
            refused = [r for r in h1.replies() if isinstance(r, Refused)]
            assert len(refused) >= 25
            assert refused[0].reason == "h1 asks more than 5 times a second: wait a little"

    asyncio.run(scene())


def test_after_a_restart_all_that_was_acknowledged_is_there_and_nothing_right_is_sent_again(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        network = SimulatedNetwork(SETTINGS.topology)
        async with serving(config(tmp_path), network) as service:
            h1, h3 = Host(service, "h1"), Host(service, "h3")
            await h1.join()
            await h3.join(1.0)
            await h1.ask(Advertise(next(h1.numbers), h1.session, "a", "TRUE"))
            for i in range(20):
                await h3.ask(h3.subscribe(f"q{i}", f"x < {i + 1}"))
            tables = await network.tables()
        for switch in SETTINGS.topology.switches:
            network.lose(switch)
        told = dict(network.told)
        network._events = asyncio.Queue()
        network.sent.clear()
        async with serving(config(tmp_path, leases=LeaseTimes(1.0, 60.0)), network) as service:
            assert await network.tables() == tables
            assert dict(network.told) == told, "not one entry was sent again"
            h3.service = h1.service = service
            more = h3.subscribe("more", "y < 4")
            assert await h3.ask(more) == Ready(more.number), "its session lives on"
            state = service.controller.state
            await until(lambda: not state.subscriptions and not state.advertisements)

    asyncio.run(scene())


def test_a_lost_switch_holds_up_only_who_relies_on_it(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(config(tmp_path, grace_seconds=60.0)) as service:
            controller, network = service.controller, network_of(service)
            await controller.handle(AdvertiseInput("h1/-/a", "h1", "x < 128"))
            await controller.handle(AdvertiseInput("h2/-/b", "h2", "x >= 128"))
            network.lose(S3)
            await until(lambda: S3 in controller.switches.behind)
            far = asyncio.create_task(controller.handle(SubscribeInput("far", "h3", "x < 10")))
            near = await asyncio.wait_for(controller.handle(SubscribeInput("near", "h2", "x < 10")), 5)
            assert near.ready
            again = asyncio.create_task(controller.handle(SubscribeInput("far", "h3", "x < 10")))
            await controller.settled()
            assert not far.done()
            assert not again.done(), "who asks again is not told before it is true"
            assert not service.ready
            network.connect(S3)
            assert (await asyncio.wait_for(far, 5)).ready
            assert (await asyncio.wait_for(again, 5)).ready
            assert await network.tables() == controller.state.table.tables()

    asyncio.run(scene())


def test_a_switch_that_stays_away_is_gone_round_and_comes_back_with_all_it_needs(tmp_path: Path) -> None:
    chosen = Settings(ring(4), regular(SCHEMA, 16), budget=8)

    async def scene() -> None:
        async with serving(config(tmp_path, chosen)) as service:
            controller, network = service.controller, network_of(service)
            await controller.handle(AdvertiseInput("h1/-/a", "h1", "TRUE"))
            await controller.handle(SubscribeInput("h3/-/q", "h3", "x < 10"))
            crossed = [s for s in (SwitchId("s2"), SwitchId("s4")) if network.told[s]]
            assert len(crossed) == 1
            network.lose(crossed[0], blank=True)
            late = asyncio.create_task(controller.handle(SubscribeInput("h3/-/r", "h3", "x > 100")))
            assert (await asyncio.wait_for(late, 10)).ready, "after the grace there is another way"
            assert list(controller.state.dead_switches) == crossed
            network.connect(*crossed)
            await until(lambda: service.ready)
            assert not controller.state.dead_switches
            assert await network.tables() == controller.state.table.tables()

    asyncio.run(scene())


def test_only_who_does_not_fit_is_refused_by_a_full_table(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(config(tmp_path)) as service:
            controller, network = service.controller, network_of(service)
            await controller.handle(AdvertiseInput("h1/-/a", "h1", "TRUE"))
            network.room[S3] = 3
            asked = [
                SubscribeInput(f"q{i}", "h3" if i % 2 else "h2", f"x = {7 * i} AND y = 3") for i in range(10)
            ]
            answers = await controller.handle_all(asked)
            assert [answer.ready for answer in answers] == [i % 2 == 0 or i < 6 for i in range(10)]
            assert answers[9].reason == "s3 does not take the entries that this needs: the table is full"
            assert controller.tally.withdrawn > 0
            assert await network.tables() == controller.state.table.tables()
            gone = [f"q{i}" for i in (7, 9)]
            assert not any(name in controller.state.subscriptions for name in gone)
            assert service.ready
            network.room[S3] = 100
            assert (await controller.handle(asked[9])).ready
            live = list(controller.state.live())
        journal = Journal(tmp_path / "journal", SETTINGS)
        state, _ = replayed(SETTINGS, journal)
        journal.close()
        assert sorted(map(repr, state.live())) == sorted(map(repr, live)), (
            "the journal knows of the withdrawals"
        )

    asyncio.run(scene())


def test_a_link_is_down_while_either_end_is_and_beacons_tell_what_is_miswired(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(config(tmp_path, beacon_seconds=0.1)) as service:
            network, state = network_of(service), service.controller.state
            network.port(S1, 1, up=False)
            await until(lambda: state.dead_links)
            network.port(S2, 1, up=False)
            network.port(S1, 1, up=True)
            network.port(S2, 1, up=True)
            await until(lambda: not state.dead_links)
            await until(lambda: service.watch._learned.recent(asyncio.get_running_loop().time(), 1.0))
            assert not service.watch.comparison, "what was declared is what is there"
            real = network.topology
            network.topology = fat_tree(4, 2)  # whose cables lead elsewhere
            await until(lambda: service.watch.comparison.miswired or service.watch.comparison.missing)
            network.topology = real
            await until(lambda: not service.watch.comparison)

    asyncio.run(scene())


def test_two_controllers_on_one_journal_are_refused_in_one_line(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(config(tmp_path)):
            with pytest.raises(JournalError, match="another controller has it open"):
                async with serving(config(tmp_path)):
                    pass

    asyncio.run(scene())


def test_hosts_are_told_apart_by_port_and_their_switch_is_behind_until_it_is_known(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(config(tmp_path), connect=False) as service:
            network = network_of(service)
            h1 = Host(service, "h1")
            network.connect(S1)
            await h1.join()
            h1.send(Advertise(next(h1.numbers), h1.session, "a", "TRUE"))
            await until(lambda: service.controller.waiting == 1)
            assert len(h1.replies()) == 2, "nothing is true yet of s2 and s3"
            network.connect(S2, S3)
            await until(lambda: len(h1.replies()) == 3)
            assert isinstance(h1.replies()[2], Ready)
            assert HostId("h1") in service.controller.state.sent()

    asyncio.run(scene())
