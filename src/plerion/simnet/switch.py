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


class Switch:
    """Entries by identity; adding one that is there replaces what it does."""

    def __init__(self, name: SwitchId) -> None:
        self.name = name
        self.most = 0  # entries that it ever held for forwarding
        self.busy_until = 0.0
        self._entries: dict[_Identity, Entry] = {}
        self._known: dict[_Header, list[Entry]] = {}

    def entries(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def add(self, entry: Entry) -> None:
        self._entries[identity(entry)] = entry
        self._known.clear()
        forwarding = sum(one.table == Table.FORWARDING for one in self._entries.values())
        self.most = max(self.most, forwarding)

    def remove(self, entry: Entry) -> None:
        self._entries.pop(identity(entry), None)
        self._known.clear()

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
            for entry in self._entries.values()
            if entry.table == table and entry.matches(in_port, code, epoch, vlan)
        ]
        highest = max((entry.priority for entry in fitting), default=0)
        best = [entry for entry in fitting if entry.priority == highest]
        kinds = {(entry.ports, entry.set_vlan, entry.untag, entry.bridge) for entry in best}
        return best if len(kinds) > 1 else best[:1]
