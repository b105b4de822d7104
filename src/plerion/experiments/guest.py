"""A program on a host that uses the SDK as any application would, and does what lines of JSON ask of it.

    {"do": "subscribe", "number": 1, "name": "hot", "filter": "temperature > 30"}    →    {"number": 1, "at_ns": …}

Each line is answered by one with its number: what came of it, or `error`. Lines are worked on at the same time, so a
guest subscribes while it publishes. When nobody writes any more it leaves the network and ends.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import numpy as np

import plerion
from plerion.client import ClientError, Session, Subscription
from plerion.content.errors import ContentError

LOG_SECONDS = 2.0
TURN_SECONDS = 0.005  # between two batches of a publisher: what it sends at once is no burst
DEADLINE_SECONDS = 100.0  # for a controller that was killed and is being started again


class Guest:
    """One session, and the words that it understands."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._subscriptions: dict[str, Subscription] = {}
        self._received: dict[str, list[tuple[str, int]]] = {}
        self._readers: set[asyncio.Task[None]] = set()
        self._halted = asyncio.Event()
        self._batches: list[tuple[int, int]] = []
        self.words: dict[str, Callable[..., Awaitable[dict[str, Any]]]] = {
            word: getattr(self, word)
            for word in ("advertise", "unadvertise", "subscribe", "unsubscribe", "publish", "halt", "counts")
        } | {"received": self.ids, "batches": self.sent}

    async def advertise(self, name: str, filter: str) -> dict[str, Any]:
        await self._session.advertise(filter, name)
        return {}

    async def unadvertise(self, name: str) -> dict[str, Any]:
        await self._session.unadvertise(name)
        return {}

    async def subscribe(self, name: str, filter: str) -> dict[str, Any]:
        made = await self._session.subscribe(filter, name, queue=100_000)
        self._subscriptions[name] = made
        self._received.setdefault(name, [])
        task = asyncio.create_task(self._read(made))
        self._readers.add(task)
        task.add_done_callback(self._readers.discard)
        return {}

    async def unsubscribe(self, name: str) -> dict[str, Any]:
        await self._subscriptions[name].close()
        return {"counts": self._subscriptions[name].counts.to_json()}

    async def publish(self, points: str, rate: float, repeat: bool = False) -> dict[str, Any]:
        """Events of an array file at so many a second, to its end or until `halt`."""
        rows = np.load(points)
        self._halted.clear()
        began, sent, first_ns = time.monotonic(), 0, time.time_ns()
        while not self._halted.is_set() and (repeat or sent < len(rows)):
            due = int((time.monotonic() - began) * rate) + 1 - sent
            batch = rows[np.arange(sent, sent + due) % len(rows)] if repeat else rows[sent : sent + due]
            self._batches += [(self._session.published, time.time_ns())] if len(batch) else []
            sent += await self._session.publish(batch) if len(batch) else 0
            await asyncio.sleep(TURN_SECONDS)
        return {"sent": sent, "first_ns": first_ns, "last_ns": time.time_ns()}

    async def halt(self) -> dict[str, Any]:
        self._halted.set()
        return {}

    async def counts(self) -> dict[str, Any]:
        found = {name: made.counts.to_json() for name, made in self._subscriptions.items()}
        totals = self._session.totals
        session = {"published": self._session.published, "dropped": self._session.dropped}
        reached = {name: getattr(totals, name) for name in ("received", "false_positives", "doubles")}
        return {"counts": found, **session, **reached, "joins": self._session.joins}

    async def ids(self, name: str) -> dict[str, Any]:
        """Publisher and sequence number of all that the subscription was handed."""
        return {"received": self._received[name]}

    async def sent(self) -> dict[str, Any]:
        """From which sequence number on events were sent at which time, batch by batch."""
        return {"batches": self._batches}

    async def _read(self, made: Subscription) -> None:
        kept = self._received[made.name]
        async for batch in made.batches():
            kept.extend((one.publisher, one.sequence) for one in batch)


async def serve(lease_seconds: float, log: str | None) -> None:
    """Joins the network, and does what standard input asks until it ends."""
    lines = asyncio.StreamReader(limit=1 << 20)
    protocol = asyncio.StreamReaderProtocol(lines)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    opening = plerion.connect(
        lease_seconds=lease_seconds, deadline_seconds=DEADLINE_SECONDS, log=log, log_seconds=LOG_SECONDS
    )
    async with opening as session:
        guest, tasks = Guest(session), set[asyncio.Task[None]]()
        _say({"number": 0, "host": session.host, "publisher": session.publisher})
        while line := await lines.readline():
            task = asyncio.create_task(_answer(guest, msgspec.json.decode(line)))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await guest.halt()


async def _answer(guest: Guest, asked: dict[str, Any]) -> None:
    number, word = asked.pop("number"), asked.pop("do")
    try:
        found = await guest.words[word](**asked)
    except (ClientError, ContentError) as error:
        found = {"error": str(error)}
    _say({"number": number, "at_ns": time.time_ns(), **found})


def _say(document: dict[str, Any]) -> None:
    sys.stdout.write(msgspec.json.encode(document).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None))
