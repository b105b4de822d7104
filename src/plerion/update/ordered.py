"""`ordered`: untagged, one switch after the other (seed 001 §2.7.3, §4.4.1).

No order of untagged multicast updates is both loss-free and duplicate-free (Kohler, Dürr, Rothermel 2015): when the
switch at which an event is replicated shifts, either both replicate for a while or neither does. So the user chooses.
"""

from __future__ import annotations

from plerion.topology.graph import SwitchId, Topology
from plerion.update.entries import Changes, Entries, Side, changes, joined, no_changes
from plerion.update.orders import by_distance
from plerion.update.overlay import overlay
from plerion.update.paths import drain_seconds, paths
from plerion.update.plan import Notice, Plan, Round, Sending, standing, steps
from plerion.update.state import NetworkState, Options, forwarding


def ordered(old: NetworkState, new: NetworkState, topology: Topology, options: Options) -> Plan:
    """With `make-first` no event is lost; it may be doubled and may loop where trees move, and only there.

    With `break-first` no event is doubled or loops; it may be lost, and where the index changes most are.

    `make-first` goes from the far switches to the publishers and gives every switch the ports of both states, then
    back and takes away what only the old one had. `break-first` goes the other way round and leaves, in between, only
    the ports that both states have. In between a switch holds at most both states together.
    """
    final = new.stamped(old.stamp)
    first = by_distance(topology, {**old.sent, **new.sent})
    making = options.care == "make-first"
    laid = overlay(old.tables, new.tables, "union" if making else "intersection")
    middle = forwarding(laid, Side.BETWEEN, old.stamp)
    edge = changes(old.edge(Side.OLD), final.edge(Side.NEW))
    between = joined([old.edge(Side.OLD), edge.added, middle])
    outward = first[::-1] if making else first
    before = _one_by_one("give" if making else "trim", standing(old, Side.OLD), between, outward)
    after = _one_by_one("trim" if making else "give", between, standing(final, Side.NEW), outward[::-1])
    plan = Plan("ordered", old, final, (), 0)
    notice = Notice(Sending(Side.NEW, final.stamp), plan.publishers)
    wait = drain_seconds([paths(old, topology), paths(final, topology)], options.delays)
    turn = Round("publishers move", no_changes(old.tables.fabric), notice, wait)
    before = list(steps(before))
    return Plan("ordered", old, final, steps([*before, turn, *after]), len(before) + 1)


def _one_by_one(name: str, old: Entries, new: Entries, order: list[SwitchId]) -> list[Round]:
    """A round a switch."""
    whole: Changes = changes(old, new)
    number = whole.added.fabric.switch_number
    return [Round(f"{name} {switch}", whole.at(number[switch])) for switch in order]
