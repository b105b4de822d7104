"""Flow-mods into one switch of a lab: ours, in bundles with barriers, beside those of ``ovs-ofctl``, in turns."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Final

import numpy as np

from plerion.experiments.lab_delay import NARROW
from plerion.experiments.lab_load import Load
from plerion.experiments.lab_site import switches
from plerion.flow.diff import Diff, Kind, diff
from plerion.flow.entry import Tables, no_tables
from plerion.flow.render import ofctl_lines
from plerion.index.address import AddressPlan
from plerion.lab import Lab
from plerion.southbound.openflow.driver import OpenFlowSouthbound

REPEATS: Final = 3
BATCH, SMALL = 10_000, 1_000
ENTRIES_EACH: Final = 7.9

Told = tuple[str, float, str]


async def flow_mods(lab: Lab, count: int) -> list[Told]:
    """The best of several turns, because noise only ever takes away."""
    load = Load.of(lab.topology, "zipf", round(count / ENTRIES_EACH) + 1, 0, widths=NARROW)
    tables = load.deployed().tables
    switch = int(np.argmax(np.diff(tables.first)))
    change = _of(diff(no_tables(tables.fabric), tables), switch)
    lines = _lines(tables, switch)
    rates: dict[str, list[float]] = {name: [] for name in ("whole", "parts", "small", "gone", "ofctl")}
    async with switches(lab) as southbound:
        for _ in range(REPEATS):
            rates["whole"].append(await _sent(southbound, change, len(change)))
            rates["gone"].append(await _sent(southbound, _deleted(change), len(change)))
            rates["parts"].append(await _sent(southbound, change, BATCH))
            await _sent(southbound, _deleted(change), len(change))
            rates["small"].append(await _sent(southbound, change, SMALL))
            await _sent(southbound, _deleted(change), len(change))
            name = lab.topology.switches[switch]
            rates["ofctl"].append(await asyncio.to_thread(_by_ofctl, lab, name, lines))
            await _sent(southbound, _deleted(change), len(change))
    best = {name: max(found) for name, found in rates.items()}
    return [
        (f"flow-mods into a switch, in bundles of {BATCH:,} with barriers", best["parts"], "1/s"),
        (f"… of {SMALL:,}, each waiting for what the switch's cache needs to follow", best["small"], "1/s"),
        (f"… all {len(change):,} in one bundle", best["whole"], "1/s"),
        ("… deleted again", best["gone"], "1/s"),
        ("… by ovs-ofctl --bundle, in turns with ours", best["ofctl"], "1/s"),
        ("… ours / ovs-ofctl's, in one bundle", best["whole"] / best["ofctl"], "×"),
    ]


def _of(change: Diff, switch: int) -> Diff:
    rows = np.flatnonzero(change.switch == switch)
    return Diff(change.fabric, change.switch[rows], change.dz[rows], change.kind[rows], change.ports[rows])


def _deleted(change: Diff) -> Diff:
    kinds = np.full(len(change), Kind.DELETE, np.uint8)
    return Diff(change.fabric, change.switch, change.dz, kinds, change.ports)


def _lines(tables: Tables, switch: int) -> str:
    """The same entries for ``ovs-ofctl``, with our cookie, so that they are ours to delete."""
    sizes = np.where(np.arange(tables.fabric.switches) == switch, np.diff(tables.first), 0)
    rows = slice(int(tables.first[switch]), int(tables.first[switch + 1]))
    first = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    alone = Tables(tables.fabric, first, tables.dz[rows], tables.ports[rows])
    written = ofctl_lines(alone, AddressPlan(), "raw")
    return "\n".join(
        f"cookie=0x506c657200000003,table=1,{line}" for line in written if not line.startswith("#")
    )


async def _sent(southbound: OpenFlowSouthbound, change: Diff, batch: int) -> float:
    began = perf_counter()
    for at in range(0, len(change), batch):
        rows = slice(at, at + batch)
        part = Diff(
            change.fabric, change.switch[rows], change.dz[rows], change.kind[rows], change.ports[rows]
        )
        assert not await southbound.apply(part), "the switch is connected"
    return len(change) / (perf_counter() - began)


def _by_ofctl(lab: Lab, switch: str, lines: str) -> float:
    began = perf_counter()
    lab.ofctl(switch, "add-flows", "--bundle", "-", text=lines)
    return len(lines.splitlines()) / (perf_counter() - began)
