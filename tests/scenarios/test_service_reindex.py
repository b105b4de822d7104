"""A service changes its index: those who send are waited for, and nobody sends what is not understood."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec

from plerion.controller.api import serving as answering
from plerion.controller.reindex import Automatic
from plerion.controller.run import Service
from plerion.flow.admission import EVENT_PORT
from plerion.index.codec import to_json
from plerion.index.propose import regular
from plerion.topology import Port
from plerion.wire.control import KeepAlive, Leave, Notice, Outdated, Part, Ready, Report, Welcome
from plerion.wire.description import unpack
from tests.scenarios.service_scene import SCHEMA, Host, config, network_of, serving
from tests.scenarios.simulated_network import until

BETTER = msgspec.json.decode(to_json(regular(SCHEMA, 12, [1])))


@asynccontextmanager
async def api(folder: Path, **changes: Any) -> AsyncIterator[tuple[Service, httpx.AsyncClient]]:
    async with (
        serving(config(folder, **changes)) as service,
        answering(service) as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as client,
    ):
        yield service, client


def notices(host: Host) -> list[Notice]:
    return [reply for reply in host.replies() if isinstance(reply, Notice)]


async def told(host: Host, before: int) -> Notice:
    await until(lambda: len(notices(host)) > before)
    return notices(host)[-1]


async def publisher(service: Service, name: str = "h1") -> Host:
    host = Host(service, name)
    await host.join()
    assert isinstance(await host.ask(host.advertise("a", "TRUE")), Ready)
    return host


def test_a_change_waits_for_those_who_send_and_for_nobody_else(tmp_path: Path) -> None:
    async def scene() -> None:
        async with api(tmp_path) as (service, client):
            h1, h3 = await publisher(service), Host(service, "h3")
            await h3.join()
            await h3.ask(h3.subscribe("q", "y < 64"))
            changing = asyncio.create_task(client.post("/v1/reindex", json={"index": BETTER}))
            notice = await told(h1, 0)
            await told(h3, 0)
            under_way = (await client.get("/v1/reindex")).json()["under_way"]
            assert (under_way["strategy"], under_way["waits_for"]) == ("epoch", ["h1"])
            assert not changing.done()
            assert isinstance(await h1.adopt(notice.digest), Ready)
            done = (await changing).json()
            assert (done["done"], done["epoch"], done["strategy"]) == (True, 1, "epoch")
            assert (await client.get("/v1/index")).json()["epoch"] == 1
            table = (await client.get("/v1/tables/s1")).json()["entries"]
            assert [entry["match"] for entry in table] == [{"ipv6_dst": "ff0e:4000::/20"}]
            assert await service.network.tables() == service.controller.state.table.tables()

    asyncio.run(scene())


def test_who_did_not_adopt_the_index_in_force_may_not_advertise_until_it_does(tmp_path: Path) -> None:
    async def scene() -> None:
        async with api(tmp_path) as (service, client):
            late = Host(service, "h2")
            await late.join()
            assert (await client.post("/v1/reindex", json={"index": BETTER})).json()["done"]
            assert isinstance(await late.ask(late.advertise("a", "TRUE")), Outdated)
            before = len(notices(late))
            assert isinstance(await late.ask(KeepAlive(next(late.numbers), late.session)), Ready)
            notice = await told(late, before)
            assert isinstance(await late.adopt(notice.digest), Ready)
            assert isinstance(await late.ask(late.advertise("a", "TRUE")), Ready)

    asyncio.run(scene())


def test_an_advertisement_that_waited_for_a_change_is_not_ready_before_its_session_adopted_it(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with api(tmp_path) as (service, client):
            h1, h2 = await publisher(service), Host(service, "h2")
            await h2.join()
            changing = asyncio.create_task(client.post("/v1/reindex", json={"index": BETTER}))
            await until(lambda: service.controller.rolling.under_way is not None)
            before = len(notices(h1))
            asked = h2.advertise("late", "x < 9")
            asking = asyncio.create_task(h2.ask(asked))
            notice = await told(h1, max(0, before - 1))
            await h1.adopt(notice.digest)
            assert (await changing).json()["done"]
            assert isinstance(await asking, Outdated)
            await h2.adopt((await told(h2, 0)).digest)
            assert isinstance(await h2.ask(h2.advertise("late", "x < 9")), Ready)

    asyncio.run(scene())


def test_a_publisher_that_dies_in_the_middle_is_waited_for_as_long_as_its_lease(tmp_path: Path) -> None:
    async def scene() -> None:
        async with api(tmp_path) as (service, client):
            h1, h2 = Host(service, "h1"), await publisher(service, "h2")
            await h1.join(1.0)
            await h1.ask(h1.advertise("a", "TRUE"))
            changing = asyncio.create_task(client.post("/v1/reindex", json={"index": BETTER}))
            await h2.adopt((await told(h2, 0)).digest)
            done = (await changing).json()
            assert done["done"]
            assert done["seconds"] > 0.5
            await until(lambda: not any(a.host == "h1" for a in service.controller.state.announced.values()))
            assert await service.network.admissions() == service.controller.state.admitted

    asyncio.run(scene())


def test_who_leaves_in_the_middle_is_not_waited_for(tmp_path: Path) -> None:
    async def scene() -> None:
        async with api(tmp_path) as (service, client):
            h1 = await publisher(service)
            changing = asyncio.create_task(client.post("/v1/reindex", json={"index": BETTER}))
            await told(h1, 0)
            h1.send(Leave(next(h1.numbers), h1.session))
            assert (await changing).json()["done"]

    asyncio.run(scene())


def test_a_change_is_stopped_and_its_publishers_led_back(tmp_path: Path) -> None:
    async def scene() -> None:
        async with api(tmp_path) as (service, client):
            h1 = await publisher(service)
            digest = service.inband.desk.adoption.described.digest
            changing = asyncio.create_task(client.post("/v1/reindex", json={"index": BETTER}))
            first = await told(h1, 0)
            assert (await client.post("/v1/reindex/stop")).json() == {"stopped": True}
            await until(lambda: service.inband.desk.adoption.described.digest == digest)
            assert first.digest != digest
            await h1.adopt(digest)
            done = (await changing).json()
            assert not done["done"]
            assert "stopped" in done["reason"]
            assert await service.network.tables() == service.controller.state.table.tables()
            assert (await client.post("/v1/reindex/stop")).json() == {"stopped": False}

    asyncio.run(scene())


def test_a_rollback_brings_back_the_index_before(tmp_path: Path) -> None:
    async def scene() -> None:
        async with api(tmp_path) as (service, client):
            refused = await client.post("/v1/reindex/rollback", json={})
            assert (refused.status_code, refused.json()["error"]) == (
                409,
                "there is no index before this one",
            )
            first = (await client.get("/v1/index")).json()
            await client.post("/v1/reindex", json={"index": BETTER})
            assert (await client.post("/v1/reindex/rollback", json={})).json()["done"]
            now = (await client.get("/v1/index")).json()
            assert now == first | {"epoch": 2}
            assert service.controller.languages()[-1].read().epoch == 2

    asyncio.run(scene())


def test_a_plan_says_what_a_change_would_cost_and_begins_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        async with api(tmp_path) as (service, client):
            h1 = await publisher(service)
            h3 = Host(service, "h3")
            await h3.join()
            await h3.ask(h3.subscribe("q", "y < 64"))
            asked = {"index": BETTER, "strategy": "custom-multicast"}
            found = (await client.post("/v1/reindex/plan", json=asked)).json()
            assert (found["strategy"], found["publishers"]) == ("custom-multicast", ["h1"])
            assert found["entries"] == sum(one["entries"] for one in found["switches"]) > 0
            assert found["rounds"][0]["name"] == "widen"
            assert not notices(h1)
            assert (await client.get("/v1/reindex")).json()["changes"] == 0
            wrong = [
                ({"index": {}}, 422),
                ({"index": BETTER, "strategy": "magic"}, 409),
                ({"index": BETTER, "prefer": "luck"}, 422),
                ({"index": BETTER, "colour": "red"}, 422),
            ]
            for body, status in wrong:
                refused = await client.post("/v1/reindex/plan", json=body)
                assert refused.status_code == status, refused.text
                assert "\n" not in refused.json()["error"]

    asyncio.run(scene())


def test_publishers_that_cannot_be_told_are_named_and_the_change_is_not_begun(tmp_path: Path) -> None:
    async def scene() -> None:
        async with api(tmp_path) as (service, client):
            await client.post("/v1/advertisements", json={"host": "h2", "name": "a", "filter": "TRUE"})
            refused = await client.post("/v1/reindex", json={"index": BETTER})
            assert refused.status_code == 409
            assert refused.json()["error"].startswith("h2: an operator advertised there")
            assert (await client.post("/v1/reindex", json={"index": BETTER, "force": True})).json()["done"]
            assert service.controller.state.settings.index.epoch == 1

    asyncio.run(scene())


def test_a_proposal_is_taken_and_what_turned_out_worse_is_brought_back(tmp_path: Path) -> None:
    async def scene() -> None:
        automatic = Automatic(
            tmp_path / "current.json", tmp_path / "proposals", True, period_seconds=0.1, watch_seconds=1.0
        )
        async with api(tmp_path, reindex=automatic) as (service, _):
            h3 = Host(service, "h3")
            await h3.join()
            await h3.ask(h3.subscribe("q", "y < 64"))
            await until((tmp_path / "current.json").exists)

            async def say(received: int, wrong: int) -> None:
                await h3.ask(KeepAlive(next(h3.numbers), h3.session, Report(0, received, wrong)))

            await say(1_000, 100)
            (tmp_path / "proposals").mkdir()
            told: dict[str, Any] = {
                "window": "w",
                "index": BETTER,
                "current_rate": 0.5,
                "proposed_rate": 0.49,
            }
            for name, epoch, rate in (("a", 1, 0.49), ("b", 3, 0.1), ("c", 1, 0.1)):
                document = told | {"epoch": epoch, "proposed_rate": rate, "index": BETTER | {"epoch": epoch}}
                (tmp_path / "proposals" / f"{name}.json").write_bytes(msgspec.json.encode(document))
            await until(lambda: service.changes.told.verdict == "taken")
            assert service.changes.told.proposal == "c.json"
            assert service.controller.state.settings.index.epoch == 1
            await until(lambda: (tmp_path / "current.json").read_bytes().find(b'"epoch":1') > 0)
            begin = asyncio.get_running_loop().time()
            received, wrong = 1_000, 100
            while service.controller.state.settings.index.epoch == 1:
                received, wrong = received + 1_000, wrong + 900
                await say(received, wrong)
                assert asyncio.get_running_loop().time() < begin + 20
                await asyncio.sleep(0.05)
            assert service.controller.state.settings.index.epoch == 2
            assert service.changes.told.verdict.startswith("rolled back: 0.100 to 0.9")

    asyncio.run(scene())


def test_after_a_restart_sessions_are_asked_what_they_speak_and_nobody_joins_again(tmp_path: Path) -> None:
    async def scene() -> None:
        chosen = config(tmp_path)
        async with serving(chosen) as service:
            h1 = await publisher(service)
            network = network_of(service)
        async with serving(chosen, network) as service:
            again = Host(service, "h1", numbers=h1.numbers)
            before = len(notices(again))
            assert isinstance(await again.ask(KeepAlive(next(again.numbers), again.session)), Ready)
            notice = await told(again, before)
            assert isinstance(await again.adopt(notice.digest), Ready)
            assert isinstance(await again.ask(again.advertise("b", "x < 5")), Ready)

    asyncio.run(scene())


def test_what_hosts_are_told_of_a_change_is_what_they_need_to_send(tmp_path: Path) -> None:
    async def scene() -> None:
        async with api(tmp_path) as (service, client):
            h1 = await publisher(service)
            asked = {"index": BETTER, "strategy": "ip-multicast"}
            changing = asyncio.create_task(client.post("/v1/reindex", json=asked))
            for number, (groups, epoch) in enumerate([(1, 0), (0, 1)]):
                notice = await told(h1, number)
                welcome = await h1.ask_to_join()
                assert isinstance(welcome, Welcome)
                assert welcome.digest == notice.digest
                parts = [await h1.part(at) for at in range(welcome.parts)]
                found = unpack(b"".join(part.body for part in parts if isinstance(part, Part)))
                assert (len(found.groups), found.index.epoch) == (groups, epoch)
                await h1.adopt(notice.digest)
            assert (await changing).json()["done"]

    asyncio.run(scene())


def test_while_events_are_bridged_each_goes_where_the_tables_of_its_index_say(tmp_path: Path) -> None:
    async def scene() -> None:
        async with api(tmp_path) as (service, client):
            h1, h2, h3 = await publisher(service), Host(service, "h2"), Host(service, "h3")
            for host, wanted in ((h2, "x < 8"), (h3, "y > 200")):
                await host.join()
                await host.ask(host.subscribe("q", wanted))
            old = service.controller.state.settings
            asked = {"index": BETTER, "strategy": "bridge"}
            changing = asyncio.create_task(client.post("/v1/reindex", json=asked))
            await told(h1, 0)
            change = service.controller.rolling.under_way
            assert change is not None
            for number, settings in enumerate((old, change.new.settings)):
                h1.publish(settings, number, (3, 255))
                await until(lambda so_far=2 * number: len(arrived(service)) == so_far + 2)  # type: ignore[misc]  # of this round
                assert sorted(map(str, arrived(service)[-2:])) == ["s2:3", "s3:2"]
            h1.publish(old, 9, (3, 255), epoch=7)
            await until(lambda: service.detour.refused == 1)
            await h1.adopt(notices(h1)[-1].digest)
            assert (await changing).json()["done"]
            h1.publish(old, 10, (3, 255))  # it was on its way when the change ended
            await until(lambda: len(arrived(service)) == 6)

    asyncio.run(scene())


def arrived(service: Service) -> list[Port]:
    """Where events left the network."""
    return [
        place for place, frame in network_of(service).sent if frame[54:56] == EVENT_PORT.to_bytes(2, "big")
    ]
