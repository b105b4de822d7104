"""A plan is data: rounds that take a network from one state to another, and where there is no way back.

A round tells switches something and waits until all of them confirm (a barrier), then tells publishers something and
waits until all of them acknowledge, then lets the network drain. Nothing of a round begins before the one before it has
ended. A plan can be looked at, counted, stored, checked on the emulator and undone without running it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from plerion.flow.entry import Ints
from plerion.index.dz import Dz
from plerion.topology.graph import HostId
from plerion.update.entries import (
    ANY,
    GROUPS,
    Changes,
    Entries,
    Side,
    Table,
    applied,
    changes,
    joined,
    no_changes,
    removed,
    shared,
)
from plerion.update.state import UNSTAMPED, NetworkState, Stamp

GROUP_BITS = 8


@dataclass(frozen=True, slots=True)
class Sending:
    """How a publisher sends: coded by which index, with which stamp.

    With `groups` an event goes to a group instead: to the first whose cell covers its code in the *old* index.
    """

    side: Side
    stamp: Stamp = UNSTAMPED
    groups: tuple[Dz, ...] = ()

    def destination(self, old: Dz | None, new: Dz | None) -> tuple[int, Dz] | None:
        """(epoch, dz) of the address of an event with these codes; None for one that the index has no code for."""
        if self.groups:
            found = None if old is None else next(i for i, cell in enumerate(self.groups) if cell.covers(old))
            return None if found is None else (GROUPS, Dz(found, GROUP_BITS))
        code = old if self.side == Side.OLD else new
        return None if code is None else (self.stamp.epoch, code)

    @property
    def vlan(self) -> int:
        """The tag of what the publisher sends; 0 is none."""
        return 0 if self.stamp.vlan == ANY else self.stamp.vlan


@dataclass(frozen=True, slots=True)
class Notice:
    """Publishers are to send like this from now on. Who acknowledged never sends otherwise again."""

    sending: Sending
    publishers: tuple[HostId, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """Changes and their barrier, then a notice and its acknowledgements, then a wait."""

    name: str
    changes: Changes
    notice: Notice | None = None
    wait_seconds: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Rounds from `old` to `new`. Before round `no_return` began all of it can be undone; from then on it is completed.

    `barriers` off is for what takes no care: switches and publishers are told everything at once.
    """

    strategy: str
    old: NetworkState
    new: NetworkState
    rounds: tuple[Round, ...]
    no_return: int
    barriers: bool = True

    @property
    def publishers(self) -> tuple[HostId, ...]:
        return tuple(sorted({*self.old.sent, *self.new.sent}))

    @property
    def first_sending(self) -> Sending:
        return Sending(Side.OLD, self.old.stamp)

    def before(self) -> Entries:
        return standing(self.old, Side.OLD)

    def after(self) -> Entries:
        return standing(self.new, Side.NEW)

    def outcome(self) -> Entries:
        """What the switches hold when every round is through."""
        entries = self.before()
        for one in self.rounds:
            entries = applied(one.changes, entries)
        return entries


def standing(state: NetworkState, side: Side) -> Entries:
    """All entries of a state at rest."""
    return joined([state.edge(side), state.forwarding(side)])


def marked(before: Entries, after: Entries) -> Entries:
    """The first entries, where those that the second ones have just the same belong to both."""
    at_old, at_new = shared(before, after)
    alike = (before.behaviour()[at_old] == after.behaviour()[at_new]).all(axis=1)
    side = before.side.copy()
    side[at_old[alike]] = Side.BETWEEN
    return replace(before, side=side)


def same(one: Entries, other: Entries) -> bool:
    """Whether switches that hold one and switches that hold the other do the same."""
    at_one, at_other = shared(one, other)
    alike = one.behaviour()[at_one] == other.behaviour()[at_other]
    return len(at_one) == len(one) == len(other) and bool(alike.all())


def busy(old: NetworkState, new: NetworkState) -> npt.NDArray[np.bool_]:
    """By switch: whether it has a forwarding entry in either state; what comes to any other one goes no further."""
    found: npt.NDArray[np.bool_] = np.diff(old.tables.first) + np.diff(new.tables.first) > 0
    return found


def peaks(plan: Plan, table: Table = Table.FORWARDING) -> Ints:
    """The most entries that each switch may hold at any moment: those that a round adds come before any goes."""
    switches = plan.old.tables.fabric.switches

    def counted(entries: Entries) -> Ints:
        return np.bincount(entries.switch[entries.table == table], minlength=switches)

    now = most = counted(plan.before())
    for one in plan.rounds:
        replaced, _ = shared(one.changes.removed, one.changes.added)
        gone = counted(one.changes.removed)
        now = now + counted(one.changes.added) - counted(one.changes.removed[replaced])
        most = np.maximum(most, now)
        now = now - (gone - counted(one.changes.removed[replaced]))
    return most


def extra(plan: Plan) -> Ints:
    """By switch: the most entries over what the larger of the two states holds there."""
    sizes = [np.diff(state.tables.first) for state in (plan.old, plan.new)]
    return peaks(plan) - np.maximum(*sizes)


def undone(plan: Plan, last: int) -> tuple[Round, ...]:
    """Rounds that lead back after round `last` began, each safe for the same reason as the one that it undoes.

    Publishers go back first, and what they sent meanwhile drains, before a switch forgets what it was told; what
    drained after a change drains after its inverse, too.
    """
    fabric = plan.old.tables.fabric
    sendings = [plan.first_sending]
    for one in plan.rounds:
        sendings.append(one.notice.sending if one.notice else sendings[-1])
    back: list[Round] = []
    for number in range(last, -1, -1):
        one = plan.rounds[number]
        if one.notice or one.wait_seconds:
            notice = one.notice and Notice(sendings[number], one.notice.publishers)
            back.append(Round(f"back from: {one.name}", no_changes(fabric), notice, one.wait_seconds))
        if len(one.changes):
            back.append(Round(f"undo: {one.name}", one.changes.inverse(), None, one.wait_seconds))
    return tuple(back)


def replaced(old: NetworkState, new: NetworkState, notice: Notice, wait_seconds: float) -> list[Round]:
    """Rounds that bring new entries in place of old ones behind something that hides both, and then tell publishers.

    What goes, goes first: so a switch never holds more than the larger state. The edge lets both in until the end.
    """
    edge = changes(old.edge(Side.OLD), new.edge(Side.NEW))
    gone, come = swapped(old.forwarding(Side.OLD), new.forwarding(Side.NEW))
    arriving = Changes(come.removed, joined([come.added, edge.added]))
    return [
        Round("remove old entries", gone),
        Round("add new entries", arriving, notice, wait_seconds),
        Round("admit no old events", removed(edge.removed)),
    ]


def swapped(old: Entries, new: Entries) -> tuple[Changes, Changes]:
    """From `old` to `new` in two steps that never need more room than the larger of them: what goes, goes first."""
    change = changes(old, new)
    stays, _ = shared(change.removed, change.added)
    gone = np.ones(len(change.removed), np.bool_)
    gone[stays] = False
    return removed(change.removed[gone]), Changes(change.removed[stays], change.added)


def steps(rounds: Sequence[Round | None]) -> tuple[Round, ...]:
    """The rounds that do anything."""
    return tuple(r for r in rounds if r is not None and (len(r.changes) or r.notice or r.wait_seconds))
