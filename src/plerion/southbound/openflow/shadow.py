"""What a switch was last known to hold, for when it cannot be asked."""

from __future__ import annotations

import numpy as np

from plerion.flow.fabric import Fabric
from plerion.update.entries import Changes, Entries, Table, joined, no_entries


class Shadow:
    """Rows and the changes since; folded together when they have grown, so a change costs what it changes."""

    def __init__(self, fabric: Fabric) -> None:
        self._rows = no_entries(fabric)
        self._changes: list[Changes] = []
        self._size = 0

    def replace(self, rows: Entries, table: Table | None = None) -> None:
        """The switch holds these rows, in the table or altogether."""
        if table is not None:
            now = self.rows()
            rows = joined([now[now.table != table], rows])
        self._rows, self._changes, self._size = rows, [], 0

    def record(self, changes: Changes) -> None:
        self._changes.append(changes)
        self._size += len(changes)
        if self._size > 4096 + len(self._rows):
            self.rows()

    def rows(self) -> Entries:
        """What it holds; of several changes of one row the last counts."""
        if self._changes:
            parts = [self._rows]
            there = [np.ones(len(self._rows), np.bool_)]
            for change in self._changes:
                parts += [change.removed, change.added]
                there += [np.zeros(len(change.removed), np.bool_), np.ones(len(change.added), np.bool_)]
            every, kept = joined(parts), np.concatenate(there)
            keys = every.identity()
            order = np.lexsort(keys)  # stable: a later change comes after
            again = np.ones(max(0, len(order) - 1), np.bool_)
            for key in keys:
                again &= key[order[1:]] == key[order[:-1]]
            kept[order[:-1][again]] = False
            self.replace(every[kept])
        return self._rows
