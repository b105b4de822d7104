"""The REST API: what operators and their programs see and change, under /v1. This file and `api_reindex` know FastAPI.

Everything that comes in is bounded and everything refused is one line of JSON, ``{"error": "…"}``. Without tokens the
API is for loopback alone; then anybody on the machine may do everything, but no page in a browser may.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated, Any

import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, JsonValue
from starlette.exceptions import HTTPException as StarletteHTTPException

from plerion.content.errors import ContentError
from plerion.content.lex import MAX_TEXT
from plerion.controller import inputs, views
from plerion.controller.access import MAX_BODY, Guard, permitted
from plerion.controller.api_reindex import reindex
from plerion.controller.config import Role
from plerion.controller.inputs import Input
from plerion.controller.lease import OPERATOR, Session
from plerion.controller.listener import CONNECTIONS, Impatient
from plerion.controller.metrics import Metrics
from plerion.controller.run import Service
from plerion.index.codec import to_json
from plerion.topology.graph import HostId, SwitchId

WAIT_SECONDS = 30.0  # for the switches; then an accepted interest is answered 202


class Interest(BaseModel):
    """What a host sends or wants. Its id becomes `<host>/-/<name>`; it lasts until it is deleted."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"host": "h3", "name": "hot", "filter": "temperature > 30"}},
    )
    host: str = Field(min_length=1, max_length=128)
    name: str = Field(min_length=1, max_length=128)
    filter: str = Field(max_length=MAX_TEXT)


class TracedEvent(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"publisher": "h1", "event": {"temperature": 31, "humidity": 12}}},
    )
    publisher: str = Field(max_length=128)
    event: dict[str, float | str | None] = Field(max_length=1_024)


Offset = Annotated[int, Query(ge=0, le=10**9)]
Limit = Annotated[int, Query(ge=1, le=10_000)]
HostName = Annotated[str | None, Query(max_length=128)]


def application(service: Service) -> FastAPI:
    """The API of one service."""
    app = FastAPI(
        title="Plerion", version="1", summary="Publish/subscribe whose filters run inside the network"
    )
    metrics = Metrics(service)
    _interests(app, service, "subscriptions", inputs.Subscribe, inputs.Unsubscribe)
    _interests(app, service, "advertisements", inputs.Advertise, inputs.Unadvertise)
    _network(app, service)
    _sessions(app, service)
    _health(app, service, metrics)
    app.include_router(reindex(service.changes, _allowed(service, "reader"), _allowed(service, "admin")))
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(StarletteHTTPException, _refused)
    app.add_exception_handler(ContentError, _bad)
    app.add_middleware(Guard, origins_allowed=bool(service.config.tokens))
    return app


def _allowed(service: Service, role: Role) -> list[Any]:
    """A dependency that lets through who shows a token of this role or a greater one."""

    def check(request: Request) -> None:
        verdict = permitted(service.config.tokens, role, request.headers.get("authorization"))
        if verdict is not None:
            status, reason = verdict
            raise HTTPException(status, reason, {"WWW-Authenticate": "Bearer"} if status == 401 else None)

    return [Depends(check)]


def _interests(
    app: FastAPI,
    service: Service,
    kind: str,
    make: type[inputs.Subscribe] | type[inputs.Advertise],
    withdraw: type[inputs.Unsubscribe] | type[inputs.Unadvertise],
) -> None:
    def held() -> dict[str, Any]:
        found: dict[str, Any] = getattr(service.controller.state, kind)
        return found

    @app.get(f"/v1/{kind}", dependencies=_allowed(service, "reader"), tags=[kind])
    async def listed(host: HostName = None, offset: Offset = 0, limit: Limit = 1_000) -> dict[str, Any]:
        count, found = views.page(held().values(), host, offset, limit)
        return {"count": count, kind: found}

    @app.post(f"/v1/{kind}", status_code=201, dependencies=_allowed(service, "writer"), tags=[kind])
    async def added(asked: Interest, response: Response) -> dict[str, Any]:
        """Answers 201 when it is in force in every switch that it needs, 202 when that takes longer."""
        name = Session(HostId(asked.host), OPERATOR).id(asked.name)
        ready = await _answer(service, make(name, asked.host, asked.filter), 409)
        response.status_code = 201 if ready else 202
        return {"id": name, "ready": ready}

    @app.delete(f"/v1/{kind}/{{name:path}}", dependencies=_allowed(service, "writer"), tags=[kind])
    async def withdrawn(name: str) -> dict[str, Any]:
        return {"id": name, "ready": await _answer(service, withdraw(name), 404)}


async def _answer(service: Service, received: Input, refusal: int) -> bool:
    """Whether it is in force by now; it is accepted in any case."""
    asked = asyncio.ensure_future(service.controller.handle(received))
    done, _ = await asyncio.wait([asked], timeout=WAIT_SECONDS)
    if not done:
        return False
    try:
        answer = asked.result()
    except Exception as error:  # of the journal or of a switch: not the caller's fault
        raise HTTPException(503, f"the controller could not do this now: {error}") from None
    if answer.reason is not None:
        raise HTTPException(refusal, answer.reason)
    return True


def _network(app: FastAPI, service: Service) -> None:
    def switch_named(name: str) -> SwitchId:
        if name not in service.controller.state.fabric.switch_number:
            raise HTTPException(404, f"there is no switch {name[:60]!r} in this network")
        return SwitchId(name)

    reader = _allowed(service, "reader")

    @app.get("/v1/topology", dependencies=reader, tags=["network"])
    async def topology() -> dict[str, Any]:
        return views.topology(service)

    @app.get("/v1/switches", dependencies=reader, tags=["network"])
    async def switches() -> dict[str, Any]:
        return {"switches": views.switches(service)}

    @app.get("/v1/tables/{switch}", dependencies=reader, tags=["network"])
    async def table(switch: str, offset: Offset = 0, limit: Limit = 10_000) -> dict[str, Any]:
        entries = views.table(service, switch_named(switch))
        return {"switch": switch, "count": len(entries), "entries": entries[offset : offset + limit]}

    @app.get("/v1/statistics", dependencies=reader, tags=["network"])
    async def statistics() -> dict[str, Any]:
        return {switch: views.counters(found) for switch, found in (await service.statistics()).items()}

    @app.post("/v1/trace", dependencies=reader, tags=["network"])
    async def trace(asked: TracedEvent) -> JsonValue:
        return views.trace(service, asked.publisher, asked.event)

    @app.get("/v1/index", dependencies=reader, tags=["network"])
    async def index() -> Response:
        return Response(to_json(service.controller.state.settings.index), media_type="application/json")

    @app.post("/v1/resync", dependencies=_allowed(service, "admin"), tags=["network"])
    async def resync() -> dict[str, int]:
        """Compares every switch with what it should hold and repairs it; the number of changes."""
        return {"changes": await service.controller.resync()}


def _sessions(app: FastAPI, service: Service) -> None:
    @app.get("/v1/sessions", dependencies=_allowed(service, "reader"), tags=["network"])
    async def sessions() -> dict[str, Any]:
        """Who is there, and what each last said that it published and received."""
        return {"sessions": views.sessions(service)}


def _health(app: FastAPI, service: Service, metrics: Metrics) -> None:
    @app.get("/healthz", tags=["health"])
    async def alive() -> dict[str, str]:
        return {"status": "alive"}

    @app.get("/readyz", tags=["health"])
    async def ready(response: Response) -> dict[str, Any]:
        """Whether every switch is connected and holds what it should."""
        away = sorted(frozenset(service.config.settings.topology.switches) - service.network.connected)
        response.status_code = 200 if service.ready else 503
        behind = sorted(service.controller.switches.behind)
        return {"ready": service.ready, "not_connected": away, "not_in_step": behind}

    @app.get("/metrics", dependencies=_allowed(service, "reader"), tags=["health"])
    async def exposition() -> Response:
        return Response(await metrics.text(), media_type="text/plain; version=0.0.4")


def _one_line(status: int, reason: object, headers: Any = None) -> JSONResponse:
    return JSONResponse({"error": " ".join(str(reason).split())[:1_000]}, status, headers)


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError), "it is registered for these"
    first = error.errors()[0]
    place = ".".join(str(step) for step in first["loc"] if step != "body")
    return _one_line(422, f"{place}: {first['msg']}" if place else first["msg"])


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, StarletteHTTPException), "it is registered for these"
    return _one_line(error.status_code, error.detail, error.headers)


async def _bad(_: Request, error: Exception) -> Response:
    return _one_line(422, error)


class _Quiet(uvicorn.Server):
    """Leaves signals to the process around it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving(service: Service) -> AsyncIterator[int]:
    """Answers HTTP; gives the port, which is one that was free when 0 was configured."""
    listen = service.config.api
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    bound = socket.create_server((listen.host, listen.port), family=family, backlog=256)
    files = {"ssl_certfile": listen.tls.certificate, "ssl_keyfile": listen.tls.key} if listen.tls else {}
    config = uvicorn.Config(
        application(service),
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=2,
        http=Impatient,
        ws="none",
        limit_concurrency=2 * CONNECTIONS,
        h11_max_incomplete_event_size=MAX_BODY,
        server_header=False,
        **files,  # type: ignore[arg-type]  # paths under the names of two parameters
    )
    server = _Quiet(config)
    task = asyncio.create_task(server.serve(sockets=[bound]))
    try:
        yield int(bound.getsockname()[1])
    finally:
        server.should_exit = True
        await asyncio.wait([task], timeout=5)
        bound.close()
