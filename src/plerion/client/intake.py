"""One session's receiving side: the socket, who reads it, and whom it is handed to."""

from __future__ import annotations

import asyncio
import time

from plerion.client.counts import Totals
from plerion.client.errors import ClientError
from plerion.client.logbook import Logbook
from plerion.client.reception import Arrived, Reception
from plerion.client.subscription import Subscription
from plerion.client.transport import Transport
from plerion.content.parse import parse
from plerion.index.content_index import ContentIndex


class Intake:
    """Reads while there is a subscription, and pauses while one that waits has no room."""

    def __init__(self, index: ContentIndex, transport: Transport, host: str, logbook: Logbook | None) -> None:
        self.subscriptions: dict[str, Subscription] = {}
        self._index = index
        self._transport = transport
        self._host, self._logbook = host, logbook
        self._reception = Reception(index, None if logbook is None else self._watch)
        self._reading: int | None = None
        self._paused = False

    @property
    def totals(self) -> Totals:
        return self._reception.totals

    def add(self, made: Subscription) -> None:
        """From now on the subscription gets what it wants of all that arrives."""
        if self._reading is None:
            self._reading = self._transport.listen()
            asyncio.get_running_loop().add_reader(self._reading, self._read)
        self.subscriptions[made.name] = made
        self._reception.admit(made)

    def forget(self, name: str) -> bool:
        """Whether there was such a subscription; there is none now."""
        known = self.subscriptions.pop(name, None)
        if known is not None:
            self._reception.dismiss(known)
        self.resume()
        return known is not None

    def describe(self, index: ContentIndex) -> None:
        """Reads by another index; subscriptions whose filter it gives no meaning end."""
        self._index = index
        for name, made in [*self.subscriptions.items()]:
            try:
                made.understand(parse(made.filter.text, index.schema))
            except ValueError as error:
                made.end(ClientError(f"the filter has no meaning under the new schema: {error}"))
                self.forget(name)
        self._reception.describe(index)

    def resume(self) -> None:
        """Reads again, if everybody who waits has room."""
        crowded = any(made.crowded for made in self.subscriptions.values())
        if self._paused and self._reading is not None and not crowded:
            self._paused = False
            asyncio.get_running_loop().add_reader(self._reading, self._read)

    def close(self) -> None:
        """Readers get what still waits, and then the end."""
        if self._reading is not None:
            asyncio.get_running_loop().remove_reader(self._reading)
            self._reading = None
        for made in self.subscriptions.values():
            made.end()
        self.subscriptions.clear()

    def _read(self) -> None:
        arrived = self._transport.receive()
        if arrived:
            self._reception.take(arrived, time.time_ns(), self._transport.sources)
        if any(made.full for made in self.subscriptions.values()) and self._reading is not None:
            self._paused = True
            asyncio.get_running_loop().remove_reader(self._reading)

    def _watch(self, arrived: Arrived) -> None:
        if self._logbook is not None:
            self._logbook.arrived(arrived, self._host, list(self.subscriptions))
