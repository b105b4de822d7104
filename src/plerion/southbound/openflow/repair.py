"""A switch is told the difference between what it holds and what it should, in one bundle, and nothing beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from struct import Struct

from plerion.southbound.openflow.cache import MESSAGES, turned, whose_turn
from plerion.southbound.openflow.codec import ATOMIC_AND_ORDERED, encode
from plerion.southbound.openflow.decode import BUNDLE_ADD, ONF
from plerion.southbound.openflow.flowmod import flow_mods
from plerion.southbound.openflow.messages import VERSION, BundleAdd, Command, FlowMod
from plerion.southbound.openflow.pipeline import OURS_TO_DELETE, Entry, furniture, turns
from plerion.southbound.openflow.readback import Found, Held, sorted_out
from plerion.southbound.openflow.shapes import SwitchShapes
from plerion.southbound.openflow.tags import told
from plerion.update.entries import Changes, Entries, changes

Target = Callable[[Entries], Entries]
"""From the rows that a switch holds to those that it should."""


@dataclass(frozen=True, slots=True, eq=False)
class Bundle:
    """What one switch is told at once; `turns` where the other turn comes in the place of the one that stands."""

    changes: Changes
    turns: bool
    stale: list[Found] = field(default_factory=list)
    missing: list[Entry] = field(default_factory=list)

    def __len__(self) -> int:
        """The messages."""
        return len(self.changes) + len(self.stale) + len(self.missing) + self.turns * MESSAGES

    def write(self, of: SwitchShapes, turn: int, first_xid: int, bundle: int) -> bytes:
        """What goes, goes first, so that a full table has room for what comes."""
        xid, parts = first_xid, []
        for one in self.stale:
            parts.append(wrapped(deletion(one, xid), bundle))
            xid += 1
        parts.append(flow_mods(of, self.changes, xid, bundle))
        xid += len(self.changes)
        for entry in self.missing:
            parts.append(encode(BundleAdd(bundle, FlowMod(Command.ADD, entry)), xid))
            xid += 1
        return b"".join([*parts, turned(turn, xid, bundle) if self.turns else b""])


@dataclass(frozen=True, slots=True, eq=False)
class Repair:
    """The bundle that brings a switch to its rows, and whose turn it is before it."""

    bundle: Bundle
    rows: Entries
    turn: int


def repair(of: SwitchShapes, held: Held, target: Target) -> Repair:
    """What carries our cookie and is nothing that we would have written goes; furniture that is missing comes."""
    rows, others = sorted_out(of, held)
    wanted, turn = target(rows), whose_turn(held)
    standing = furniture(of.fabric.topology, of.switch) | {turns()[turn]}
    stale = [one for one in others if one.entry not in standing]
    there = {one.entry for one in others}
    missing = [entry for entry in standing if entry not in there]
    change = told(changes(rows, wanted))
    return Repair(Bundle(change, bool(len(change) or stale), stale, missing), wanted, turn)


_DELETION = Struct("!BBHIQQBBHHHIIIHxx")
_WRAPPING = Struct("!BBHIIIIHH")


def deletion(held: Found, xid: int) -> bytes:
    """Deletes an entry by its match as the switch gave it, which need not be one that we can read."""
    size, anything = _DELETION.size + len(held.match), 0xFFFF_FFFF
    place = (held.cookie, OURS_TO_DELETE, held.table, int(Command.DELETE_STRICT), 0, 0, held.priority)
    return _DELETION.pack(VERSION, 14, size, xid, *place, anything, anything, anything, 0) + held.match


def wrapped(message: bytes, bundle: int) -> bytes:
    """A message as part of a bundle, with the same number."""
    size, xid = _WRAPPING.size + len(message), int.from_bytes(message[4:8], "big")
    return _WRAPPING.pack(VERSION, 4, size, xid, ONF, BUNDLE_ADD, bundle, 0, ATOMIC_AND_ORDERED) + message
