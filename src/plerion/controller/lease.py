"""Who is still there: sessions of hosts and the time until which each is believed to live.

An interest that a host asked for carries its session in its id, ``<host>/<session>/<name>``; so after a restart the
ids alone say which sessions there were, and each gets a fresh lease to show itself in. ``-`` in the place of a
session stands for an operator, whose interests last until they are withdrawn. Time is what the caller says it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from plerion.topology.graph import HostId

OPERATOR = "-"


class Session(NamedTuple):
    """One client on one host."""

    host: HostId
    name: str

    def id(self, name: str) -> str:
        """The id of an interest of this session."""
        return f"{self.host}/{self.name}/{name}"


def session_of(interest: str, host: str) -> Session | None:
    """Whose interest it is; None when it has no lease."""
    start = f"{host}/"
    name = interest[len(start) :].partition("/")[0] if interest.startswith(start) else OPERATOR
    return None if name in (OPERATOR, "") else Session(HostId(host), name)


class _Lease(NamedTuple):
    seconds: float
    until: float


class Leases:
    """The sessions that are believed to live. At most one entry a session; the caller bounds their number."""

    def __init__(self, usual_seconds: float = 30.0, longest_seconds: float = 3600.0) -> None:
        self.usual_seconds = usual_seconds
        self.longest_seconds = longest_seconds
        self._leases: dict[Session, _Lease] = {}
        self._by_host: Counter[HostId] = Counter()

    def __len__(self) -> int:
        return len(self._leases)

    def __contains__(self, session: Session) -> bool:
        return session in self._leases

    def __iter__(self) -> Iterator[Session]:
        return iter(self._leases)

    def of_host(self, host: HostId) -> int:
        """How many sessions the host has."""
        return self._by_host[host]

    def open(self, session: Session, seconds: float, now: float) -> float:
        """The session lives from now on; the seconds that it is granted after each sign of life."""
        granted = min(max(seconds, 1.0), self.longest_seconds)
        if session not in self._leases:
            self._by_host[session.host] += 1
        self._leases[session] = _Lease(granted, now + granted)
        return granted

    def renew(self, session: Session, now: float) -> bool:
        """A sign of life; False when there is no such session."""
        known = self._leases.get(session)
        if known is None:
            return False
        self._leases[session] = known._replace(until=max(known.until, now + known.seconds))
        return True

    def close(self, session: Session) -> None:
        if self._leases.pop(session, None) is not None:
            self._by_host[session.host] -= 1

    def extend(self, seconds: float) -> None:
        """Everybody has so much longer: for a time in which nobody could be heard."""
        self._leases = {s: lease._replace(until=lease.until + seconds) for s, lease in self._leases.items()}

    def expired(self, now: float) -> list[Session]:
        """Sessions that gave no sign of life in time; they are closed."""
        gone = [session for session, lease in self._leases.items() if lease.until <= now]
        for session in gone:
            self.close(session)
        return gone

    def adopt(self, interests: Iterable[tuple[str, str]], now: float) -> int:
        """Sessions that these interests, (id, host), belong to and that nobody opened get a lease; how many did."""
        found = {session for name, host in interests if (session := session_of(name, host)) is not None}
        fresh = found.difference(self._leases)
        for session in fresh:
            self.open(session, self.usual_seconds, now)
        return len(fresh)
