"""One session's sending side: from events to datagrams, addressed and marked as the description in force says.

The network may change that while events flow. `speak` returns when the kernel has all that was sent by what was said
before, so that a session which has said `Adopted` never sends otherwise again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from plerion.client.logbook import Logbook
from plerion.client.mmsg import Addresses
from plerion.client.publication import Floats, addresses, datagrams, group_addresses
from plerion.client.transport import Transport
from plerion.index.encode import Ints, encode
from plerion.wire.description import Description

LINGER_SECONDS: Final = 0.25
"""How long a session stays after its last event: leaving takes paths away, and an event may still be on one."""


class Sender:
    """Sends the events of one publisher, each under a number of its own."""

    def __init__(self, sockets: Callable[[], Transport]) -> None:
        self.published = 0
        self.uncoded = 0  # events that no cluster of the index has, so that nobody can ask for them
        self._sockets = sockets
        self._last = 0.0
        self._under_way: set[asyncio.Future[None]] = set()  # being handed to the kernel

    async def speak(self, description: Description) -> None:
        """From now on events are sent by this; returns when none can follow that was not."""
        earlier, self.description = [*self._under_way], description
        await asyncio.gather(*earlier)

    async def linger(self) -> None:
        """Waits until the last event is past the switches that the publisher's leaving will change."""
        left = self._last + LINGER_SECONDS - time.monotonic()
        if left > 0:
            await asyncio.sleep(left)

    async def send(
        self,
        publisher: str,
        points: Floats,
        extras: Sequence[dict[str, Any] | None] | None,
        logbook: Logbook | None,
    ) -> None:
        """Returns when the kernel has taken all of them."""
        description = self.description
        index = description.index
        event, found = destinations(description, points)
        coded = np.unique(event)
        if len(coded) < len(points):
            self.uncoded += len(points) - len(coded)
            points = points[coded]
            extras = None if extras is None else [extras[at] for at in coded]
        now, first = time.time_ns(), self.published
        sent = datagrams(index.schema, points, publisher, first, index.epoch, now, extras)
        self.published += len(points)
        under_way: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._under_way.add(under_way)
        try:
            await self._sockets().send(found, sent.rows(np.searchsorted(coded, event)), description.vlan)
        finally:
            self._under_way.discard(under_way)
            under_way.set_result(None)
        self._last = time.monotonic()
        if logbook is not None:
            logbook.sent(publisher, first, index.epoch, points, now)


def destinations(description: Description, points: Floats) -> tuple[Ints, Addresses]:
    """Where these events go: the row of an event for each datagram, and its address."""
    codes = encode(description.index, points)
    if description.groups:
        return group_addresses(description.plan, description.groups, codes)
    return codes.event, addresses(description.plan, codes.dz)
