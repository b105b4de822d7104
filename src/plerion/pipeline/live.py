"""The index and the subscriptions that the stream holds against the events, as their files stand now.

A file that is replaced is read again. One that cannot be read, or an index of another schema, is told of once and what
was in use stays. Subscriptions come from a file, or from the log: then a window is held against those that
were live at its end.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plerion.content.read import Interests, read_interests
from plerion.eventlog.reader import LogReader
from plerion.eventlog.records import MICROS, Kind
from plerion.index.codec import read_index
from plerion.index.content_index import ContentIndex
from plerion.learning.workload import Workload
from plerion.pipeline.steps.evaluate import Asked
from plerion.pipeline.steps.windows import Versions

MOST_VERSIONS = 8  # of the subscriptions in one batch; of more changes every so many is looked at

Mark = tuple[object, ...]


class Live:
    """What is in use. `complain` hears, in a line, of what cannot be read."""

    def __init__(
        self,
        log: Path,
        index: Path,
        subscriptions: Path | None,
        length: int,
        budget: int,
        complain: Callable[[str], None],
    ) -> None:
        self._paths = log, index, subscriptions
        self._length, self._budget, self._complain = length, budget, complain
        self._index_mark = _mark(index)
        self.index = read_index(index)
        self._given = None if subscriptions is None else read_interests(subscriptions, self.index.schema)
        self._asked_mark: Mark = ()
        self._changes: list[int] = []
        self._known: dict[int, Asked] = {}
        self._interests: dict[int, Workload] = {}
        self.refresh()

    def refresh(self) -> bool:
        """Looks at the files again; whether the index is another one."""
        changed = self._reload()
        log, _, subscriptions = self._paths
        mark = (self.index, _mark(subscriptions)) if subscriptions else (self.index, *_listing(log))
        if mark != self._asked_mark:
            self._known, self._interests = {}, {}
            self._reread(subscriptions)
            self._changes = [] if subscriptions else _change_windows(log, self.index, self._length)
            self._asked_mark = mark
        return changed

    def versions(self, first: int, last: int) -> Versions:
        """The interests of the windows from `first` to `last`."""
        later = [window for window in self._changes if first < window <= last]
        thinned = later[:: -(-len(later) // MOST_VERSIONS)] if later else []
        wanted = [
            max([window for window in self._changes if window <= first], default=min(0, first)),
            *thinned,
        ]
        self._known = {window: self._known.get(window) or self._asked(window) for window in wanted}
        return tuple(self._known.items())

    def interests(self, window: int) -> Workload:
        """Who asks for what in a window, without events."""
        standing = max([change for change in self._changes if change <= window], default=min(0, window))
        if standing not in self._interests:
            found = self._read(standing)
            nothing = np.empty((0, len(self.index.schema.names)))
            self._interests[standing] = Workload.of(self.index.schema, nothing, found)
        return self._interests[standing]

    def _asked(self, window: int) -> Asked:
        return Asked.of(self.index, self.interests(window), self._budget)

    def _read(self, window: int) -> Interests:
        if self._given is not None:
            return self._given
        log, _, _ = self._paths
        end = (window + 1) * self._length - 1
        found = LogReader(log, self.index.schema).subscriptions_at(end / MICROS)
        for skip in found.skipped:
            self._complain(f"left out: {skip.path}: {skip.reason}")
        return found.interests

    def _reread(self, subscriptions: Path | None) -> None:
        try:
            if subscriptions is not None:
                self._given = read_interests(subscriptions, self.index.schema)
        except (ValueError, OSError) as error:
            self._complain(f"{subscriptions} cannot be read, the subscriptions in use stay: {error}")

    def _reload(self) -> bool:
        path, mark = self._paths[1], _mark(self._paths[1])
        if mark == self._index_mark:
            return False
        self._index_mark = mark
        try:
            found = read_index(path)
        except (ValueError, OSError) as error:
            self._complain(f"{path} cannot be read, the index in use stays: {error}")
            return False
        if found.schema != self.index.schema:
            self._complain(f"{path} has another schema, the index in use stays")
            return False
        self.index = found
        return True


def _mark(path: Path | None) -> Mark:
    """Differs when the file was replaced or written to."""
    with suppress(OSError):
        if path is not None:
            found = path.stat()
            return found.st_ino, found.st_size, found.st_mtime_ns
    return ()


def _listing(log: Path) -> list[str]:
    """The files about subscriptions; none of them ever changes."""
    return sorted(str(path) for path in (log / Kind.SUBSCRIPTIONS).glob("hour=*/part-*"))


def _change_windows(log: Path, index: ContentIndex, length: int) -> list[int]:
    """The windows in which a subscription began or ended."""
    table = LogReader(log, index.schema).read(Kind.SUBSCRIPTIONS).table
    times = pc.unique(table["time"].cast(pa.int64())).to_numpy(zero_copy_only=False)
    return [int(window) for window in np.unique(times // length)]
