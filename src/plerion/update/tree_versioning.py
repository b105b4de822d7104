"""`tree-versioning`: trees move while the index stays, told apart by a VLAN id that the edge sets (seed 001 §2.7.2)."""

from __future__ import annotations

import numpy as np

from plerion.flow.entry import LOWEST_PRIORITY, Tables
from plerion.index.dz import WHOLE
from plerion.index.dzset import DzColumns
from plerion.topology.graph import Topology
from plerion.update.entries import ANY, Changes, Columns, Entries, Side, added, changes, joined, removed, rows
from plerion.update.paths import drain_seconds, paths
from plerion.update.plan import Plan, Round, steps, swapped
from plerion.update.state import LIFT, NetworkState, NotApplicable, Options, Stamp, forwarding

NEW_VLAN = 2


def tree_versioning(old: NetworkState, new: NetworkState, topology: Topology, options: Options) -> Plan:
    """No event is lost, doubled, looped or seen by both states; publishers notice nothing.

    Only for trees: where the index stays, the edge may set the tag, because either state understands every code. A
    switch holds at most the larger state and the new one once more, with one entry that keeps tagged events from
    untagged entries. Two drains are waited for: for events without the tag, and at the end for events with it.
    """
    refuse_other_languages(old, new)
    final = new.stamped(old.stamp)
    fabric = old.tables.fabric
    stamp = Stamp(old.stamp.epoch, NEW_VLAN, lifted=True)
    lifted = joined(
        [forwarding(new.tables, Side.NEW, stamp), guard(old.tables, np.arange(fabric.switches), stamp)]
    )
    gone, come = swapped(old.forwarding(Side.OLD), final.forwarding(Side.NEW))
    wait = drain_seconds([paths(old, topology), paths(final, topology)], options.delays)
    rounds = [
        Round("add the new trees, for tagged events", added(lifted)),
        Round("tag", tagged(old, ANY, NEW_VLAN), None, wait),
        Round("remove the old trees", gone),
        Round("add the new trees, for all", come),
        Round(
            "tag no more",
            tagged(old, NEW_VLAN, ANY),
            None,
            wait,
        ),
        Round("remove what was for tagged events", removed(lifted)),
    ]
    return Plan("tree-versioning", old, final, steps(rounds), len(steps(rounds[:2])))


def refuse_other_languages(old: NetworkState, new: NetworkState) -> None:
    if dict(old.sent) != dict(new.sent):
        raise NotApplicable(
            "the index changes, so the edge cannot tell old events from new: choose epoch or versioning"
        )
    if old.stamp.vlan != ANY:
        raise NotApplicable("publishers tag their events already: choose versioning")


def tagged(state: NetworkState, before: int, after: int) -> Changes:
    """The edge sets one tag instead of another; no event meets neither."""
    return changes(state.edge(Side.BETWEEN, before), state.edge(Side.BETWEEN, after))


def guard(old: Tables, switches: Columns, stamp: Stamp) -> Entries:
    """Drops events of the stamp's tag that no entry of its own matches, before they meet an old entry for any tag."""
    fabric = old.fabric
    switches = np.intersect1d(switches, np.flatnonzero(np.diff(old.first)))
    nowhere = np.zeros((len(switches), fabric.port_words), np.uint64)
    whole = DzColumns.of([WHOLE] * len(switches))
    return rows(
        fabric, switches, whole, nowhere, Side.NEW, priority=LOWEST_PRIORITY + LIFT - 1, vlan=stamp.vlan
    )
