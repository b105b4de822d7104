"""Which events have been seen: for each publisher at each address, of its latest numbers exactly.

A window is a ring with a place a number. A number above the window moves it; one below it is too old to tell and counts
as seen, because handing an event out twice is worse than leaving out one that is 32,768 events late.

A publisher's name is what a datagram says; the address that it came from is vouched for by the network. So windows go
by both, and a host that sends in another's name changes nothing for that one. Publishers are remembered up to a
limit; of the address that has most of them, the one that was silent for longest is forgotten first.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

SIZE: Final = 32_768
MAX_PUBLISHERS: Final = 2_048


class Window:
    """The latest SIZE numbers of one publisher; at most one pass over SIZE bytes a number."""

    __slots__ = ("_seen", "_top")

    def __init__(self) -> None:
        self._seen = bytearray(SIZE)
        self._top = -1

    def first_time(self, number: int) -> bool:
        """Whether this number was not seen before; it is now."""
        if number > self._top:
            self._advance(number)
        elif number <= self._top - SIZE:
            return False
        at = number & (SIZE - 1)
        if self._seen[at]:
            return False
        self._seen[at] = 1
        return True

    def _advance(self, number: int) -> None:
        """Forgets what the numbers passed over had for the places that they take."""
        first, last = (self._top + 1) & (SIZE - 1), number & (SIZE - 1)
        if number - self._top >= SIZE:
            self._seen = bytearray(SIZE)
        elif first <= last:
            self._seen[first : last + 1] = bytes(last + 1 - first)
        else:
            self._seen[first:] = bytes(SIZE - first)
            self._seen[: last + 1] = bytes(last + 1)
        self._top = number


class Windows:
    """The windows of the publishers that were heard latest."""

    def __init__(self, max_publishers: int = MAX_PUBLISHERS) -> None:
        self._max = max_publishers
        self._count = 0
        self._sources: dict[bytes, OrderedDict[str, Window]] = {}

    def __len__(self) -> int:
        return self._count

    def of(self, source: bytes, publisher: str) -> Window:
        windows = self._sources.setdefault(source, OrderedDict())
        found = windows.get(publisher)
        if found is None:
            found = windows[publisher] = Window()
            self._count += 1
            if self._count > self._max:
                self._forget()
        else:
            windows.move_to_end(publisher)
        return found

    def _forget(self) -> None:
        crowded = max(self._sources, key=lambda source: len(self._sources[source]))
        self._sources[crowded].popitem(last=False)
        self._count -= 1
        if not self._sources[crowded]:
            del self._sources[crowded]
