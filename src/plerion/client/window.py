"""Which events have been seen: for each publisher, of its latest numbers exactly.

A window is a ring with a place a number. A number above the window moves it; one below it is too old to tell and counts
as seen, because handing an event out twice is worse than leaving out one that is 32,768 events late. Publishers are
remembered up to a limit; the one that was silent for longest is forgotten first.
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
        self._windows: OrderedDict[str, Window] = OrderedDict()

    def __len__(self) -> int:
        return len(self._windows)

    def of(self, publisher: str) -> Window:
        found = self._windows.get(publisher)
        if found is None:
            found = self._windows[publisher] = Window()
            if len(self._windows) > self._max:
                self._windows.popitem(last=False)
        else:
            self._windows.move_to_end(publisher)
        return found
