"""`bridge`: while the tables change, what publishers send goes through the controller (seed 001 §2.7.1)."""

from __future__ import annotations

import numpy as np

from plerion.index.dz import WHOLE
from plerion.index.dzset import DzColumns
from plerion.topology.graph import SwitchId, Topology
from plerion.update.entries import Entries, Side, Table, added, removed, rows
from plerion.update.paths import drain_seconds, paths
from plerion.update.plan import Notice, Plan, Round, Sending, replaced, steps
from plerion.update.state import EDGE_PRIORITY, NetworkState, Options


def bridge(old: NetworkState, new: NetworkState, topology: Topology, options: Options) -> Plan:
    """No event is lost, doubled or looped, whatever changes; each travels through the controller for a while.

    The controller reads the epoch in the event itself and hands it to the last switches as the tables of that epoch
    would. One entry more a publisher, at the edge; no line rate, and no order between events before, during and after.
    """
    final = new.stamped(old.stamp)
    plan = Plan("bridge", old, final, (), 0)
    detour = _detour(plan, topology)
    notice = Notice(Sending(Side.NEW, final.stamp), plan.publishers)
    wait = drain_seconds([paths(old, topology), paths(final, topology)], options.delays)
    rounds = [
        Round("publishers over the controller", added(detour), None, wait),
        *replaced(old, final, notice, wait),
        Round("publishers over the network", removed(detour)),
    ]
    return Plan("bridge", old, final, steps(rounds), len(steps(rounds[:-1])))


def _detour(plan: Plan, topology: Topology) -> Entries:
    fabric = plan.old.tables.fabric
    places = [topology.attachment(host) for host in plan.publishers if topology.has_host(host)]
    return rows(
        fabric,
        np.array([fabric.switch_number[SwitchId(place.node)] for place in places], np.int64),
        DzColumns.of([WHOLE] * len(places)),
        np.zeros((len(places), fabric.port_words), np.uint64),
        Side.BETWEEN,
        table=Table.EDGE,
        in_port=np.array([place.number for place in places], np.int64),
        priority=EDGE_PRIORITY + 100,
        bridge=True,
    )
