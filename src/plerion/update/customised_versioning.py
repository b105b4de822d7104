"""`customised-versioning`: trees move with fewer entries, because only some switches look at the tag (seed 001 §5.4.1).

An event may leave its tree only where the two trees part. So switches fall into three kinds: *overlapping* ones, where
both trees have the same links, hold the union of both tables and look at no tag; *non-overlapping* ones, where they
share none, hold both tables, the new one for its tag; and at *partially overlapping* ones a wide entry for each in-port
and tag keeps events on their tree. The numbers beside the rounds are the steps of the seed's list; steps 1 to 3, 5, 9
and 16 are no rounds.

Two things the seed's flows have and our tables lack, an in-port in every match and border flows that take the tag off,
are made up for: by an entry that drops what has the new tag and belongs nowhere, and by tables that untag before hosts
from before the first tag is set until the last one is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plerion.flow.entry import Ints
from plerion.index.dz import WHOLE, Dz
from plerion.index.dzset import DzColumns
from plerion.topology.graph import HostId, SwitchId, Topology
from plerion.update.entries import (
    ANY,
    Changes,
    Entries,
    Side,
    added,
    changes,
    joined,
    removed,
    rows,
)  # fmt: skip
from plerion.update.overlay import overlay
from plerion.update.paths import Paths, arrivals, drain_seconds, links, paths, regions, turns
from plerion.update.plan import Plan, Round, busy, marked, steps, swapped
from plerion.update.state import WIDE_PRIORITY, NetworkState, Options, Stamp, forwarding
from plerion.update.tree_versioning import NEW_VLAN, guard, refuse_other_languages, tagged

OLD_VLAN = 1


@dataclass(frozen=True, slots=True, eq=False)
class Overlap:
    """The switches by kind, and the cells that the trees serve."""

    same: Ints
    partial: Ints
    apart: Ints
    cells: tuple[Dz, ...]


def overlap(before: Paths, after: Paths) -> Overlap:
    """Step 3: which switches have the same, some of the same or no common neighbours in the two trees."""
    fabric = before.fabric
    cells = _laid_over(regions([before]), regions([after]))
    same = np.ones(fabric.switches, np.bool_)
    shares = np.zeros(fabric.switches, np.bool_)
    for cell in cells:
        one, other = links([before], cell), links([after], cell)
        same[fabric.switch_of[one != other]] = False
        shares[fabric.switch_of[one & other]] = True
    every = np.arange(fabric.switches)
    return Overlap(every[same], every[~same & shares], every[~same & ~shares], cells)


def customised_versioning(old: NetworkState, new: NetworkState, topology: Topology, options: Options) -> Plan:
    """No event is lost, doubled, looped or seen by both states; false positives rise for a while.

    Only for trees, like `tree-versioning`. Over the larger state a partially overlapping switch without publishers
    holds two entries an in-port (and region) and one more, a non-overlapping one both states and one more, an
    overlapping one what the union of both tables has more. Three drains are waited for.
    """
    refuse_other_languages(old, new)
    final = new.stamped(old.stamp)
    before, after = paths(old, topology), paths(final, topology)
    kinds = overlap(before, after)
    made = _made(old, final, before, after, kinds, topology)
    untagging = changes(old.forwarding(Side.OLD), made.old)
    rest = joined([_at(made.old, np.concatenate((kinds.apart, made.border))), _at(made.union, kinds.same)])
    gone, come = swapped(rest, made.new)
    wait = drain_seconds([before, after], options.delays)
    both = _retabled(made.old, made.union, kinds.same)
    rounds = [
        Round("untag before hosts", untagging),
        Round("4-6: tag as old", tagged(old, ANY, OLD_VLAN), None, wait),
        Round("7, 8, 10: widen where the trees part", added(joined([made.wide_old, made.lifted]))),
        Round("8: remove what is widened", removed(_at(made.old, made.inner))),
        Round("11: unite where the trees agree", both),
        Round("12: tag as new", tagged(old, OLD_VLAN, NEW_VLAN), None, wait),
        Round("13: widen where the trees agree", Changes(made.wide_old, made.wide_same)),
        Round("13: remove the old trees", gone),
        Round("13, 14: add the new trees, for all", come),
        Round("15: tag no more", tagged(old, NEW_VLAN, ANY), None, wait),
        Round("14, 15: tags mean nothing", _plain(made, final)),
    ]
    return Plan("customised-versioning", old, final, steps(rounds), len(steps(rounds[:6])))


@dataclass(frozen=True, slots=True, eq=False)
class _Made:
    """The entries that the rounds move about. `border` switches part and have publishers, `inner` ones have none."""

    old: Entries  # all tables, untagging
    new: Entries
    union: Entries
    wide_old: Entries
    wide_same: Entries
    lifted: Entries  # all that is for the new tag
    border: Ints
    inner: Ints


def _made(
    old: NetworkState, new: NetworkState, before: Paths, after: Paths, kinds: Overlap, topology: Topology
) -> _Made:
    fabric = old.tables.fabric
    stamp = Stamp(old.stamp.epoch, NEW_VLAN, lifted=True)
    publishing = _publishing(fabric.switch_number, old, topology)
    border, inner = np.intersect1d(kinds.partial, publishing), np.setdiff1d(kinds.partial, publishing)
    parting = np.concatenate((kinds.partial, kinds.apart))
    fine = _at(forwarding(new.tables, Side.NEW, stamp), np.concatenate((border, kinds.apart)))
    used = np.flatnonzero(busy(old, new))
    split, same = np.intersect1d(kinds.partial, used), np.intersect1d(kinds.same, used)
    wide_new = _wide(after, kinds.cells, split, NEW_VLAN, old.stamp.epoch)
    union = forwarding(overlay(old.tables, new.tables, "union"), Side.BETWEEN, old.stamp)
    ends, united = _untagging(new.forwarding(Side.NEW)), _untagging(union)
    stays = marked(_untagging(old.forwarding(Side.OLD)), ends)
    return _Made(
        marked(stays, _at(united, kinds.same)),
        ends,
        united,
        _wide(before, kinds.cells, split, OLD_VLAN, old.stamp.epoch),
        _wide(after, kinds.cells, same, ANY, old.stamp.epoch, hosts=True),
        joined([fine, wide_new, guard(old.tables, parting, stamp)]),
        border,
        inner,
    )


def _wide(
    ways: Paths, cells: tuple[Dz, ...], switches: Ints, vlan: int, epoch: int, *, hosts: bool = False
) -> Entries:
    """An entry for each port that events come in by at these switches, from other switches (and hosts)."""
    fabric = ways.fabric
    parts = []
    for cell in cells:
        came = arrivals(ways, cell) & np.isin(fabric.switch_of, switches)
        slots = np.flatnonzero(came if hosts else came & (fabric.peer_slot >= 0))
        dz, ports = DzColumns.of([cell] * len(slots)), turns(ways, cell)[slots]
        wide = rows(
            fabric,
            fabric.switch_of[slots],
            dz,
            ports,
            Side.BETWEEN,
            priority=WIDE_PRIORITY + cell.length,
            in_port=fabric.port[slots],
            vlan=vlan,
            epoch=ANY if cell == WHOLE else epoch,
            untag=True,
        )
        parts.append(wide)
    return joined(parts)


def _plain(made: _Made, final: NetworkState) -> Changes:
    """What is for tags goes, and tables untag no more."""
    ends = changes(made.new, final.forwarding(Side.NEW))
    return Changes(joined([ends.removed, made.lifted, made.wide_same]), ends.added)


def _retabled(before: Entries, after: Entries, switches: Ints) -> Changes:
    return changes(_at(before, switches), _at(after, switches))


def _at(entries: Entries, switches: Ints) -> Entries:
    return entries[np.isin(entries.switch, switches)]


def _untagging(entries: Entries) -> Entries:
    return replace(entries, untag=np.ones(len(entries), np.bool_))


def _publishing(number: dict[SwitchId, int], state: NetworkState, topology: Topology) -> Ints:
    hosts: list[HostId] = [host for host in state.sent if topology.has_host(host)]
    return np.array(sorted({number[SwitchId(topology.attachment(host).node)] for host in hosts}), np.int64)


def _laid_over(one: list[Dz], other: list[Dz]) -> tuple[Dz, ...]:
    """The cells of both cuttings of the space laid over each other."""
    met = {max(a, b, key=lambda dz: dz.length) for a in one for b in other if a.overlaps(b)}
    return tuple(sorted(met))
