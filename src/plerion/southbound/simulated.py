"""Switches in memory: a change is in force when `apply` returns."""

from __future__ import annotations

import numpy as np

from plerion.flow.admission import Admission, AdmissionChange
from plerion.flow.diff import Diff, Kind
from plerion.flow.entry import Tables, no_tables
from plerion.flow.fabric import Fabric
from plerion.index.dzset import DzColumns
from plerion.topology.graph import SwitchId

_Key = tuple[int, int, int, int]  # switch, high, low, length


class SimulatedSouthbound:
    """Every switch's table as a dictionary, so a change costs what it changes."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._entries: dict[_Key, bytes] = {}
        self._admitted: frozenset[Admission] = frozenset()

    async def admit(self, change: AdmissionChange) -> frozenset[SwitchId]:
        self._admitted = (self._admitted - change.removed) | change.added
        return frozenset()

    async def admissions(self) -> frozenset[Admission]:
        return self._admitted

    async def apply(self, change: Diff) -> frozenset[SwitchId]:
        rows = zip(
            change.switch.tolist(),
            change.dz.high.tolist(),
            change.dz.low.tolist(),
            change.dz.length.tolist(),
            strict=True,
        )
        for key, kind, ports in zip(rows, change.kind.tolist(), change.ports, strict=True):
            if kind == Kind.DELETE:
                self._entries.pop(key, None)
            else:
                self._entries[key] = ports.tobytes()
        return frozenset()

    async def tables(self) -> Tables:
        if not self._entries:
            return no_tables(self._fabric)
        keys = sorted(self._entries)
        switch, high, low, length = zip(*keys, strict=True)
        ports = np.frombuffer(b"".join(self._entries[key] for key in keys), np.uint64)
        first = np.searchsorted(np.array(switch), np.arange(self._fabric.switches + 1)).astype(np.int64)
        dz = DzColumns(np.array(high, np.uint64), np.array(low, np.uint64), np.array(length, np.uint8))
        return Tables(self._fabric, first, dz, ports.reshape(len(keys), -1).copy())
