"""A subscription as the application holds it: a context manager, an asynchronous iterator, and its counts."""

from __future__ import annotations

from asyncio import Future, get_running_loop
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Final, Literal, Self

import numpy as np

from plerion.client.counts import Counts, Sequences
from plerion.client.delivered import Delivered
from plerion.client.errors import ClientError
from plerion.client.reception import Floats
from plerion.content.box import bounds, boxes
from plerion.content.filter import Filter

OnFull = Literal["drop-oldest", "drop-newest", "wait"]
ON_FULL: Final[tuple[OnFull, ...]] = ("drop-oldest", "drop-newest", "wait")


class Subscription:
    """Events that match one filter, in the order in which they arrive.

    Up to `queue` events wait for the application. When it is too slow, `on_full` says what happens: the oldest or the
    newest are dropped and counted, or the session stops reading the network (`wait`; for all its subscriptions), and
    what the kernel then has no room for is counted as the session's `dropped`.

    Leaving the context withdraws the subscription; what still waits can be read on.
    """

    def __init__(
        self,
        name: str,
        filter: Filter,
        queue: int,
        on_full: OnFull,
        withdraw: Callable[[Subscription], Awaitable[None]],
        resume: Callable[[], None],
    ) -> None:
        if on_full not in ON_FULL:
            raise ClientError(f"on_full is {on_full!r}", f"use one of {', '.join(ON_FULL)}")
        if queue < 1:
            raise ClientError(f"a queue of {queue} events", "give it room for 1 or more")
        self.name = name
        self.queue = queue
        self.on_full = on_full
        self.closed = False
        self.understand(filter)
        self.counts = Counts(sequences=Sequences() if _is_everything(self.bounds) else None)
        self._withdraw, self._resume = withdraw, resume
        self._waiting: deque[Delivered] = deque()
        self._readers: set[Future[None]] = set()
        self._error: ClientError | None = None

    def understand(self, filter: Filter) -> None:
        """Takes the filter as it is under the schema in force."""
        self.filter = filter
        self.bounds: Floats = bounds(boxes(filter), filter.schema)

    @property
    def full(self) -> bool:
        """Whether reading the network has to stop until the application caught up."""
        return self.on_full == "wait" and not self.closed and len(self._waiting) >= self.queue

    @property
    def crowded(self) -> bool:
        """Whether it is too early to read the network again."""
        return self.on_full == "wait" and not self.closed and len(self._waiting) > self.queue >> 1

    def __len__(self) -> int:
        """How many events wait."""
        return len(self._waiting)

    def offer(self, events: list[Delivered]) -> None:
        """Takes events in, or drops what there is no room for."""
        self._waiting.extend(events)
        excess = len(self._waiting) - self.queue
        if excess > 0 and self.on_full != "wait":
            take_out = self._waiting.popleft if self.on_full == "drop-oldest" else self._waiting.pop
            for _ in range(excess):
                take_out()
            self.counts.dropped += excess
        self._wake()

    def end(self, error: ClientError | None = None) -> None:
        """No more events come; readers get what waits and then stop, or get the error."""
        self.closed = True
        self._error = self._error or error
        self._wake()

    async def close(self) -> None:
        """Withdraws the subscription."""
        if not self.closed:
            await self._withdraw(self)

    async def batch(self) -> list[Delivered]:
        """All events that wait, at least one; none when the subscription has ended."""
        while not self._waiting:
            if self.closed:
                if self._error is not None:
                    raise self._error
                return []
            await self._arrival()
        found = list(self._waiting)
        self._waiting.clear()
        self._resume()
        return found

    async def batches(self) -> AsyncIterator[list[Delivered]]:
        """Events as they arrive, many at a time: what a busy subscriber should read."""
        while found := await self.batch():
            yield found

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delivered:
        waiting = self._waiting
        while not waiting:
            if self.closed:
                if self._error is not None:
                    raise self._error
                raise StopAsyncIteration
            await self._arrival()
        found = waiting.popleft()
        if len(waiting) == self.queue >> 1 or not waiting:
            self._resume()
        return found

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _arrival(self) -> None:
        """Each reader waits by itself, so that one who gives up disturbs no other."""
        reader = get_running_loop().create_future()
        self._readers.add(reader)
        try:
            await reader
        finally:
            self._readers.discard(reader)

    def _wake(self) -> None:
        for reader in self._readers:
            if not reader.done():
                reader.set_result(None)


def _is_everything(given: Floats) -> bool:
    """Whether the boxes hold every event, with missing values and without."""
    return len(given) == 1 and bool(np.isneginf(given[0, :, 0]).all() and np.isposinf(given[0, :, 1]).all())
