"""The same client for programs without an event loop: a loop in a thread, and calls that wait for it.

from plerion.client import sync

with sync.connect() as session:
    with session.subscribe("temperature > 30") as hot:
        for delivered in hot: ...
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from plerion.client.connect import connect as connect_async
from plerion.client.counts import Counts
from plerion.client.delivered import Delivered
from plerion.client.publication import Publishable
from plerion.client.session import Session as AsyncSession
from plerion.client.subscription import Subscription as AsyncSubscription
from plerion.content.schema import Schema

T = TypeVar("T")


def connect(*args: Any, **options: Any) -> Session:
    """A session on this host; the arguments are those of `plerion.client.connect`."""
    return Session(*args, **options)


class Session:
    """`plerion.client.Session`, call by call; safe to use from several threads."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="plerion", daemon=True)
        self._thread.start()
        self._closed = False

        async def opened() -> AsyncSession:
            return await connect_async(*args, **options)

        try:
            self.session = self.run(opened())
        except BaseException:
            self._stop()
            raise

    @property
    def schema(self) -> Schema:
        return self.session.schema

    @property
    def host(self) -> str:
        return self.session.host

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work comes to, done in the session's loop."""
        running: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return running.result()
        except BaseException:
            running.cancel()
            raise

    def advertise(self, filter: str, name: str | None = None) -> str:
        return self.run(self.session.advertise(filter, name))

    def publish(
        self, events: Publishable, extra: Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None = None
    ) -> int:
        return self.run(self.session.publish(events, extra))

    def subscribe(self, filter: str, name: str | None = None, **options: Any) -> Subscription:
        """Returns when the subscription is ready."""

        async def opened() -> AsyncSubscription:
            return await self.session.subscribe(filter, name, **options)

        return Subscription(self, self.run(opened()))

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            try:
                self.run(self.session.close())
            finally:
                self._stop()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Subscription:
    """`plerion.client.Subscription`, as an ordinary iterator."""

    def __init__(self, session: Session, subscription: AsyncSubscription) -> None:
        self._session = session
        self.subscription = subscription

    @property
    def counts(self) -> Counts:
        return self.subscription.counts

    def batch(self, seconds: float | None = None) -> list[Delivered]:
        """All events that wait; none when the time is up or the subscription has ended."""

        async def waited() -> list[Delivered]:
            try:
                return await asyncio.wait_for(self.subscription.batch(), seconds)
            except TimeoutError:
                return []

        return self._session.run(waited())

    def __iter__(self) -> Iterator[Delivered]:
        while found := self.batch():
            yield from found

    def close(self) -> None:
        self._session.run(self.subscription.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
