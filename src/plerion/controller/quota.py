"""How much a host may ask for, and how often; what is more is refused with the bound."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from plerion.topology.graph import HostId

Kind = Literal["subscriptions", "advertisements"]


@dataclass(frozen=True, slots=True)
class Quotas:
    """Bounds for each host."""

    subscriptions: int = 10_000
    advertisements: int = 1_000
    sessions: int = 256
    requests_per_second: float = 2_000.0
    unanswered: int = 4_096


class Holdings:
    """The interests of each host by id, those asked for and not yet answered included."""

    def __init__(self, quotas: Quotas) -> None:
        self._quotas = quotas
        self._held: dict[tuple[Kind, HostId], set[str]] = {}

    def load(self, kind: Kind, interests: Iterable[tuple[str, str]]) -> None:
        """What is there already, as (id, host), whatever the quota."""
        for name, host in interests:
            self._held.setdefault((kind, HostId(host)), set()).add(name)

    def take(self, kind: Kind, host: HostId, name: str) -> str | None:
        """One more, unless it is one too many: then the reason. One that is held already costs nothing."""
        held = self._held.setdefault((kind, host), set())
        most = getattr(self._quotas, kind)
        if name not in held and len(held) >= most:
            return f"{host} has {len(held):,} {kind}, and at most {most:,} are allowed: withdraw some first"
        held.add(name)
        return None

    def drop(self, kind: Kind, host: HostId, name: str) -> None:
        self._held.get((kind, host), set()).discard(name)

    def holds(self, kind: Kind, host: HostId, name: str) -> bool:
        return name in self._held.get((kind, host), ())

    def of(self, kind: Kind, host: HostId) -> frozenset[str]:
        return frozenset(self._held.get((kind, host), ()))

    def count(self, kind: Kind, host: HostId) -> int:
        return len(self._held.get((kind, host), ()))


class Pace:
    """A bucket of tokens a host: it fills at the allowed rate and holds two seconds' worth."""

    def __init__(self, per_second: float) -> None:
        self.per_second = per_second
        self._most = max(1.0, 2 * per_second)
        self._buckets: dict[HostId, tuple[float, float]] = {}

    def allows(self, host: HostId, now: float) -> bool:
        """Whether the host may ask once more now."""
        level, at = self._buckets.get(host, (self._most, now))
        level = min(self._most, level + max(0.0, now - at) * self.per_second)
        allowed = level >= 1.0
        self._buckets[host] = (level - 1.0 if allowed else level, now)
        return allowed
