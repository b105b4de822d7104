"""The REST API over real HTTP: what operators see and change, and one line for everything that is refused."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme

from plerion.controller.access import MAX_BODY
from plerion.controller.api import serving as answering
from plerion.controller.config import Listen, TlsFiles, Token
from plerion.controller.listener import Impatient
from plerion.controller.run import Service
from plerion.topology import SwitchId
from plerion.wire.control import KeepAlive, Leave, Report
from tests.scenarios.service_scene import Host, config, network_of, serving
from tests.scenarios.simulated_network import until

TOKENS = tuple(
    Token(role, role, sha256(role.encode() * 4).digest()) for role in ("reader", "writer", "admin")
)


@asynccontextmanager
async def api(folder: Path, **changes: Any) -> AsyncIterator[tuple[Service, httpx.AsyncClient]]:
    async with (
        serving(config(folder, **changes)) as service,
        answering(service) as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as client,
    ):
        yield service, client


def bearer(role: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {role * 4}"}


def test_interests_are_added_listed_traced_and_withdrawn(tmp_path: Path) -> None:
    async def scene() -> None:
        async with api(tmp_path) as (service, client):
            sent = await client.post("/v1/advertisements", json={"host": "h1", "name": "a", "filter": "TRUE"})
            assert (sent.status_code, sent.json()) == (201, {"id": "h1/-/a", "ready": True})
            asked = {"host": "h3", "name": "low/er", "filter": "x < 9"}
            for _ in range(2):
                made = await client.post("/v1/subscriptions", json=asked)
                assert (made.status_code, made.json()["id"]) == (201, "h3/-/low/er")
            other = await client.post("/v1/subscriptions", json={**asked, "filter": "x < 10"})
            assert other.status_code == 409
            assert other.json()["error"].startswith("the id 'h3/-/low/er' is taken by another one")
            listed = (await client.get("/v1/subscriptions")).json()
            assert listed == {
                "count": 1,
                "subscriptions": [{"id": "h3/-/low/er", "host": "h3", "filter": "x < 9"}],
            }
            assert (await client.get("/v1/subscriptions?host=h1")).json()["count"] == 0
            traced = (
                await client.post("/v1/trace", json={"publisher": "h1", "event": {"x": 3, "y": 4}})
            ).json()
            assert traced["received"] == [{"host": "h3", "wanted": True}]
            assert [hop["switch"] for hop in traced["journeys"][0]["hops"]] == ["s1", "s2", "s3"]
            assert traced["journeys"][0]["hops"][0]["subscriptions"] == [{"id": "h3/-/low/er", "host": "h3"}]
            gone = await client.delete("/v1/subscriptions/h3/-/low/er")
            assert (gone.status_code, gone.json()["ready"]) == (200, True)
            assert (await client.delete("/v1/subscriptions/h3/-/low/er")).status_code == 404
            assert await service.network.tables() == service.controller.state.table.tables()

    asyncio.run(scene())


def test_the_network_is_shown_as_it_is(tmp_path: Path) -> None:
    async def scene() -> None:
        async with api(tmp_path, grace_seconds=60.0) as (service, client):
            await client.post("/v1/advertisements", json={"host": "h1", "name": "a", "filter": "TRUE"})
            await client.post("/v1/subscriptions", json={"host": "h3", "name": "q", "filter": "x < 128"})
            switches = {one["switch"]: one for one in (await client.get("/v1/switches")).json()["switches"]}
            assert {name: one["entries"] for name, one in switches.items()} == {"s1": 1, "s2": 1, "s3": 1}
            assert (switches["s1"]["admissions"], switches["s1"]["connected"]) == (1, True)
            table = (await client.get("/v1/tables/s1")).json()
            assert (table["count"], table["entries"][0]["match"]) == (1, {"ipv6_dst": "ff0e::/19"})
            assert (await client.get("/v1/tables/s9")).status_code == 404
            assert (await client.get("/v1/statistics")).json()["s2"]["entries"] == {"1": 1}
            assert (await client.get("/v1/topology")).json()["links_down"] == []
            assert (await client.get("/v1/index")).json()["format"] == "plerion-index"
            assert (await client.get("/healthz")).json() == {"status": "alive"}
            ready = await client.get("/readyz")
            assert (ready.status_code, ready.json()["ready"]) == (200, True)
            network_of(service).lose(SwitchId("s2"))
            await until(lambda: not service.ready)
            ready = await client.get("/readyz")
            assert (ready.status_code, ready.json()["not_connected"]) == (503, ["s2"])
            text = (await client.get("/metrics")).text
            for line in ("plerion_subscriptions 1.0", 'plerion_table_entries{switch="s1"} 1.0'):
                assert line in text.splitlines()
            assert 'plerion_answer_seconds_count{outcome="ready"} 2.0' in text
            assert "/v1/subscriptions" in (await client.get("/openapi.json")).json()["paths"]
            assert (await client.post("/v1/resync")).json() == {"changes": 0}

    asyncio.run(scene())


def test_what_sessions_count_is_shown_until_they_are_gone(tmp_path: Path) -> None:
    async def scene() -> None:
        async with api(tmp_path) as (service, client):
            host = Host(service, "h3")
            await host.join()
            await host.ask(host.subscribe("q", "x < 9"))
            for report in (Report(0, 5, 1), Report(2, 9, 3, 1, 4)):
                await host.ask(KeepAlive(next(host.numbers), host.session, report))
            (shown,) = (await client.get("/v1/sessions")).json()["sessions"]
            assert shown == {
                "host": "h3", "session": host.session, "subscriptions": 1, "advertisements": 0, "published": 2,
                "received": 9, "false_positives": 3, "doubles": 1, "dropped": 4, "wanted": 6,
            }  # fmt: skip
            text = (await client.get("/metrics")).text
            assert 'plerion_host_false_positives{host="h3"} 3.0' in text.splitlines()
            await host.ask(Leave(next(host.numbers), host.session))
            assert (await client.get("/v1/sessions")).json() == {"sessions": []}
            assert not service.inband.desk.reports

    asyncio.run(scene())


REFUSED: list[tuple[str, str, dict[str, Any], int]] = [
    ("POST", "/v1/subscriptions", {"content": b"{"}, 422),
    ("POST", "/v1/subscriptions", {"content": b"\xff\xfe" * 50}, 422),
    ("POST", "/v1/subscriptions", {"content": b"[" * 60_000}, 400),
    ("POST", "/v1/subscriptions", {"json": []}, 422),
    ("POST", "/v1/subscriptions", {"json": {"host": "h1", "name": "q"}}, 422),
    ("POST", "/v1/subscriptions", {"json": {"host": "h1", "name": "q", "filter": "TRUE", "more": 1}}, 422),
    ("POST", "/v1/subscriptions", {"json": {"host": "h1", "name": "", "filter": "TRUE"}}, 422),
    ("POST", "/v1/subscriptions", {"json": {"host": "h9", "name": "q", "filter": "TRUE"}}, 409),
    ("POST", "/v1/subscriptions", {"json": {"host": "h1", "name": "q", "filter": "x <"}}, 409),
    ("POST", "/v1/subscriptions", {"json": {"host": "h1", "name": "q", "filter": "(" * 30_000}}, 409),
    ("POST", "/v1/subscriptions", {"content": b"x" * (MAX_BODY + 1)}, 413),
    ("POST", "/v1/trace", {"json": {"publisher": "h1", "event": {"z": 1}}}, 422),
    ("POST", "/v1/trace", {"json": {"publisher": "h7", "event": {"x": 1}}}, 422),
    ("GET", "/v1/subscriptions?limit=0", {}, 422),
    ("GET", "/v1/nothing", {}, 404),
    ("PUT", "/v1/subscriptions", {}, 405),
    ("DELETE", "/v1/subscriptions/none", {}, 404),
    ("GET", "/v1/topology", {"headers": {"Origin": "http://a.page"}}, 403),
]


def test_everything_refused_is_one_line_and_changes_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        async with api(tmp_path) as (service, client):
            for method, path, given, status in REFUSED:
                headers = {"Content-Type": "application/json", **given.get("headers", {})}
                answer = await client.request(method, path, **{**given, "headers": headers})
                assert answer.status_code == status, (path, given.keys(), answer.text[:200])
                assert set(answer.json()) == {"error"}, answer.text[:200]
                assert "\n" not in answer.json()["error"]
                assert len(answer.text) < 1_200

            async def endless() -> AsyncIterator[bytes]:
                for _ in range(100):
                    yield b" " * 4096

            assert (await client.post("/v1/subscriptions", content=endless())).status_code == 413
            assert list(service.controller.state.live()) == []

    asyncio.run(scene())


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"GET /heal",
        b"POST /v1/trace HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{",
    ],
)
def test_a_request_that_does_not_end_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    monkeypatch.setattr(Impatient, "request_seconds", 0.3)

    async def scene() -> None:
        async with api(tmp_path) as (_, client):
            reader, writer = await asyncio.open_connection(client.base_url.host, client.base_url.port)
            writer.write(said)
            async with asyncio.timeout(20):
                with suppress(ConnectionResetError):
                    assert await reader.read() == b""
            writer.close()
            assert (await client.get("/healthz")).status_code == 200

    asyncio.run(scene())


def test_those_who_connect_and_ask_nothing_keep_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Impatient, "most", 20)

    async def scene() -> None:
        async with api(tmp_path) as (_, client):
            where = client.base_url.host, client.base_url.port
            silent = await asyncio.gather(*(asyncio.open_connection(*where) for _ in range(50)))
            assert (await client.get("/healthz")).status_code == 200
            gone = [asyncio.create_task(reader.read()) for reader, _ in silent]
            await until(lambda: sum(task.done() for task in gone) >= 30)
            for (_, writer), task in zip(silent, gone, strict=True):
                task.cancel()
                writer.close()
            await asyncio.gather(*gone, return_exceptions=True)

    asyncio.run(scene())


def test_over_tls_the_api_shows_its_certificate(tmp_path: Path) -> None:
    authority = trustme.CA()
    own = authority.issue_cert("127.0.0.1")
    files = TlsFiles(tmp_path / "cert.pem", tmp_path / "key.pem")
    own.cert_chain_pems[0].write_to_path(files.certificate)
    own.private_key_pem.write_to_path(files.key)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)

    async def scene() -> None:
        chosen = config(tmp_path, api=Listen("127.0.0.1", 0, files), tokens=TOKENS)
        async with serving(chosen) as service, answering(service) as port:
            async with httpx.AsyncClient(base_url=f"https://127.0.0.1:{port}", verify=trusting) as client:
                assert (await client.get("/v1/index", headers=bearer("reader"))).status_code == 200
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as plain:
                with pytest.raises(httpx.TransportError):
                    await plain.get("/healthz")

    asyncio.run(scene())


def test_tokens_decide_who_may_read_write_and_repair(tmp_path: Path) -> None:
    async def scene() -> None:
        async with api(tmp_path, tokens=TOKENS) as (_, client):
            body = {"host": "h1", "name": "q", "filter": "TRUE"}
            for role, statuses in {
                "nobody": (401, 401, 401, 401),
                "reader": (200, 200, 403, 403),
                "writer": (200, 200, 201, 403),
                "admin": (200, 200, 201, 200),
            }.items():
                found = (
                    await client.get("/v1/topology", headers=bearer(role)),
                    await client.get("/metrics", headers=bearer(role)),
                    await client.post("/v1/subscriptions", json=body, headers=bearer(role)),
                    await client.post("/v1/resync", headers=bearer(role)),
                )
                assert tuple(answer.status_code for answer in found) == statuses, role
            assert (await client.get("/v1/topology")).status_code == 401
            assert (await client.get("/healthz")).status_code == 200

    asyncio.run(scene())
