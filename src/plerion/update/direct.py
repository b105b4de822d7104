"""`direct`: everything at once and no care taken. Guarantees nothing; the baseline that must be caught."""

from __future__ import annotations

from plerion.topology.graph import Topology
from plerion.update.entries import Side, changes
from plerion.update.plan import Notice, Plan, Round, Sending, standing, steps
from plerion.update.state import NetworkState, Options


def direct(old: NetworkState, new: NetworkState, _topology: Topology, _options: Options) -> Plan:
    """Tells all switches and all publishers the new state at the same time; events are lost and doubled meanwhile.

    No entry more than the larger state needs, if switches delete before they add, and no waiting.
    """
    final = new.stamped(old.stamp)
    plan = Plan("direct", old, final, (), 0, barriers=False)
    notice = Notice(Sending(Side.NEW, final.stamp), plan.publishers)
    change = changes(standing(old, Side.OLD), standing(final, Side.NEW))
    return Plan("direct", old, final, steps([Round("everything", change, notice)]), 0, barriers=False)
