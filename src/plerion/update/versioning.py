"""`versioning`: a VLAN id that the publisher sets tells the versions apart (seed 001 §5.1.1)."""

from __future__ import annotations

import numpy as np

from plerion.flow.entry import LOWEST_PRIORITY
from plerion.flow.fabric import Fabric
from plerion.index.dz import WHOLE
from plerion.index.dzset import DzColumns
from plerion.topology.graph import Topology
from plerion.update.entries import ANY, Entries, Side, rows
from plerion.update.plan import Plan
from plerion.update.state import LIFT, NetworkState, Options, Stamp
from plerion.update.tagged import two_phase

MOST_VLANS = 4094


def versioning(old: NetworkState, new: NetworkState, topology: Topology, options: Options) -> Plan:
    """No event is lost, doubled, looped or seen by both states, whatever changes: index, trees or both.

    A switch holds at most both states together. The publisher must tag, because the edge cannot tell an old code from
    a new one. From a state without tags the new one stands in a band above, with one more entry a switch that keeps
    tagged events from the old entries, which match any tag.
    """
    fresh = old.stamp.vlan == ANY
    vlan = 1 if fresh else old.stamp.vlan % MOST_VLANS + 1
    stamp = Stamp(old.stamp.epoch, vlan, lifted=fresh)
    guard = _guard(old.tables.fabric, stamp) if fresh else None
    return two_phase("versioning", old, new.stamped(stamp), topology, options, guard)


def _guard(fabric: Fabric, stamp: Stamp) -> Entries:
    """Drops events of the new tag that no new entry matches."""
    every = np.arange(fabric.switches)
    nowhere = np.zeros((len(every), fabric.port_words), np.uint64)
    whole = DzColumns.of([WHOLE] * len(every))
    return rows(fabric, every, whole, nowhere, Side.NEW, priority=LOWEST_PRIORITY + LIFT - 1, vlan=stamp.vlan)
