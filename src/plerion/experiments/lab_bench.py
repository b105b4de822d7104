"""What is claimed of Plerion on real switches, measured: a row each, with the bound that it must reach.

Ratios compare what was measured in turns. Everything runs on one machine: ten switches, eight hosts, the controller
and whoever measures share its cores, and whoever else is there shows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Final, TypedDict

import numpy as np

from plerion.experiments.lab_control import (
    Asker,
    ControllerProcess,
    askers,
    at_a_rate,
    controller,
    in_flight,
    touched_since,
)
from plerion.experiments.lab_delay import compared
from plerion.experiments.lab_flowmods import flow_mods
from plerion.experiments.lab_load import Kind, Load
from plerion.experiments.lab_site import TESTBED, laboratory, switches
from plerion.experiments.lab_throughput import LOSSLESS, SECONDS, Passage, Stage, passed
from plerion.lab import Lab
from plerion.topology.graph import HostId

DEPLOYED: Final = 25_000
PACED, PACED_SECONDS = 100, 10
SUSTAINED, TOGETHER = 5_000, 64
TURNS: Final = 60
TINY: Final = 0.01  # a part of the work that only shows that it runs
RATES: Final = (250, 500, 1_000, 2_000, 4_000, 8_000, 12_000, 16_000, 24_000, 32_000, 64_000)

Row = TypedDict("Row", {"what": str, "measured": float, "at least": str, "unit": str, "met": bool})


def row(what: str, measured: float, unit: str, least: float | None = None, most: float | None = None) -> Row:
    """What was measured beside its bound; without one it is only told."""
    met = (least is None or measured >= least) and (most is None or measured <= most)
    limit = f"{least:,.0f}" if least is not None else "" if most is None else f"at most {most:,.4g}"
    return {"what": what, "measured": float(measured), "at least": limit, "unit": unit, "met": bool(met)}


async def latency(name: str | None, scale: float) -> list[Row]:
    """What Plerion's tables add to the delay over five switches that else have one entry each."""
    deployed, turns = max(50, round(DEPLOYED * scale)), max(2, round(TURNS * scale))
    load = Load.of(TESTBED, "zipf", deployed, 60_000)
    async with laboratory(name) as lab:
        found = await compared(lab, load, turns)
    return [
        row("delay over five switches, one entry each, median", float(np.median(found.plain)), "ms"),
        row(f"… with the tables of {deployed:,} subscriptions", float(np.median(found.ours)), "ms"),
        row(f"… added, the middle one of {turns} turns", 100 * found.added, "%", most=10),
        row("… added, all packets at once", 100 * found.pooled, "%"),
        row("… at the 99th percentile, one entry each", float(np.quantile(found.plain, 0.99)), "ms"),
        row("… and with ours", float(np.quantile(found.ours, 0.99)), "ms"),
    ]


async def throughput(name: str | None, scale: float) -> list[Row]:
    """The highest of some rates at which four hosts receive all that one publisher sends."""
    stage = Stage.of(1_000, 20_000)
    best, over = Passage(), None
    async with laboratory(name) as lab, switches(lab) as southbound:
        await stage.set_up(southbound)
        await passed(lab, southbound, stage, 500, 1.0)  # fills the caches
        for rate in RATES[: max(1, round(len(RATES) * scale))]:
            found = await passed(lab, southbound, stage, rate, max(0.5, SECONDS * scale))
            if found.lost > LOSSLESS:
                over = found
                break
            best = found
    rows = [
        row("events a second of one publisher, all received", best.events / best.seconds, "1/s", least=1_000),
        row("… copies a second, at four hosts", best.received / best.seconds, "1/s"),
        row("… crossings of a switch a second, five a copy", 5 * best.received / best.seconds, "1/s"),
    ]
    if over is not None:
        what = f"of what {over.events / over.seconds:,.0f} events a second give, received"
        rows.append(row(what, 100 * (1 - over.lost), "%"))
        rows.append(row("… and sent to hosts by switches", 100 * over.left / over.wanted, "%"))
    return rows


async def control(name: str | None, scale: float) -> list[Row]:
    """From a host's request to *ready*, and from a killed controller to one that serves; and bare flow-mods."""
    deployed = max(50, round(DEPLOYED * scale))
    async with laboratory(name) as lab:
        rows = [row(*told) for told in await flow_mods(lab, max(1_000, round(100_000 * scale)))]
        rows[0] = row(rows[0]["what"], rows[0]["measured"], "1/s", least=40_000)
        kinds: dict[Kind, str] = {"zipf": "hotspots", "uniform": "anything"}
        for kind, what in list(kinds.items())[: 2 if scale > TINY else 1]:
            rows += await _asked(lab, kind, f"{deployed:,} deployed, {what}", deployed, scale)
    return rows


async def _asked(lab: Lab, kind: Kind, what: str, deployed: int, scale: float) -> list[Row]:
    paced, many = max(50, round(PACED * PACED_SECONDS * scale)), max(TOGETHER, round(SUSTAINED * scale))
    load = Load.of(lab.topology, kind, deployed + paced + many, 0)
    bound = kind == "zipf"
    with TemporaryDirectory() as folder, controller(lab, load, Path(folder), deployed) as process:
        process.start()
        await process.until_ready()
        async with askers(lab) as hosts:
            before = process.metric("plerion_changes_total")
            took = 1000 * np.array(
                await at_a_rate(_asking(load, hosts), range(deployed, deployed + paced), PACED)
            )
            rate = await in_flight(
                _asking(load, hosts), range(deployed + paced, deployed + paced + many), TOGETHER
            )
            each = (process.metric("plerion_changes_total") - before) / (paced + many)
        rows = [
            row(f"subscription to ready at {PACED} a second, p50; {what}", float(np.median(took)), "ms"),
            row("… p99", float(np.quantile(took, 0.99)), "ms", most=200 if bound else None),
            row(f"… {TOGETHER} at a time", rate, "1/s", least=500 if bound else None),
            row("… changed entries each", each, ""),
        ]
        return rows + await _restarted(lab, load, process, what, bound)


def _asking(load: Load, hosts: dict[HostId, Asker]) -> Callable[[int], Any]:
    return lambda i: hosts[load.host(i)].subscribe(f"q{i}", load.text(i))


async def _restarted(lab: Lab, load: Load, process: ControllerProcess, what: str, bound: bool) -> list[Row]:
    """Killed and started again: until a host that asks is answered, and what the switches were told meanwhile."""
    began = perf_counter()
    process.kill()
    process.start()
    await process.until_ready()
    async with askers(lab, seed=2) as hosts:
        await _asking(load, hosts)(0)  # which is deployed already, so no table changes for it
        took = perf_counter() - began
        repaired = process.metric("plerion_repairs_total")
    touched, entries = await asyncio.to_thread(touched_since, lab, took)
    return [
        row(f"controller killed to serving again; {what}", took, "s", most=20 if bound else None),
        row("… flow-mods that tables needed", repaired, "", most=0),
        row(f"… of {entries:,} entries, younger than the kill", touched, ""),
        row("… memory of the controller", process.memory(), "MiB"),
    ]


MEASUREMENTS: Final = {"latency": latency, "throughput": throughput, "control": control}


def measured(which: str, lab: str | None, scale: float) -> list[Row]:
    """The rows of one word of `plerion bench`."""
    return asyncio.run(MEASUREMENTS[which](lab, scale))
