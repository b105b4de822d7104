"""One switch of the timeline: what it holds, and what it does with a packet. Written to the specification."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from plerion.index.dz import Dz
from plerion.topology.graph import SwitchId
from plerion.update.entries import Changes, Entry, Table

_Identity = tuple[Table, Dz, int, int, int, int]
_Header = tuple[Table, int, Dz, int, int]


def identity(entry: Entry) -> _Identity:
    """What an entry of a switch is known by."""
    return entry.table, entry.dz, entry.in_port, entry.vlan, entry.epoch, entry.priority


def action(entry: Entry) -> tuple[frozenset[int], int, bool, bool]:
    """What an entry does."""
    return entry.ports, entry.set_vlan, entry.untag, entry.bridge


class Switch:
    """Entries by identity; adding one that is there replaces what it does."""

    def __init__(self, name: SwitchId) -> None:
        self.name = name
        self.held = self.most = 0  # entries for forwarding: now, and the most that it ever held
        self.busy_until = 0.0
        self._entries: dict[_Identity, Entry] = {}
        # By table, length and bits of the dz: a code lies in one cell of each length.
        self._cells: dict[Table, dict[int, dict[int, dict[_Identity, Entry]]]] = {
            table: {} for table in Table
        }
        self._known: dict[_Header, list[Entry]] = {}

    def entries(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def add(self, entry: Entry) -> None:
        known = identity(entry)
        if entry.table == Table.FORWARDING and known not in self._entries:
            self.held += 1
            self.most = max(self.most, self.held)
        self._entries[known] = entry
        self._cell(entry.table, entry.dz)[known] = entry
        self._known.clear()

    def remove(self, entry: Entry) -> None:
        known = identity(entry)
        if self._entries.pop(known, None) is None:
            return
        self.held -= entry.table == Table.FORWARDING
        del self._cell(entry.table, entry.dz)[known]
        self._known.clear()

    def _cell(self, table: Table, dz: Dz) -> dict[_Identity, Entry]:
        return self._cells[table].setdefault(dz.length, {}).setdefault(dz.bits, {})

    def pieces(self, changes: Changes) -> list[Callable[[], None]]:
        """The single changes in the order in which a switch takes them (see `Changes`)."""
        arriving = sorted(changes.added, key=lambda entry: -entry.priority)
        leaving = sorted(changes.removed, key=lambda entry: entry.priority)
        replaced = {identity(entry) for entry in arriving} & {identity(entry) for entry in leaving}
        fresh = [entry for entry in arriving if identity(entry) not in replaced]
        again = [entry for entry in arriving if identity(entry) in replaced]
        gone = [entry for entry in leaving if identity(entry) not in replaced]
        return [
            *(partial(self.add, entry) for entry in (*fresh, *again)),
            *(partial(self.remove, entry) for entry in gone),
        ]

    def match(self, table: Table, in_port: int, code: Dz, epoch: int, vlan: int) -> list[Entry]:
        """The entry of the highest priority that matches; several when the switch might take any of them."""
        header = (table, in_port, code, epoch, vlan)
        found = self._known.get(header)
        if found is None:
            found = self._known[header] = self._matches(header)
        return found

    def _matches(self, header: _Header) -> list[Entry]:
        table, in_port, code, epoch, vlan = header
        fitting = [
            entry
            for length, cells in self._cells[table].items()
            if length <= code.length
            for entry in cells.get(code.bits >> (code.length - length), {}).values()
            if entry.matches(in_port, code, epoch, vlan)
        ]
        highest = max((entry.priority for entry in fitting), default=0)
        best = [entry for entry in fitting if entry.priority == highest]
        return best if len({action(entry) for entry in best}) > 1 else best[:1]
