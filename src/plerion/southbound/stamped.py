"""Tables and admissions as entries with a stamp, and back: what a network at rest says in the language of updates."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plerion.flow.admission import Admission, AdmissionChange
from plerion.flow.diff import Diff, Kind
from plerion.flow.entry import Tables
from plerion.flow.fabric import Fabric
from plerion.update.canonical import canonical, to_hosts
from plerion.update.entries import ANY, Changes, Entries, Side, Table
from plerion.update.state import EDGE_PRIORITY, Stamp, admitting, longest_first

Flags = npt.NDArray[np.bool_]


def table_changes(change: Diff, stamp: Stamp) -> Changes:
    """A difference of tables whose entries have this stamp."""
    deletes = change.kind == Kind.DELETE

    def part(kept: Flags) -> Entries:
        dz, ports = change.dz[kept], change.ports[kept]
        return longest_first(change.fabric, change.switch[kept], dz, ports, Side.BETWEEN, stamp)

    return Changes(part(deletes), part(~deletes))


def edge_changes(fabric: Fabric, change: AdmissionChange, stamp: Stamp) -> Changes:
    """A difference of admissions whose entries have this stamp."""
    removed, added = (
        admitting(fabric, admitted, Side.BETWEEN, stamp) for admitted in (change.removed, change.added)
    )
    return Changes(removed, added)


def at_rest(entries: Entries, stamp: Stamp) -> Flags:
    """Which entries may stand in a network at rest with this stamp; all others belong to an update."""
    entries = canonical(entries)
    stamped = (entries.vlan == stamp.vlan) & (entries.epoch == stamp.epoch)
    plain = stamped & (entries.set_vlan == ANY) & ~entries.bridge
    forwards = (entries.table == Table.FORWARDING) & (entries.in_port == ANY)
    forwards &= entries.priority == stamp.lowest_priority + entries.dz.length.astype(np.int64)
    forwards &= entries.untag == (stamp.tagged & to_hosts(entries))
    admits = (entries.table == Table.EDGE) & (entries.in_port != ANY) & (entries.priority == EDGE_PRIORITY)
    found: Flags = plain & (forwards | admits)
    return found


def tables(entries: Entries, stamp: Stamp) -> Tables:
    """The tables that entries with this stamp say; all others are passed over."""
    told = entries[at_rest(entries, stamp) & (entries.table == Table.FORWARDING)]
    told = told[np.lexsort((told.dz.length, told.dz.low, told.dz.high, told.switch))]
    first = np.searchsorted(told.switch, np.arange(entries.fabric.switches + 1)).astype(np.int64)
    return Tables(entries.fabric, first, told.dz, told.ports)


def admissions(entries: Entries, stamp: Stamp) -> frozenset[Admission]:
    """The admissions that entries with this stamp say."""
    told = entries[at_rest(entries, stamp) & (entries.table == Table.EDGE)]
    names = entries.fabric.topology.switches
    rows = zip(told.switch.tolist(), told.in_port.tolist(), told.dz, strict=True)
    return frozenset(Admission(names[x], port, dz) for x, port, dz in rows)
