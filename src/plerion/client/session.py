"""A session: one application on one host, from joining the network to leaving it.

    async with plerion.connect() as session:
        await session.advertise("temperature > 0")
        await session.publish({"temperature": 21.5, "humidity": 40})
        async with session.subscribe("temperature > 30") as hot:
            async for delivered in hot: ...

All of a session's subscriptions share one receiving socket, which is open before the first of them is asked for: from
*ready* on no event is missed. An event that two of them want is handed to both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import count
from types import TracebackType
from typing import Any, Final, Self

import numpy as np

from plerion.client.channel import Target
from plerion.client.counts import Totals
from plerion.client.errors import ClientError, SessionClosed, TransportError
from plerion.client.intake import Intake
from plerion.client.logbook import Keeping, Logbook
from plerion.client.membership import Membership, Wish
from plerion.client.mmsg import BATCH
from plerion.client.opening import Opening
from plerion.client.place import Place
from plerion.client.publication import Publishable, check_advertised, points_of
from plerion.client.rehearsal import rehearse
from plerion.client.sending import Sender
from plerion.client.subscription import OnFull, Subscription
from plerion.client.transport import Transport, network_transport
from plerion.content.box import bounds, boxes
from plerion.content.filter import Filter
from plerion.content.parse import parse
from plerion.content.schema import Schema
from plerion.matching.bitset import BitsetMatcher
from plerion.wire.control import Report
from plerion.wire.description import Description

QUEUE: Final = 10_000


class Session:
    """Made by `connect`. Belongs to one event loop; `plerion.client.sync` is for programs without one."""

    description: Description

    def __init__(
        self,
        place: Place | None,
        transport: Transport | None,
        lease_seconds: float,
        deadline_seconds: float,
        log: Keeping | None = None,
    ) -> None:
        self._place, self._transport = place, transport
        self._log = log
        self._logbook: Logbook | None = None
        self._intake: Intake | None = None
        self._membership = Membership(
            lease_seconds, deadline_seconds, self._described, self._refused, self._report
        )
        self._names = count(1)
        self._sender = Sender(self._sockets)
        self._advertised: dict[str, Filter] = {}
        self._admitted: BitsetMatcher | None = None
        self._closed = False

    async def join(self, target: Target) -> None:
        """Becomes known to the controller and learns the network's description."""
        await self._membership.join(self._place, target)

    @property
    def host(self) -> str:
        """The name of this host in the network."""
        return self._membership.host

    @property
    def id(self) -> str:
        """The name of this session at its host: sixteen hexadecimal digits."""
        return self._membership.session

    @property
    def publisher(self) -> str:
        """The name under which this session publishes; no other one ever has it."""
        return f"{self.host}/{self.id}"

    @property
    def published(self) -> int:
        """Events that were sent, each once."""
        return self._sender.published

    @property
    def uncoded(self) -> int:
        """Events that no cluster of the index has, so that nobody can ask for them; they are not sent."""
        return self._sender.uncoded

    @property
    def joins(self) -> int:
        """How often the session joined: once, and once more each time that the controller had forgotten it."""
        return self._membership.joins

    @property
    def schema(self) -> Schema:
        return self.description.index.schema

    @property
    def totals(self) -> Totals:
        """What reached the session: events, doubles, malformed datagrams, false positives."""
        return Totals() if self._intake is None else self._intake.totals

    @property
    def dropped(self) -> int:
        """Datagrams for which the kernel had no room."""
        return 0 if self._transport is None else self._transport.dropped

    async def advertise(self, filter: str, name: str | None = None) -> str:
        """Returns, with the advertisement's name, when the network lets events pass that the filter matches."""
        understood = parse(filter, self._open().schema)
        boxes(understood)
        name = name or f"a{next(self._names)}"
        await self._membership.wish(("advertise", name), filter)
        self._advertised[name] = understood
        self._admit()
        return name

    async def unadvertise(self, name: str) -> None:
        """Withdraws an advertisement."""
        self._open()._advertised.pop(name, None)
        self._admit()
        await self._sender.linger()
        await self._membership.withdraw(("advertise", name))

    async def publish(
        self, events: Publishable, extra: Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None = None
    ) -> int:
        """Sends one event or many; returns how many, when the kernel has taken them all.

        All are checked before any is sent. `extra` goes along and is not filtered: one for all, or one an event.
        """
        points = points_of(self._open().schema, events)
        check_advertised(self._admitted, points, [filter.text for filter in self._advertised.values()])
        extras = _extras(extra, len(points))
        for begin in range(0, len(points), BATCH):
            rows = slice(begin, begin + BATCH)
            some = None if extras is None else extras[rows]
            await self._sender.send(self.publisher, points[rows], some, self._logbook)
            await asyncio.sleep(0)
        return len(points)

    def subscribe(
        self, filter: str, name: str | None = None, *, queue: int = QUEUE, on_full: OnFull = "drop-oldest"
    ) -> Opening[Subscription]:
        """To be awaited or entered: is ready when every path is installed, and from then on no event is missed."""
        return Opening(self._subscribe(filter, name, queue, on_full), Subscription.close)

    async def close(self) -> None:
        """Withdraws everything and leaves. Readers get what still waits."""
        if self._closed:
            return
        self._closed = True
        if self._intake is not None:
            self._intake.close()
        try:
            await self._sender.linger()
            await self._membership.leave()
        finally:
            if self._transport is not None:
                self._transport.close()
            if self._logbook is not None:
                self._logbook.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _open(self) -> Self:
        if self._closed:
            raise SessionClosed("the session is closed", "connect again")
        return self

    async def _subscribe(self, filter: str, name: str | None, queue: int, on_full: OnFull) -> Subscription:
        understood = parse(filter, self._open().schema)
        intake = self._receiving()
        name = name or f"s{next(self._names)}"
        if name in intake.subscriptions:
            raise ClientError(f"there is a subscription {name!r} already", "choose another name")
        made = Subscription(name, understood, queue, on_full, self._unsubscribe, intake.resume)
        intake.add(made)
        try:
            await self._membership.wish(("subscribe", name), filter)
        except BaseException as error:
            made.end(error if isinstance(error, ClientError) else None)
            intake.forget(name)
            raise
        if self._logbook is not None:
            self._logbook.subscribed(made, self.host, live=True)
        return made

    async def _unsubscribe(self, made: Subscription) -> None:
        made.end()
        if self._receiving().forget(made.name):
            if self._logbook is not None:
                self._logbook.subscribed(made, self.host, live=False)
            await self._membership.withdraw(("subscribe", made.name))

    def _receiving(self) -> Intake:
        if self._intake is None:
            index = self.description.index
            self._intake = Intake(index, self._sockets(), self.host, self._logbook)
        return self._intake

    def _sockets(self) -> Transport:
        if self._transport is None:
            if self._place is None:
                raise TransportError("a session without a place has no transport", "give it one")
            self._transport = network_transport(self.description.last_hop, self._place)
        return self._transport

    async def _described(self, description: Description) -> None:
        """Takes a description into use: the first one, or another one while events flow.

        Returns when the kernel has all that was addressed by an earlier one, so nothing of that kind comes later.
        """
        if description.plan.family != "ipv6":
            raise TransportError("the network has addresses of IPv4, which the client does not speak")
        rehearse(description.index)
        self.description = description
        if self._logbook is None and self._log is not None:
            self._logbook = Logbook(self._log, self.schema, self.id)
        if self._intake is not None:
            self._intake.describe(description.index)
        await self._sender.speak(description)

    def _refused(self, wish: Wish, error: ClientError) -> None:
        """The controller had forgotten a wish and does not take it again."""
        kind, name = wish
        if kind == "advertise":
            self._advertised.pop(name, None)
            self._admit()
        elif self._intake is not None and name in self._intake.subscriptions:
            self._intake.subscriptions[name].end(error)
            self._intake.forget(name)

    def _report(self) -> Report:
        """What the controller is told with each sign of life."""
        counted = self.totals
        names = (self.published, counted.received, counted.false_positives, counted.doubles, self.dropped)
        return Report(*names)

    def _admit(self) -> None:
        parts = [bounds(boxes(filter), filter.schema) for filter in self._advertised.values()]
        sizes = np.cumsum([0, *map(len, parts)])
        self._admitted = BitsetMatcher.of(sizes, np.concatenate(parts)) if parts else None


def _extras(
    extra: Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None, rows: int
) -> list[dict[str, Any] | None] | None:
    if extra is None:
        return None
    if isinstance(extra, Mapping):
        return [dict(extra)] * rows
    if len(extra) != rows:
        raise ClientError(f"{len(extra)} extras for {rows} events", "give one for all, or one an event")
    return [None if one is None else dict(one) for one in extra]
