"""A session's standing with the controller: joined, described, alive, and everything it wished for in force.

What the application advertised and subscribed is kept here. When the controller says that it does not know the session
(it was restarted without its memory, or the lease ended while the host slept), the session joins again and wishes for
all of it once more; the application notices nothing but a pause.

A network may change its index while events flow. Then each session is told, fetches the new description, sends by it
from then on, and says so (`Adopted`) when nothing that it sent by the old one can still be on its way into the network.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final, Literal

from plerion.client.channel import ControlChannel, Target
from plerion.client.errors import AdvertisementRefused, ClientError, JoinRefused, SubscriptionRefused
from plerion.client.place import Place
from plerion.content.errors import ContentError
from plerion.wire import control
from plerion.wire.control import (
    Notice,
    Outdated,
    Part,
    Ready,
    Refused,
    Reply,
    Report,
    Request,
    Unknown,
    Welcome,
)
from plerion.wire.description import Description, digest, unpack

WishKind = Literal["advertise", "subscribe"]
Wish = tuple[WishKind, str]

_TRIES: Final = 4
_LONGEST_SILENCE: Final = 10.0
_AT_ONCE: Final = 32  # requests under way while joining again
_REQUEST: Final[Mapping[WishKind, type[control.Advertise] | type[control.Subscribe]]] = {
    "advertise": control.Advertise,
    "subscribe": control.Subscribe,
}
_WITHDRAW: Final[Mapping[WishKind, type[control.Unadvertise] | type[control.Unsubscribe]]] = {
    "advertise": control.Unadvertise,
    "subscribe": control.Unsubscribe,
}
_REFUSED: Final = {"advertise": AdvertisementRefused, "subscribe": SubscriptionRefused}

log = logging.getLogger("plerion.client")


class Membership:
    """Keeps one session known to the controller for as long as it lives."""

    def __init__(
        self,
        lease_seconds: float,
        deadline_seconds: float,
        described: Callable[[Description], Awaitable[None]],
        refused: Callable[[Wish, ClientError], None],
        report: Callable[[], Report],
    ) -> None:
        self.session = secrets.token_hex(8)
        self.host = ""
        self.joins = 0
        self._lease_seconds, self._deadline = lease_seconds, deadline_seconds
        self._described, self._refused, self._report = described, refused, report
        self._digest = ""
        self._wishes: dict[Wish, str] = {}
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._refreshing: asyncio.Task[None] | None = None
        self._channel: ControlChannel

    async def join(self, place: Place | None, target: Target) -> None:
        """Opens the channel, joins and fetches the description."""
        self._channel = await ControlChannel.open(place, target, self._noticed)
        try:
            await self._join()
        except BaseException:
            self._channel.close()
            raise
        self._start(self._keep_alive())

    async def wish(self, wish: Wish, filter: str) -> None:
        """Returns when the wish is in force; it stays so until it is withdrawn. A refusal is raised."""
        self._wishes[wish] = filter
        try:
            reply = await self._ask(self._wish(wish, filter))
            _check(wish, reply)
        except BaseException:
            self._wishes.pop(wish, None)
            raise

    async def withdraw(self, wish: Wish) -> None:
        """Returns when the wish is no longer in force."""
        self._wishes.pop(wish, None)
        make = _WITHDRAW[wish[0]]
        await self._ask(lambda number: make(number, self.session, wish[1]))

    async def leave(self) -> None:
        """Withdraws everything, if the controller still answers; the lease does it otherwise."""
        for task in self._tasks:
            task.cancel()
        try:
            leaving = min(self._deadline, 1.0)
            await self._channel.ask(lambda number: control.Leave(number, self.session), leaving)
        except ClientError as error:
            log.info("left without an answer: %s", error.what)
        finally:
            self._channel.close()

    async def _ask(self, make: Callable[[int], Request]) -> Reply:
        for _ in range(_TRIES):
            joins = self.joins
            reply = await self._channel.ask(make, self._deadline)
            if isinstance(reply, Outdated):
                await self._refresh()
            elif isinstance(reply, Unknown):
                await self._join_again(joins)
            else:
                return reply
        raise ClientError(
            "the controller forgets the session as soon as it has joined",
            "ask for a longer lease, and check that only one controller answers",
        )

    async def _join(self) -> None:
        for _ in range(_TRIES):
            make = lambda number: control.Join(number, self.session, self._lease_seconds)  # noqa: E731 - a name for what is asked
            welcome = await self._channel.ask(make, self._deadline)
            if isinstance(welcome, Refused):
                raise JoinRefused(f"the controller refuses this host: {welcome.reason}")
            if isinstance(welcome, Welcome) and await self._describe(welcome):
                self.host, self._lease_seconds = welcome.host, welcome.lease_seconds
                self.joins += 1
                await self._adopted()
                return
        raise ClientError("the description of the network changes faster than it can be fetched", "try again")

    async def _describe(self, welcome: Welcome) -> bool:
        """Whether the description that the welcome names is now the one in use."""
        if welcome.digest == self._digest:
            return True
        limit = asyncio.Semaphore(_AT_ONCE)

        async def fetch(part: int) -> bytes:
            async with limit:
                make = lambda number: control.Describe(number, self.session, part)  # noqa: E731 - as above
                reply = await self._channel.ask(make, self._deadline)
            return reply.body if isinstance(reply, Part) and reply.part == part else b""

        packed = b"".join(await asyncio.gather(*map(fetch, range(welcome.parts))))
        if digest(packed) != welcome.digest:
            return False
        await self._described(unpack(packed))
        self._digest = welcome.digest
        return True

    async def _adopted(self) -> None:
        """Tells the controller what this session speaks; when that is news again, a notice says so."""
        adopted = self._digest
        await self._channel.ask(lambda number: control.Adopted(number, self.session, adopted), self._deadline)

    async def _join_again(self, joins: int) -> None:
        async with self._turn:
            if joins != self.joins:
                return  # somebody else has joined meanwhile
            log.info("the controller does not know session %s any more: joining again", self.session)
            await self._join()
            limit = asyncio.Semaphore(_AT_ONCE)
            await asyncio.gather(*(self._renew(wish, text, limit) for wish, text in [*self._wishes.items()]))

    async def _renew(self, wish: Wish, filter: str, limit: asyncio.Semaphore) -> None:
        async with limit:
            reply = await self._channel.ask(self._wish(wish, filter), self._deadline)
        if isinstance(reply, Refused):
            self._wishes.pop(wish, None)
            self._refused(wish, _REFUSED[wish[0]](wish[1], reply.reason))

    def _wish(self, wish: Wish, filter: str) -> Callable[[int], Request]:
        make = _REQUEST[wish[0]]
        return lambda number: make(number, self.session, wish[1], filter)

    async def _keep_alive(self) -> None:
        while True:
            await asyncio.sleep(silence(self._lease_seconds))
            try:
                await self._ask(lambda number: control.KeepAlive(number, self.session, self._report()))
            except ContentError as error:
                # Paths stay in the switches while the controller is away, so events still flow: go on trying.
                log.warning("keep-alive: %s", error.what)

    def _noticed(self, notice: Notice) -> None:
        """Notices are repeated until they have had their effect; one at a time is enough."""
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = self._start(self._followed(notice))

    async def _followed(self, notice: Notice) -> None:
        try:
            if notice.digest == self._digest:
                await self._adopted()
            else:
                await self._refresh()
        except ContentError as error:
            log.warning("the new description could not be fetched: %s", error.what)

    async def _refresh(self) -> None:
        async with self._turn:
            await self._join()

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def silence(lease_seconds: float) -> float:
    """Seconds between two keep-alives: a third of the lease, and of what a controller gives sessions after a restart.

    It finds their names then and not their leases.
    """
    return min(lease_seconds / 3, _LONGEST_SILENCE)


def _check(wish: Wish, reply: Reply) -> None:
    if isinstance(reply, Refused):
        raise _REFUSED[wish[0]](wish[1], reply.reason)
    if not isinstance(reply, Ready):
        raise ClientError(f"the controller answered {type(reply).__name__} to {wish[0]} {wish[1]!r}")
