"""A network's state as an update sees it, and what an update may be told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from plerion.flow.admission import Admission, admissions
from plerion.flow.entry import LOWEST_PRIORITY, Masks, Tables
from plerion.flow.fabric import Fabric
from plerion.index.dz import MAX_LENGTH
from plerion.index.dzset import DzColumns, DzSet
from plerion.topology.graph import HostId, SwitchId
from plerion.update.entries import ANY, UNTAGGED, Columns, Entries, Side, Table, rows

LIFT = 128
"""Raises a whole band of entries over another one: more than any two lengths differ by."""

WIDE_PRIORITY = LOWEST_PRIORITY + 4 * LIFT
"""Of entries that stand over all others for a while."""

EDGE_PRIORITY = 200
assert LIFT > MAX_LENGTH

Order = Literal["source-quench", "filter-rate", "transmission-rate", "random"]
Care = Literal["make-first", "break-first"]
Prefer = Literal["accurate", "small"]


class NotApplicable(ValueError):  # noqa: N818 - an answer, not a mistake
    """A strategy that cannot take this network from this state to that one, and what could."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells a state's events apart from another's: the epoch in their address, the VLAN id that they carry."""

    epoch: int = ANY
    vlan: int = ANY
    lifted: bool = False  # the entries stand in the upper band

    @property
    def tagged(self) -> bool:
        return self.vlan not in (ANY, UNTAGGED)

    @property
    def lowest_priority(self) -> int:
        """Of the band that the state's entries stand in: that of the empty dz."""
        return LOWEST_PRIORITY + LIFT * self.lifted


UNSTAMPED = Stamp()


@dataclass(frozen=True, slots=True, eq=False)
class NetworkState:
    """Tables, what each publisher may send in their language, and the stamp that both carry."""

    tables: Tables
    sent: Mapping[HostId, DzSet]
    stamp: Stamp = UNSTAMPED

    def stamped(self, stamp: Stamp) -> NetworkState:
        return replace(self, stamp=stamp)

    def forwarding(self, side: Side) -> Entries:
        """The tables as entries with the state's stamp; tagged events are untagged before hosts."""
        return forwarding(self.tables, side, self.stamp)

    def edge(self, side: Side, set_vlan: int = ANY) -> Entries:
        """What the edge lets in, an entry for each dz of each publisher."""
        fabric = self.tables.fabric
        return admitting(fabric, admissions(fabric.topology, self.sent), side, self.stamp, set_vlan)


def admitting(
    fabric: Fabric, admitted: Iterable[Admission], side: Side, stamp: Stamp, set_vlan: int = ANY
) -> Entries:
    """Admissions as entries of the edge."""
    listed = sorted(admitted)
    return rows(
        fabric,
        np.array([fabric.switch_number[one.switch] for one in listed], np.int64),
        DzColumns.of(one.dz for one in listed),
        np.zeros((len(listed), fabric.port_words), np.uint64),
        side,
        table=Table.EDGE,
        in_port=np.array([one.port for one in listed], np.int64),
        vlan=stamp.vlan,
        epoch=stamp.epoch,
        priority=EDGE_PRIORITY,
        set_vlan=set_vlan,
    )


def forwarding(tables: Tables, side: Side, stamp: Stamp) -> Entries:
    """Tables as entries: the longest match wins, in the band of the stamp."""
    switch = np.repeat(np.arange(tables.fabric.switches), np.diff(tables.first))
    return longest_first(tables.fabric, switch, tables.dz, tables.ports, side, stamp)


def longest_first(
    fabric: Fabric, switch: Columns, dz: DzColumns, ports: Masks, side: Side, stamp: Stamp
) -> Entries:
    """Rows of tables as entries."""
    return rows(
        fabric,
        switch,
        dz,
        ports,
        side,
        priority=stamp.lowest_priority + dz.length.astype(np.int64),
        vlan=stamp.vlan,
        epoch=stamp.epoch,
        untag=stamp.tagged,
    )


@dataclass(frozen=True, slots=True)
class Delays:
    """The longest that anything takes, as measured; drains are made from them."""

    link_seconds: float = 0.001  # where a link does not state its latency
    switch_seconds: float = 0.0005
    margin: float = 1.25


@dataclass(frozen=True, slots=True)
class Options:
    """What the user may choose; each strategy reads what concerns it."""

    delays: Delays = field(default_factory=Delays)
    epoch_bits: int = 0
    order: Order = "filter-rate"  # of taking wide entries away
    care: Care = "make-first"  # of ordered updates
    rates: Mapping[SwitchId, float] = field(
        default_factory=dict
    )  # as measured: filtered share or packets sent
    seed: int = 0  # of the random order
    limits: Mapping[SwitchId, int] = field(default_factory=dict)  # entries that a switch has room for
    prefer: Prefer = "accurate"
