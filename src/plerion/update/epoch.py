"""`epoch`: version bits inside the address, set by the publisher's SDK (ours)."""

from __future__ import annotations

from plerion.index.dz import MAX_LENGTH
from plerion.topology.graph import Topology
from plerion.update.entries import ANY
from plerion.update.plan import Plan
from plerion.update.state import NetworkState, NotApplicable, Options, Stamp
from plerion.update.tagged import two_phase


def epoch(old: NetworkState, new: NetworkState, topology: Topology, options: Options) -> Plan:
    """No event is lost, doubled, looped or seen by both states, whatever changes: index, trees or both.

    A switch holds at most both states together. Costs `epoch_bits` of the address for ever, and nothing else: no tag to
    set or to take off, no more false positives. Needs a network whose addresses have epoch bits already, because the
    bits cannot be told from contents otherwise.
    """
    if options.epoch_bits < 1 or old.stamp.epoch == ANY:
        raise NotApplicable(
            "the addresses have no epoch bits: set epoch_bits to 1 or more, or choose versioning"
        )
    longest = int(new.tables.dz.length.max(initial=0))
    if longest + options.epoch_bits > MAX_LENGTH:
        raise NotApplicable(
            f"a dz of {longest} bits leaves no room for {options.epoch_bits} epoch bits: "
            f"use an index of at most {MAX_LENGTH - options.epoch_bits} bits"
        )
    following = Stamp((old.stamp.epoch + 1) % (1 << options.epoch_bits), old.stamp.vlan, old.stamp.lifted)
    return two_phase("epoch", old, new.stamped(following), topology, options)
