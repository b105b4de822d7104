"""What is counted at a subscriber, and what each number means.

`received` are events that reached the session while the subscription was open, each once. `wanted` of them match the
filter; `false_positives` match no filter of the session (they may be meant for another process of the host). `doubles`
arrived again although the network should have delivered them once; `copies` arrived again rightly, under another code
of the same event, which indexes with overlapping clusters give. Neither is handed out twice.

A publisher numbers all its events, and a subscriber gets only those that match: a hole in the numbers is then no loss.
So `gaps` is None, unless the filter matches every event: then a number that is missing between two that came is an
event that was lost, or is late; it is taken back when it comes.

`dropped` are wanted events that the application was too slow for: the queue was full.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

_STEPS: Final = 16  # buckets each time the latency doubles: an answer is at most 4.5 % too high
_OCTAVES: Final = 40  # from 1 ns to 18 minutes
_LONGEST_NS: Final = 1 << _OCTAVES
_MAX_PUBLISHERS: Final = 65_536  # whose numbers are followed; names cost a stranger nothing


class Latency:
    """How long events took from sending to reception, in buckets; costs the same for any number of events.

    Compares the clocks of two hosts, so it is as right as they agree; what would be negative counts as nothing,
    and what would be longer than the last bucket as that: a sender may say any time.
    """

    __slots__ = ("_buckets", "count", "total_ns")

    def __init__(self) -> None:
        self._buckets = np.zeros(_STEPS * _OCTAVES, np.int64)
        self.count = 0
        self.total_ns = 0

    def add(self, taken_ns: Ints) -> None:
        taken = np.clip(taken_ns, 0, _LONGEST_NS)
        place = np.floor(np.log2(np.maximum(taken, 1)) * _STEPS).astype(np.int64)
        self._buckets += np.bincount(np.minimum(place, len(self._buckets) - 1), minlength=len(self._buckets))
        self.count += len(taken)
        self.total_ns += int(taken.sum())

    def quantile(self, share: float) -> float | None:
        """The seconds within which this share of the events came, rounded up to a bucket; None without events."""
        if not self.count:
            return None
        rank = min(self.count, max(1, int(np.ceil(share * self.count))))
        place = int(np.searchsorted(np.cumsum(self._buckets), rank))
        return float(2.0 ** ((place + 1) / _STEPS) / 1e9)

    def to_json(self) -> dict[str, Any]:
        """Seconds: mean, median, 99 % and 99.9 %."""
        mean = self.total_ns / self.count / 1e9 if self.count else None
        shares = {f"p{100 * share:g}": self.quantile(share) for share in (0.5, 0.99, 0.999)}
        return {"count": self.count, "mean": mean, **shares}


@dataclass(slots=True)
class Sequences:
    """Which numbers of each publisher came, as far as holes between them need."""

    _heard: dict[tuple[bytes, str], list[int]] = field(default_factory=dict)

    def add(self, source: bytes, publisher: str, sequence: int) -> None:
        key = source, publisher
        heard = self._heard.get(key)
        if heard is None:
            if len(self._heard) < _MAX_PUBLISHERS:
                self._heard[key] = [sequence, sequence, 1]
            return
        heard[0] = min(heard[0], sequence)
        heard[1] = max(heard[1], sequence)
        heard[2] += 1

    @property
    def holes(self) -> int:
        return sum(last - first + 1 - count for first, last, count in self._heard.values())


@dataclass(slots=True)
class Totals:
    """What reached the session as a whole."""

    received: int = 0
    malformed: int = 0
    doubles: int = 0
    copies: int = 0
    false_positives: int = 0
    latency: Latency = field(default_factory=Latency)


@dataclass(slots=True)
class Counts:
    """The numbers of one subscription; see the module.

    What is the same for all subscriptions of a session is counted once, for the session: a subscription remembers where
    these counts stood when it began, and when it ended. So an event costs those who want it, and nobody else.
    """

    wanted: int = 0
    dropped: int = 0
    latency: Latency = field(default_factory=Latency)
    sequences: Sequences | None = None
    _totals: Totals = field(default_factory=Totals)
    _began: Totals = field(default_factory=Totals)
    _ended: Totals | None = None

    def follow(self, totals: Totals) -> None:
        """Counts from now on what the session counts."""
        self._totals, self._began = totals, replace(totals)

    def stop(self) -> None:
        """The session goes on without this subscription."""
        self._ended = self._ended or replace(self._totals)

    def _since(self, name: str) -> int:
        found: int = getattr(self._ended or self._totals, name) - getattr(self._began, name)
        return found

    @property
    def received(self) -> int:
        return self._since("received")

    @property
    def false_positives(self) -> int:
        return self._since("false_positives")

    @property
    def doubles(self) -> int:
        return self._since("doubles")

    @property
    def copies(self) -> int:
        return self._since("copies")

    @property
    def gaps(self) -> int | None:
        return None if self.sequences is None else self.sequences.holes

    def to_json(self) -> dict[str, Any]:
        names = ("received", "wanted", "false_positives", "doubles", "copies", "gaps", "dropped")
        return {name: getattr(self, name) for name in names} | {"latency": self.latency.to_json()}
