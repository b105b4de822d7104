"""`versioning`: a VLAN id that the publisher sets tells the versions apart (seed 001 §5.1.1)."""

from __future__ import annotations

import numpy as np

from plerion.topology.graph import Topology
from plerion.update.entries import ANY
from plerion.update.plan import Plan
from plerion.update.state import NetworkState, Options, Stamp
from plerion.update.tagged import two_phase
from plerion.update.tree_versioning import guard

MOST_VLANS = 4094


def versioning(old: NetworkState, new: NetworkState, topology: Topology, options: Options) -> Plan:
    """No event is lost, doubled, looped or seen by both states, whatever changes: index, trees or both.

    A switch holds at most both states together. The publisher must tag, because the edge cannot tell an old code from
    a new one. From a state without tags the new one stands in a band above, with one more entry where old ones are,
    which keeps tagged events from them: they match any tag.
    """
    fresh = old.stamp.vlan == ANY
    vlan = 1 if fresh else old.stamp.vlan % MOST_VLANS + 1
    stamp = Stamp(old.stamp.epoch, vlan, lifted=fresh)
    keeper = guard(old.tables, np.arange(old.tables.fabric.switches), stamp) if fresh else None
    return two_phase("versioning", old, new.stamped(stamp), topology, options, keeper)
