"""Which description each session sends by, and whom a change of it still waits for.

A session that says `Adopted` never sends otherwise again until it is announced another one. What a session speaks is
not kept on disk: after a restart nobody is known to have adopted anything, and each is asked with its next sign of
life.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from plerion.controller.lease import Session


@dataclass(frozen=True, slots=True)
class Described:
    """The description in force, as hosts are told of it."""

    epoch: int
    digest: str
    parts: Sequence[bytes]


class Adoption:
    """The description in force, and the sessions that send by it. At most one entry a session with a lease."""

    def __init__(self, described: Described) -> None:
        self.described = described
        self._adopted: set[Session] = set()
        self._changed = asyncio.Event()

    def __contains__(self, session: Session) -> bool:
        return session in self._adopted

    def announce(self, described: Described) -> None:
        """Another description is in force; one that is in force already changes nothing."""
        if described.digest != self.described.digest:
            self._adopted.clear()
        self.described = described
        self._changed.set()

    def adopt(self, session: Session, digest: str) -> bool:
        """The session sends by this one; False when it is not the one in force."""
        if digest != self.described.digest:
            return False
        self._adopted.add(session)
        self._changed.set()
        return True

    def forget(self, session: Session) -> None:
        """The session has ended."""
        self._adopted.discard(session)
        self._changed.set()

    def lagging(self, sessions: Iterable[Session]) -> list[Session]:
        """Those of the sessions that are not known to send by the description in force."""
        return [session for session in sessions if session not in self._adopted]

    async def until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Whether this came to hold within the time; looked at whenever somebody adopts or ends."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + seconds
        while not holds():
            if (left := ends - loop.time()) <= 0:
                return False
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except TimeoutError:
                continue
        return True
