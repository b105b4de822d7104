"""Two phases (Reitblatt et al. 2012): both states stand side by side, and an event's stamp says which is its own.

No event of one stamp ever matches an entry of the other, so each is forwarded by one state from end to end: it is
neither lost, doubled nor looped if that is so at rest. `epoch` and `versioning` differ in what the stamp is.
"""

from __future__ import annotations

from plerion.topology.graph import Topology
from plerion.update.entries import Entries, Side, added, joined, removed
from plerion.update.paths import drain_seconds, paths
from plerion.update.plan import Notice, Plan, Round, Sending, standing, steps
from plerion.update.state import NetworkState, Options


def two_phase(
    strategy: str,
    old: NetworkState,
    new: NetworkState,
    topology: Topology,
    options: Options,
    guard: Entries | None = None,
) -> Plan:
    """Adds the new state, moves the publishers, drains, removes the old state; `guard` stands while both do.

    Until the old entries go, publishers may be sent back: that is the point of no return.
    """
    plan = Plan(strategy, old, new, (), 1)
    notice = Notice(Sending(Side.NEW, new.stamp), plan.publishers)
    wait = drain_seconds([paths(old, topology), paths(new, topology)], options.delays)
    more = [] if guard is None else [guard]
    arriving = joined([standing(new, Side.NEW), *more])
    leaving = joined([standing(old, Side.OLD), *more])
    rounds = [
        Round("add the new state", added(arriving), notice, wait),
        Round("remove the old state", removed(leaving)),
    ]
    return Plan(strategy, old, new, steps(rounds), 1)
