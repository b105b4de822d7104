"""How the hosts of a network learn that it changes its language, and how the controller learns that they did.

Every session with a lease is told, again and again until it says that it has adopted what is announced. A rollout waits
for those of them that advertise something: nobody else sends anything. Whoever was not reached is answered `Outdated`
when it wants to advertise, and is told again with its next sign of life, so no session ever sends in a language that is
not understood any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from logging import getLogger
from math import inf

from plerion.controller.adoption import Described
from plerion.controller.desk import Desk
from plerion.controller.language import at_rest, described
from plerion.controller.lease import Session, session_of
from plerion.controller.state import Settings, State
from plerion.flow.render import LastHop
from plerion.topology.graph import HostId
from plerion.update.plan import Sending
from plerion.wire.description import Description, cut, digest, pack

AGAIN_SECONDS = 0.1  # after which who did not answer is told again; doubled each time
LATEST_SECONDS = 2.0

log = getLogger(__name__)


def packed(description: Description) -> Described:
    """A description as hosts are told of it."""
    found = pack(description)
    return Described(description.index.epoch, digest(found), cut(found))


class Announcer:
    """The publishers of a network, as `rolling` needs them. `tell` sends a session a notice of what is in force."""

    def __init__(
        self, state: Callable[[], State], desk: Desk, last_hop: LastHop, tell: Callable[[Session], None]
    ) -> None:
        self._state, self._desk, self._last_hop, self._tell = state, desk, last_hop, tell
        settings = state().settings
        self._old, self._new = settings, settings
        self._telling: asyncio.Task[None] | None = None

    def between(self, old: Settings, new: Settings) -> None:
        self._old, self._new = old, new

    def announce(self, sending: Sending) -> None:
        self._announce(described(sending, self._old, self._new, self._last_hop))

    def rest(self, settings: Settings) -> None:
        self._old = self._new = settings
        self._announce(at_rest(settings, self._last_hop))

    async def adopted(self, host: HostId) -> bool:
        """An advertisement without a session is an operator's, who was told that nobody can be asked there."""
        asked = set(self._sessions(host))

        def settled() -> bool:
            return all(one in self._desk.adoption or one not in self._desk.leases for one in asked)

        await self._desk.adoption.until(settled, inf)
        return not asked or any(one in self._desk.adoption for one in asked)

    def _sessions(self, host: HostId) -> Iterator[Session]:
        """The sessions of a host that advertise anything."""
        for one in self._state().advertisements.values():
            session = session_of(one.id, one.host)
            if one.host == host and session is not None:
                yield session

    def _announce(self, description: Description) -> None:
        self._desk.adoption.announce(packed(description))
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._told())

    async def _told(self) -> None:
        """Tells those who lag until nobody does, ever more slowly; the next announcement begins anew."""
        said, pause = "", AGAIN_SECONDS
        while lagging := self._desk.adoption.lagging(self._desk.leases):
            current = self._desk.adoption.described.digest
            if current != said:
                said, pause = current, AGAIN_SECONDS
                log.info("%d sessions are told of %s", len(lagging), current[:12])
            for session in lagging:
                self._tell(session)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LATEST_SECONDS)
