"""HTTP connections that nobody waits for: who connects and does not ask, or asks without end, makes room for others.

uvicorn waits for ever for the rest of a request. Connections that say nothing would then take all of its places, and
with them the descriptors that switches need.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS: Final = 512
REQUEST_SECONDS: Final = 10.0
"""In which a request must have come whole; one whose head came in time has as long again for its body."""


class Impatient(H11Protocol):
    """One connection of a client that has to be quick; answering may take as long as it takes."""

    request_seconds = REQUEST_SECONDS
    most = CONNECTIONS

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._seen: Any = None
        self._timer = self.loop.call_later(self.request_seconds, self._look)
        if len(self.connections) > self.most:
            silent = next((other for other in self.connections if self._outranks(other)), None)
            if isinstance(silent, Impatient):
                silent.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def _outranks(self, other: object) -> bool:
        """Whether the other one has asked nothing yet and holds a place."""
        if other is self or not isinstance(other, Impatient):
            return False
        return other.cycle is None and not other.transport.is_closing()

    def _look(self) -> None:
        """Hangs up on a client whose turn it is, and was when this was last looked at."""
        its_turn = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if its_turn and self.cycle is self._seen:
            self.transport.abort()
            return
        self._seen = self.cycle
        self._timer = self.loop.call_later(self.request_seconds, self._look)
