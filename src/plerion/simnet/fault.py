"""What may go wrong while a plan runs, and plans that are wrong themselves, to see that somebody notices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from plerion.topology.graph import HostId, SwitchId
from plerion.update.entries import Changes, Entries, Side, Table, joined, no_changes
from plerion.update.plan import Plan, Round


@dataclass(frozen=True, slots=True)
class Faults:
    """Of a run: who is stopped, killed, full or silent, and when (seconds from the plan's beginning)."""

    stop_after: float | None = None
    kill_after: float | None = None
    full: Mapping[SwitchId, int] | None = None  # a switch refuses what it is told in this round
    mute: frozenset[HostId] = frozenset()  # publishers that nothing is heard of

    def refuses(self, switch: SwitchId, token: int) -> bool:
        return self.full is not None and self.full.get(switch) == token


def _without_waits(plan: Plan) -> Plan:
    return replace(plan, rounds=tuple(replace(one, wait_seconds=0.0) for one in plan.rounds))


def _without_notices(plan: Plan) -> Plan:
    """Nobody waits for publishers: they are told along with what comes last."""
    notices = [one.notice for one in plan.rounds]
    last = next((notice for notice in reversed(notices) if notice), None)
    quiet = [replace(one, notice=None) for one in plan.rounds]
    return replace(plan, rounds=(*quiet[:-1], replace(quiet[-1], notice=last)))


def _at_once(plan: Plan) -> Plan:
    """All changes in the first round."""
    fabric = plan.old.tables.fabric
    rest = tuple(replace(one, changes=no_changes(fabric)) for one in plan.rounds[1:])
    whole = Changes(
        *(joined([getattr(one.changes, part) for one in plan.rounds]) for part in ("removed", "added"))
    )
    return replace(plan, rounds=(replace(plan.rounds[0], changes=whole), *rest))


def _backwards(plan: Plan) -> Plan:
    """The changes of the last round come in the first one and those of the first in the last."""
    changes = [one.changes for one in plan.rounds]
    changes[0], changes[-1] = changes[-1], changes[0]
    return replace(
        plan, rounds=tuple(replace(one, changes=c) for one, c in zip(plan.rounds, changes, strict=True))
    )


def _missing_port(plan: Plan) -> Plan:
    """Every entry that is added for forwarding lacks one of its ports."""

    def worse(entries: Entries) -> Entries:
        ports = entries.ports.copy()
        forwarding = entries.table == Table.FORWARDING
        ports[forwarding, 0] &= ports[forwarding, 0] - np.uint64(1) * (ports[forwarding, 0] > 0)
        return replace(entries, ports=ports)

    return _with_added(plan, worse)


def _another_port(plan: Plan) -> Plan:
    """Every entry that is added for forwarding sends to all ports."""

    def worse(entries: Entries) -> Entries:
        fabric = entries.fabric
        ports = entries.ports.copy()
        every = (np.uint64(1) << np.diff(fabric.first).astype(np.uint64)) - np.uint64(1)
        forwarding = entries.table == Table.FORWARDING
        ports[forwarding, 0] = every[entries.switch[forwarding]]
        return replace(entries, ports=ports)

    return _with_added(plan, worse)


def _low(plan: Plan) -> Plan:
    """What stands above others for a while does not."""

    def worse(entries: Entries) -> Entries:
        between = (entries.side == Side.BETWEEN) & (entries.table == Table.FORWARDING)
        return replace(entries, priority=np.where(between, 1, entries.priority))

    changed = tuple(
        replace(one, changes=Changes(worse(one.changes.removed), worse(one.changes.added)))
        for one in plan.rounds
    )
    return replace(plan, rounds=changed)


def _with_added(plan: Plan, worse: Callable[[Entries], Entries]) -> Plan:
    def spoilt(one: Round) -> Round:
        return replace(one, changes=Changes(one.changes.removed, worse(one.changes.added)))

    return replace(plan, rounds=tuple(map(spoilt, plan.rounds)))


WRONG: Mapping[str, Callable[[Plan], Plan]] = MappingProxyType(
    {
        "no drain": _without_waits,
        "no acknowledgements": _without_notices,
        "all at once": _at_once,
        "backwards": _backwards,
        "a port too few": _missing_port,
        "a port too many": _another_port,
        "no priority": _low,
    }
)
"""Ways to spoil a plan. Not every one harms every strategy; `docs/updates.md` says which does."""
