"""Network tables under table-size limits: what the switches are really told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from plerion.flow.diff import Diff, Kind, apply, coalesced, diff
from plerion.flow.entry import Ints, Tables
from plerion.flow.fabric import Fabric
from plerion.flow.fit import fit, safe_lengths
from plerion.flow.table import NetworkTable
from plerion.index.cover import Covers
from plerion.index.dz import Dz
from plerion.index.dzset import DzColumns, DzSet
from plerion.routing.tree import Source, Spanning
from plerion.topology.graph import HostId, SwitchId

_UNKNOWN = np.uint64(0xFFFF_FFFF_FFFF_FFFF)  # no real set of ports: one bit is always unused (`port_words`)


class LimitedTable:
    """A `NetworkTable` whose switches keep to their limits; without limits it adds nothing.

    The tables shown are always `fit` of the exact ones, so they depend on what is deployed and not on how it came to
    be. A switch within its limit costs nothing more; one over it is fitted anew at each change that touches it.
    """

    def __init__(self, fabric: Fabric, limits: Mapping[SwitchId, int] | None = None) -> None:
        self.exact = NetworkTable(fabric)
        self.limits = np.array([(limits or {}).get(s, -1) for s in fabric.topology.switches], np.int64)
        self._unlimited = not (self.limits >= 0).any()
        self._safe: list[tuple[Dz, int]] = []
        self._shown: Tables | None = None  # of switches over their limit; None when there are none
        self._pending: list[Diff] = []  # changes that could not be shown yet, because trees must merge first

    @property
    def fabric(self) -> Fabric:
        return self.exact.fabric

    @property
    def sizes(self) -> Ints:
        """Entries of each switch, as shown."""
        if self._shown is None:
            return self.exact.sizes
        over = self._over()
        return np.where(over, np.diff(self._shown.first), self.exact.sizes)

    def subscribe(self, dz: DzColumns, host: HostId) -> Diff:
        return self._shown_change(self.exact.subscribe(dz, host))

    def unsubscribe(self, dz: DzColumns, host: HostId) -> Diff:
        return self._shown_change(self.exact.unsubscribe(dz, host))

    def load(self, covers: Covers, hosts: Iterable[HostId]) -> None:
        self.exact.load(covers, hosts)
        self._shown = self._fitted()

    def route(
        self,
        sources: Iterable[Source],
        trees: Sequence[DzSet],
        spanning: Callable[[SwitchId], Spanning],
        version: object,
    ) -> Diff:
        """Publishers and trees are now these.

        Like every change it raises `TreesDoNotFit` when a limit needs fewer trees. The change is then taken but not
        yet shown: call again with fewer trees, and the answer holds both.
        """
        change = self.exact.route(sources, spanning, version)
        self._safe = safe_lengths(trees)
        return self._shown_change(change, always=True)

    def tables(self) -> Tables:
        exact = self.exact.tables()
        return fit(exact, self.limits, self._safe) if self._over().any() else exact

    def _over(self) -> np.ndarray:
        return (self.limits >= 0) & (self.exact.sizes > self.limits)

    def _fitted(self) -> Tables | None:
        over = self._over()
        return fit(_only(self.exact.tables(), over), self.limits, self._safe) if over.any() else None

    def _shown_change(self, change: Diff, always: bool = False) -> Diff:
        if self._unlimited:
            return change
        self._pending.append(change)
        shown = self._show(coalesced(self._pending), always)
        self._pending.clear()
        return shown

    def _show(self, change: Diff, always: bool) -> Diff:
        over, before = self._over(), self._shown
        was_over = np.diff(before.first) > 0 if before is not None else np.zeros_like(over)
        touched = was_over | over
        mine = touched[change.switch]
        if not (mine.any() or (always and touched.any())):
            return change
        exact = self.exact.tables()
        old = _undone(_only(exact, touched & ~was_over), _rows(change, mine & ~was_over[change.switch]))
        if before is not None:
            old = _together(old, before)
        fitted = fit(_only(exact, touched), self.limits, self._safe)
        self._shown = _only(fitted, over) if over.any() else None
        return coalesced([_rows(change, ~mine), diff(old, fitted)])


def _rows(change: Diff, kept: np.ndarray) -> Diff:
    return Diff(change.fabric, change.switch[kept], change.dz[kept], change.kind[kept], change.ports[kept])


def _only(tables: Tables, kept: np.ndarray) -> Tables:
    """The tables of some switches; the others empty."""
    sizes = np.diff(tables.first)
    rows = np.repeat(kept, sizes)
    first = np.concatenate(([0], np.cumsum(np.where(kept, sizes, 0))))
    return Tables(tables.fabric, first, tables.dz[rows], tables.ports[rows])


def _together(a: Tables, b: Tables) -> Tables:
    """Tables of different switches as one."""
    switch = np.concatenate([np.repeat(np.arange(t.fabric.switches), np.diff(t.first)) for t in (a, b)])
    order = np.argsort(switch, kind="stable")
    first = np.searchsorted(switch[order], np.arange(a.fabric.switches + 1)).astype(np.int64)
    return Tables(
        a.fabric, first, DzColumns.joined([a.dz, b.dz])[order], np.concatenate((a.ports, b.ports))[order]
    )


def _undone(after: Tables, change: Diff) -> Tables:
    """The tables before a change; ports that it overwrote are unknown and differ from any real ones."""
    back = {Kind.ADD: Kind.DELETE, Kind.MODIFY: Kind.MODIFY, Kind.DELETE: Kind.ADD}
    kinds = np.array([back[Kind(kind)] for kind in change.kind], np.uint8)
    undo = Diff(change.fabric, change.switch, change.dz, kinds, np.full_like(change.ports, _UNKNOWN))
    return apply(undo, after)
