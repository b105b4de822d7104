"""What may go wrong while a plan runs, and plans that are wrong themselves, to see that somebody notices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from plerion.topology.graph import HostId, SwitchId
from plerion.update.entries import ANY, GROUPS, Changes, Entries, Side, Table, changes, no_changes
from plerion.update.plan import Plan, Round


@dataclass(frozen=True, slots=True)
class Faults:
    """Of a run: who is stopped, killed, full or silent, and when (seconds from the plan's beginning)."""

    stop_after: float | None = None
    kill_after: float | None = None
    kill_rounds: frozenset[int] = frozenset()  # by the token of the machine; each once
    full: Mapping[SwitchId, int] | None = None  # a switch refuses what it is told in this round
    mute: frozenset[HostId] = frozenset()  # publishers that nothing is heard of

    def refuses(self, switch: SwitchId, token: int) -> bool:
        return self.full is not None and self.full.get(switch) == token


def _without_waits(plan: Plan) -> Plan:
    return replace(plan, rounds=tuple(replace(one, wait_seconds=0.0) for one in plan.rounds))


def _short_waits(plan: Plan) -> Plan:
    return replace(plan, rounds=tuple(replace(one, wait_seconds=one.wait_seconds / 3) for one in plan.rounds))


def _untold(plan: Plan) -> Plan:
    """One publisher is forgotten."""
    told = (one.notice and replace(one.notice, publishers=one.notice.publishers[1:]) for one in plan.rounds)
    rounds = zip(plan.rounds, told, strict=True)
    return replace(plan, rounds=tuple(replace(one, notice=notice) for one, notice in rounds))


def _without_notices(plan: Plan) -> Plan:
    """Nobody waits for publishers: they are told along with what comes last."""
    notices = [one.notice for one in plan.rounds]
    last = next((notice for notice in reversed(notices) if notice), None)
    quiet = [replace(one, notice=None) for one in plan.rounds]
    return replace(plan, rounds=(*quiet[:-1], replace(quiet[-1], notice=last)))


def _at_once(plan: Plan) -> Plan:
    """What all changes come to, in the first round."""
    nothing = no_changes(plan.old.tables.fabric)
    rest = tuple(replace(one, changes=nothing) for one in plan.rounds[1:])
    whole = changes(plan.before(), plan.outcome())
    return replace(plan, rounds=(replace(plan.rounds[0], changes=whole), *rest))


def _backwards(plan: Plan) -> Plan:
    """The changes of the last round come in the first one and those of the first in the last."""
    turned = [one.changes for one in plan.rounds]
    turned[0], turned[-1] = turned[-1], turned[0]
    rounds = zip(plan.rounds, turned, strict=True)
    return replace(plan, rounds=tuple(replace(one, changes=part) for one, part in rounds))


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


def _left_out(plan: Plan) -> Plan:
    """The switch that is told most is told nothing."""
    told = np.concatenate([one.changes.added.switch for one in plan.rounds])
    left_out = np.bincount(told).argmax() if len(told) else -1

    def worse(entries: Entries) -> Entries:
        return entries[entries.switch != left_out]

    changed = (Changes(worse(one.changes.removed), worse(one.changes.added)) for one in plan.rounds)
    rounds = zip(plan.rounds, changed, strict=True)
    return replace(plan, rounds=tuple(replace(one, changes=part) for one, part in rounds))


def _without_edge(plan: Plan) -> Plan:
    """What publishers may send stays as it was."""
    return _with_added(plan, lambda entries: entries[entries.table != Table.EDGE])


def _tagged_at_hosts(plan: Plan) -> Plan:
    return _with_added(plan, lambda entries: replace(entries, untag=np.zeros_like(entries.untag)))


def _untagged(plan: Plan) -> Plan:
    """The edge sets no tags."""
    return _with_added(plan, lambda entries: replace(entries, set_vlan=np.full_like(entries.set_vlan, ANY)))


def _for_any_tag(plan: Plan) -> Plan:
    """What is for the new tag is for any."""
    new = max(int(one.changes.added.vlan.max(initial=ANY)) for one in plan.rounds)

    def worse(entries: Entries) -> Entries:
        return replace(entries, vlan=np.where(entries.vlan == new, ANY, entries.vlan))

    return _with_added(plan, worse)


def _for_any_epoch(plan: Plan) -> Plan:
    def worse(entries: Entries) -> Entries:
        return replace(entries, epoch=np.where(entries.epoch == GROUPS, GROUPS, ANY))

    return _with_added(plan, worse)


def _with_added(plan: Plan, worse: Callable[[Entries], Entries]) -> Plan:
    def spoilt(one: Round) -> Round:
        return replace(one, changes=Changes(one.changes.removed, worse(one.changes.added)))

    return replace(plan, rounds=tuple(map(spoilt, plan.rounds)))


WRONG: Mapping[str, Callable[[Plan], Plan]] = MappingProxyType(
    {
        "no drain": _without_waits,
        "a short drain": _short_waits,
        "no acknowledgements": _without_notices,
        "a publisher untold": _untold,
        "a switch left out": _left_out,
        "the edge left out": _without_edge,
        "tagged at hosts": _tagged_at_hosts,
        "no tags": _untagged,
        "any tag": _for_any_tag,
        "any epoch": _for_any_epoch,
        "all at once": _at_once,
        "backwards": _backwards,
        "a port too few": _missing_port,
        "a port too many": _another_port,
        "no priority": _low,
    }
)
"""Ways to spoil a plan. Not every one harms every strategy: `epoch` sets no tags."""


def exchanged(plan: Plan, number: int) -> Plan:
    """The round and the next one in each other's place."""
    first, second = plan.rounds[number : number + 2]
    return replace(plan, rounds=(*plan.rounds[:number], second, first, *plan.rounds[number + 2 :]))
