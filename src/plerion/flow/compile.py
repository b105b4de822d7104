"""The definition of a table: a function of the demands at its switch (design §4.3).

For an event at a switch the out-ports are the union over all demands whose dz covers it. A switch applies only
its highest-priority match, so the entry at a dz carries its own ports and those of all shorter demanded dz; one
that says the same as its nearest shorter one is left out.
"""

from __future__ import annotations

from collections.abc import Iterable

from plerion.flow.entry import FlowEntry, Tables, tables_of
from plerion.flow.fabric import Fabric
from plerion.index.dz import Dz
from plerion.routing.demand import Demand
from plerion.topology.graph import SwitchId


def entries(demands: Iterable[Demand]) -> frozenset[FlowEntry]:
    """Longest match wins, so a small cell's entry must also carry the ports of every cell around it."""
    asked: dict[Dz, set[int]] = {}
    for demand in demands:
        asked.setdefault(demand.dz, set()).add(demand.out_port)
    kept: list[FlowEntry] = []
    above: list[FlowEntry] = []
    for dz in sorted(asked):
        while above and not above[-1].dz.covers(dz):
            above.pop()
        inherited = above[-1].ports if above else frozenset[int]()
        entry = FlowEntry(dz, inherited | asked[dz])
        above.append(entry)
        if entry.ports != inherited:
            kept.append(entry)
    return frozenset(kept)


def compiled(fabric: Fabric, demands: Iterable[Demand]) -> Tables:
    """The tables of all switches, straight from the definition."""
    at: dict[SwitchId, list[Demand]] = {}
    for demand in demands:
        at.setdefault(demand.switch, []).append(demand)
    return tables_of(fabric, {switch: entries(asked) for switch, asked in at.items()})
