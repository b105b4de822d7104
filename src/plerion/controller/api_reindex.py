"""The part of the API that changes the content index."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import msgspec
from fastapi import APIRouter, HTTPException, Response
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from plerion.controller.access import REINDEX
from plerion.controller.prepare import AUTO, CannotChange, Wanted
from plerion.controller.reindex import Reindexing, ended
from plerion.controller.rolling import Ended
from plerion.index.codec import from_json
from plerion.update.state import Options, Order, Prefer
from plerion.update.strategies import STRATEGIES

WAIT_SECONDS = 25.0  # for the end of a change; then it is answered 202 and goes on


class How(BaseModel):
    """How to get to another index."""

    model_config = ConfigDict(extra="forbid")
    strategy: str = Field(AUTO, max_length=64, description=f"{AUTO}, {', '.join(STRATEGIES)}")
    prefer: Prefer = Field("accurate", description="what auto looks for: no event too many, or few entries")
    order: Order = Field("filter-rate", description="in which custom-multicast takes its wide entries away")
    force: bool = Field(False, description="also with publishers that cannot be told how to send")

    def options(self) -> Options:
        return Options(prefer=self.prefer, order=self.order)


class Another(How):
    """Another index, as `plerion index build` writes it."""

    index: dict[str, JsonValue]

    def wanted(self) -> Wanted:
        try:
            return Wanted(from_json(msgspec.json.encode(self.index)), self.strategy, self.options())
        except ValueError as error:
            raise HTTPException(422, f"index: {error}") from None


def reindex(changes: Reindexing, reader: list[Any], admin: list[Any]) -> APIRouter:
    """Routes under /v1/reindex."""
    routes = APIRouter(prefix=REINDEX, tags=["index"])

    @routes.get("", dependencies=reader)
    async def status() -> dict[str, Any]:
        """Where a change stands, what the latest came to, and the false-positive rate as hosts report it."""
        return changes.status(asyncio.get_running_loop().time())

    @routes.post("/plan", dependencies=reader)
    async def plan(asked: Another) -> dict[str, Any]:
        """What a change would come to: the flow diff, the entries that it costs, the strategy. Nothing is begun."""
        try:
            found = await changes.plan(asked.wanted())
        except CannotChange as refusal:
            raise HTTPException(409, str(refusal)) from None
        return found.to_json() | {"unreachable": changes.unreachable()}

    @routes.post("", dependencies=admin)
    async def apply(asked: Another, response: Response) -> dict[str, Any]:
        """Answers 200 when the network is in the new state or in the old one again, 202 when that takes longer."""
        return await _ended(changes, changes.apply(asked.wanted(), asked.force), response)

    @routes.post("/rollback", dependencies=admin)
    async def rollback(how: How, response: Response) -> dict[str, Any]:
        """Brings back the index before the present one, in the same way."""
        return await _ended(changes, changes.rollback(how.strategy, how.prefer, how.force), response)

    @routes.post("/stop", dependencies=admin)
    async def stop() -> dict[str, bool]:
        """Leads a change back, if there is a way back still."""
        return {"stopped": changes.stop()}

    return routes


async def _ended(
    changes: Reindexing, change: Coroutine[Any, Any, Ended], response: Response
) -> dict[str, Any]:
    before = changes.count
    making: asyncio.Future[Ended] = asyncio.ensure_future(change)
    done, _ = await asyncio.wait([making], timeout=WAIT_SECONDS)
    if not done:
        response.status_code = 202
        return {"done": None, "changes": before}
    try:
        return ended(making.result())
    except CannotChange as refusal:
        raise HTTPException(409, str(refusal)) from None
    except Exception as error:  # of the journal or of a switch: not the caller's fault
        raise HTTPException(503, f"the controller could not do this now: {error}") from None
