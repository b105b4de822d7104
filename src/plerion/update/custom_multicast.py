"""`custom-multicast`: the light-weight approach, one wide entry an in-port for a while (seeds 001 §5.3, 004 §V).

A wide entry forwards whatever comes in by its port to all ports where anything goes that came in there. It stands over
all others, so that neither old nor new entries are met while both languages are on the wires. Where the papers take the
out-ports of the old state we take those that both states use: a wanted event has a path in both, and between two
hosts of a region there is only one.
"""

from __future__ import annotations

import numpy as np

from plerion.flow.entry import Masks
from plerion.index.dz import WHOLE, Dz
from plerion.index.dzset import DzColumns
from plerion.topology.graph import Topology
from plerion.update.entries import ANY, Entries, Side, added, joined, removed, rows
from plerion.update.orders import removal_order
from plerion.update.paths import Paths, arrivals, drain_seconds, paths, regions, turns
from plerion.update.plan import Notice, Plan, Round, Sending, busy, replaced, steps
from plerion.update.state import WIDE_PRIORITY, NetworkState, Options, Stamp


def custom_multicast(old: NetworkState, new: NetworkState, topology: Topology, options: Options) -> Plan:
    """No event is lost, doubled or looped, and no entry of the other index is met; false positives rise for a while.

    A switch holds at most one entry an in-port (and region, where trees differ) over the larger state. Only for states
    whose trees agree: otherwise wide entries would lead events in circles, and `NotApplicable` is raised. Publishers
    need not tag anything.
    """
    final = new.stamped(old.stamp)
    ways = [paths(old, topology), paths(final, topology)]
    cells = regions(ways)
    wide = joined([_wide(ways, cell, old.stamp, alone=len(cells) == 1) for cell in cells])
    wide = wide[busy(old, final)[wide.switch]]
    plan = Plan("custom-multicast", old, final, (), 0)
    notice = Notice(Sending(Side.NEW, final.stamp), plan.publishers)
    wait = drain_seconds(ways, options.delays)
    number = old.tables.fabric.switch_number
    over = [
        Round(f"narrow {switch}", removed(wide[wide.switch == number[switch]]))
        for switch in removal_order(final, topology, options)
    ]
    widened = steps([Round("widen", added(wide)), *replaced(old, final, notice, wait)])
    return Plan("custom-multicast", old, final, (*widened, *steps(over)), len(widened))


def _wide(ways: list[Paths], cell: Dz, stamp: Stamp, *, alone: bool) -> Entries:
    """An entry for each port that events of the cell come in by, in either state."""
    fabric = ways[0].fabric
    before, after = (turns(way, cell) for way in ways)
    slots = np.flatnonzero(arrivals(ways[0], cell) | arrivals(ways[1], cell))
    # An event's old code may lie in another cell than its new one; then only all turns of both will do.
    ports: Masks = (before & after if alone else before | after)[slots]
    return rows(
        fabric,
        fabric.switch_of[slots],
        DzColumns.of([cell] * len(slots)),
        ports,
        Side.BETWEEN,
        priority=WIDE_PRIORITY + cell.length,
        in_port=fabric.port[slots],
        vlan=stamp.vlan,
        epoch=ANY if cell == WHOLE else stamp.epoch,
        untag=stamp.tagged,
    )
