"""`ip-multicast`: while the tables change, publishers send to groups (seed 001 §5.2)."""

from __future__ import annotations

import numpy as np

from plerion.index.dz import WHOLE, Dz
from plerion.index.dzset import DzColumns
from plerion.topology.graph import SwitchId, Topology
from plerion.update.entries import GROUPS, Entries, Side, Table, added, joined, removed, rows
from plerion.update.paths import Paths, drain_seconds, paths, regions, turns
from plerion.update.plan import GROUP_BITS, Notice, Plan, Round, Sending, replaced, steps
from plerion.update.state import EDGE_PRIORITY, WIDE_PRIORITY, NetworkState, Options


def ip_multicast(old: NetworkState, new: NetworkState, topology: Topology, options: Options) -> Plan:
    """No event is lost, doubled or looped, whatever changes; for a while every subscriber of a tree gets all of it.

    A group is a region (see `paths`) with everyone who got anything there: one with one tree, more with more. A switch
    holds one entry more a group than the larger state. Publishers are told twice, and two drains are waited for.
    """
    final = new.stamped(old.stamp)
    ways = paths(old, topology)
    cells = regions([ways])
    plan = Plan("ip-multicast", old, final, (), 0)
    groups = joined([_members(ways, cells, untag=old.stamp.tagged), _admitted(plan, topology)])
    wait = drain_seconds([ways, paths(final, topology)], options.delays)
    to_groups = Notice(Sending(Side.OLD, old.stamp, tuple(cells)), plan.publishers)
    to_contents = Notice(Sending(Side.NEW, final.stamp), plan.publishers)
    rounds = [
        Round("publishers to groups", added(groups), to_groups, wait),
        *replaced(old, final, to_contents, wait),
        Round("remove the groups", removed(groups)),
    ]
    return Plan("ip-multicast", old, final, steps(rounds), len(steps(rounds[:-1])))


def _members(ways: Paths, cells: list[Dz], *, untag: bool) -> Entries:
    """By group and switch the ports that any event of the group's cell leaves by."""
    fabric = ways.fabric
    parts = []
    for number, cell in enumerate(cells):
        turned = turns(ways, cell)
        ports = np.zeros((fabric.switches, fabric.port_words), np.uint64)
        np.bitwise_or.at(ports, fabric.switch_of, turned)
        at = np.flatnonzero(ports.any(axis=1))
        dz = DzColumns.of([Dz(number, GROUP_BITS)] * len(at))
        parts.append(
            rows(
                fabric,
                at,
                dz,
                ports[at],
                Side.BETWEEN,
                priority=WIDE_PRIORITY + GROUP_BITS,
                epoch=GROUPS,
                untag=untag,
            )
        )
    return joined(parts)


def _admitted(plan: Plan, topology: Topology) -> Entries:
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
        epoch=GROUPS,
        priority=EDGE_PRIORITY,
    )
