"""Orders in which switches are told, one after the other (seed 001 §6.3.1)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import numpy as np

from plerion.topology.graph import HostId, SwitchId, Topology
from plerion.update.state import NetworkState, Options


def by_distance(topology: Topology, publishers: Iterable[HostId]) -> list[SwitchId]:
    """Switches by their distance from the nearest publisher; those that none reaches come last."""
    start = [SwitchId(topology.attachment(host).node) for host in publishers if topology.has_host(host)]
    reached = dict.fromkeys(start)
    waiting = deque(reached)
    switches = frozenset(topology.switches)
    while waiting:
        for near in topology.neighbours(waiting.popleft()):
            switch = SwitchId(near.peer)
            if switch in switches and switch not in reached:
                reached[switch] = None
                waiting.append(switch)
    return [*reached, *(switch for switch in topology.switches if switch not in reached)]


def removal_order(new: NetworkState, topology: Topology, options: Options) -> list[SwitchId]:
    """In which order wide entries go.

    `source-quench`: from the publishers outwards. `filter-rate` and `transmission-rate`: the switch with the highest
    measured rate first; unmeasured ones are told apart by the size of their table, which is what filters.
    """
    switches = list(topology.switches)
    if options.order == "source-quench":
        return by_distance(topology, new.sent)
    if options.order == "random":
        return [switches[i] for i in np.random.default_rng(options.seed).permutation(len(switches))]
    sizes = new.tables.sizes()
    return sorted(switches, key=lambda s: (-options.rates.get(s, 0.0), -sizes.get(s, 0)))
