"""How long a new subscription takes when many are deployed, up to real switches' barriers (seed 000, Figure 7(f)).

The controller with its journal on disk, in this process, without the way of a request through the network. One by one
is the paper's measure. Under load a controller takes what comes meanwhile together, which the second line shows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final

from plerion.controller.journal import Journal
from plerion.controller.service import Controller
from plerion.experiments.figure import Figure, Point, Row, Verdict, curve, graded, panels
from plerion.experiments.lab_control import written_journal
from plerion.experiments.lab_load import Kind, Load
from plerion.experiments.lab_site import TESTBED, laboratory, switches

DEPLOYED: Final = (1_000, 5_000, 10_000, 15_000, 20_000, 25_000)
ONE_BY_ONE: Final = 200
TOGETHER: Final = 64
PAPERS: Final = 54.0  # subscriptions a second with 25,000 deployed

ALONE, JOINTLY = "one by one", f"{TOGETHER} at a time, each"


async def milliseconds_each(controller: Controller, load: Load, first: int, count: int) -> list[float]:
    """Of subscriptions that come one after the other."""
    found = []
    for i in range(first, first + count):
        began = perf_counter()
        answer = await controller.handle(load.subscription(i))
        assert answer.ready, answer
        found.append(1000 * (perf_counter() - began))
    return found


async def reconfigured(point: Point) -> list[Row]:
    kind: Kind = "uniform" if point.panel == "uniform" else "zipf"
    deployed = max(1, round(point.at * point.scale))
    alone, together = max(20, round(ONE_BY_ONE * point.scale)), 4 * TOGETHER
    load = Load.of(TESTBED, kind, deployed + alone + together, 0, point.seed)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "journal"
        written_journal(path, load, deployed)
        async with laboratory() as lab, switches(lab) as southbound:
            journal = Journal(path, load.settings)
            try:
                controller = await Controller.start(load.settings, journal, southbound)
                single = await milliseconds_each(controller, load, deployed, alone)
                joint = await _jointly(controller, load, deployed + alone, together)
            finally:
                journal.close()
    return [
        Row(point.panel, ALONE, deployed, fmean(single), point.seed),
        Row(point.panel, JOINTLY, deployed, joint, point.seed),
    ]


async def _jointly(controller: Controller, load: Load, first: int, count: int) -> float:
    began = perf_counter()
    for at in range(first, first + count, TOGETHER):
        answers = await controller.handle_all(map(load.subscription, range(at, at + TOGETHER)))
        assert all(answer.ready for answer in answers)
    return 1000 * (perf_counter() - began) / count


def rows(point: Point) -> list[Row]:
    return asyncio.run(reconfigured(point))


def verdict(found: Sequence[Row]) -> Verdict:
    """With the most deployed, no fewer a second than the paper's controller took."""
    parts, told = [], []
    for panel in panels(found):
        alone, jointly = (curve(found, line, panel) for line in (ALONE, JOINTLY))
        most = max(alone)
        parts += [1000 / alone[most] >= PAPERS, 1000 / jointly[most] >= PAPERS]
        told.append(
            f"{panel}: with {most:,.0f} deployed {1000 / alone[most]:,.0f} a second one by one, "
            f"{1000 / jointly[most]:,.0f} a second {TOGETHER} at a time; one takes {min(alone.values()):.1f} to "
            f"{max(alone.values()):.1f} ms over all numbers deployed"
        )
    return graded(parts, "; ".join(told))


FIGURES = (
    Figure(
        name="000-7f",
        title="Reconfiguration for a new subscription by those deployed",
        x="subscriptions deployed",
        y="milliseconds a subscription",
        claim="with 25,000 subscriptions deployed a controller takes about 54 more a second",
        settings=(
            "8 attributes 0–4095, covers of up to 8 dz, every host publishes everything, ten switches of Open vSwitch "
            "that confirm by barriers, the journal synced to disk; switches, controller and measurement share two cores"
        ),
        starts=tuple(Point("000-7f", panel, at=count) for panel in ("uniform", "zipf") for count in DEPLOYED),
        rows=rows,
        verdict=verdict,
        log="y",
        rates=False,
        lab=True,
    ),
)
