"""Delay through real switches: what Plerion's tables add to it, and what it depends on (seed 000, Figures 7(a), (b)).

A packet crosses five switches here, each of which is woken up for it, so one crossing takes about a millisecond and
whoever else uses the machine shows in it. Hence medians, and comparisons in many short turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from plerion.client.mmsg import Addresses
from plerion.controller.deploy import Deployment
from plerion.experiments.figure import Figure, Point, Row, Verdict, curve, graded, panels
from plerion.experiments.lab_load import Kind, Load, admitted
from plerion.experiments.lab_probe import Floats, Lane, in_turns
from plerion.experiments.lab_site import TESTBED, far_apart, laboratory, path, put, switches
from plerion.lab import Lab
from plerion.southbound.openflow.driver import OpenFlowSouthbound
from plerion.topology.graph import HostId

EVENTS: Final = 10_000
RATE: Final = 500.0  # packets a second
NARROW: Final = (0.0005, 0.002)  # so narrow a subscription takes its whole budget of entries
ENTRIES_EACH: Final = 7.636
ROUNDS: Final = 5
CALM_SECONDS: Final = 3.0
LOOKED_UP, CACHED, MEAN = "median, first time", "median, again", "mean of all"
SIZES: Final = (5_000, 10_000, 20_000, 40_000, 80_000)
SUBSCRIPTIONS: Final = (1_000, 2_000, 4_000, 8_000, 16_000)
NEARLY: Final = 0.25  # delays that differ by less than this share are 'almost constant'

TURN, WARMING = 100, 300  # packets that are measured in a turn, after some that only fill the switches' cache
WARMING_RATE: Final = 2_000.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """Milliseconds over the same way: through Plerion's tables, and through one entry a switch; a row a turn."""

    ours: Floats
    plain: Floats

    @property
    def added(self) -> float:
        """By which share ours is longer at the median: of all turns, the middle one."""
        return float(np.median(np.median(self.ours, axis=1) / np.median(self.plain, axis=1))) - 1

    @property
    def pooled(self) -> float:
        """The same of all packets at once."""
        return float(np.median(self.ours) / np.median(self.plain)) - 1


async def compared(lab: Lab, load: Load, turns: int) -> Comparison:
    """Swaps the tables of the switches on the longest way again and again: ours, one entry, one entry, ours, …"""
    source, target = far_apart(lab.topology)
    deployment = load.deployed()
    reached = load.copies(deployment, source)[:, lab.topology.host_number(target) - 1] > 0
    events = load.addresses[reached]
    way = path(lab.topology, source, target)
    async with switches(lab) as southbound:
        await put(southbound, deployment.tables, admitted(deployment))
        held = {switch: _entries(lab, switch) for switch, _ in way}
        one = {switch: f"actions=output:{port}" for switch, port in way}
        try:
            with Lane(lab, source, [target]) as lane:
                return await asyncio.to_thread(_turns, lab, lane, (held, one), events, turns)
        finally:
            _replace(lab, held)


def _turns(
    lab: Lab, lane: Lane, tables: tuple[dict[str, str], dict[str, str]], events: Addresses, turns: int
) -> Comparison:
    found = np.full((2, turns, TURN), np.inf)  # what is lost never came
    for turn in range(turns):
        chosen = np.resize(np.arange(len(events)), (turn + 1) * (TURN + WARMING))[-TURN - WARMING :]
        for kind in (0, 1) if turn % 2 else (1, 0):
            _replace(lab, tables[kind])
            in_turns([lane], [events[chosen[:WARMING]]], WARMING_RATE, b"warm%04d" % turn)
            (delays,) = in_turns([lane], [events[chosen[WARMING:]]], RATE, b"turn%04d" % turn)
            found[kind, turn, delays.event] = delays.milliseconds
    return Comparison(found[0], found[1])


def _entries(lab: Lab, switch: str) -> str:
    """What a switch holds, in the words of ``ovs-ofctl``."""
    lines = lab.ofctl(switch, "dump-flows", "--no-stats").splitlines()
    return "\n".join(line for line in lines if "actions=" in line)


def _replace(lab: Lab, tables: dict[str, str]) -> None:
    for switch, entries in tables.items():
        lab.ofctl(switch, "replace-flows", "-", text=entries)


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """Tables to put, where they are in the plot, and events that they take somewhere."""

    x: float
    deployment: Deployment
    events: Addresses


async def in_rounds(
    southbound: OpenFlowSouthbound, lane: Lane, scenes: Sequence[Scene], point: Point
) -> list[Row]:
    """All scenes in each round, in another order each time: a machine that gets busier does so for all of them."""
    rounds = max(1, round(ROUNDS * point.scale))
    found: dict[float, list[tuple[Floats, Floats]]] = {scene.x: [] for scene in scenes}
    order = np.random.default_rng(point.seed)
    for number in range(rounds):
        for at in order.permutation(len(scenes)).tolist():
            scene, share = scenes[at], len(scenes[at].events) // rounds
            await put(southbound, scene.deployment.tables, admitted(scene.deployment))
            await asyncio.sleep(CALM_SECONDS * point.scale)  # in which the switch forgets what it held
            events = scene.events[number * share : (number + 1) * share]
            found[scene.x].append(await asyncio.to_thread(_twice, lane, events, number))
    rows = []
    for x, pairs in found.items():
        firsts, agains = (np.concatenate(part) for part in zip(*pairs, strict=True))
        lines = {LOOKED_UP: np.median(firsts), CACHED: np.median(agains), MEAN: np.mean([*firsts, *agains])}
        rows += [Row(point.panel, line, x, float(y), point.seed) for line, y in lines.items()]
    return rows


def _twice(lane: Lane, events: Addresses, number: int) -> tuple[Floats, Floats]:
    """The delays of events that the switches see for the first time, and of the same again."""
    first, again = (
        in_turns([lane], [events], RATE, b"%s%04d" % (word, number))[0] for word in (b"once", b"more")
    )
    return first.milliseconds, again.milliseconds


def _by_size(point: Point, target: HostId, asked: int) -> Scene:
    """Real filters of one far host, which take about eight entries each on the way, and events that meet them."""
    drawn = Load.of(TESTBED, "zipf", asked, 0, point.seed, NARROW).shared_by([target])
    load = drawn.met(point.events(EVENTS), point.seed)
    deployment = load.deployed()
    return Scene(float(max(deployment.state.table.sizes)), deployment, load.addresses)


def _by_subscriptions(point: Point, kind: Kind, source: HostId, count: int) -> Scene:
    """Subscriptions of all hosts, and events of one that reach whoever the network takes for interested."""
    needed = point.events(EVENTS)
    load = Load.of(TESTBED, kind, count, 2 * needed, point.seed)
    deployment = load.deployed()
    events = np.concatenate([_reaching(some, deployment, source) for some in (load, load.met(2 * needed))])
    return Scene(float(count), deployment, events[:needed])


def _reaching(load: Load, deployment: Deployment, source: HostId) -> Addresses:
    """The events that the network takes to anybody."""
    return load.addresses[load.copies(deployment, source).any(axis=1)]


async def _measured(
    scenes: Sequence[Scene], source: HostId, targets: Sequence[HostId], point: Point
) -> list[Row]:
    async with laboratory() as lab, switches(lab) as southbound:
        with Lane(lab, source, targets) as lane:
            return await in_rounds(southbound, lane, scenes, point)


def table_rows(point: Point) -> list[Row]:
    source, target = far_apart(TESTBED)
    asked = dict.fromkeys(point.subscriptions(round(size / ENTRIES_EACH)) for size in SIZES)
    scenes = [_by_size(point, target, count) for count in asked]
    return asyncio.run(_measured(scenes, source, [target], point))


def subscription_rows(point: Point) -> list[Row]:
    kind: Kind = "uniform" if point.panel == "uniform" else "zipf"
    source, *others = TESTBED.hosts
    counts = dict.fromkeys(point.subscriptions(count) for count in SUBSCRIPTIONS)
    scenes = [_by_subscriptions(point, kind, source, count) for count in counts]
    return asyncio.run(_measured(scenes, source, others, point))


def almost_constant(found: Sequence[Row]) -> Verdict:
    """At the median, wherever on the axis, both of what is looked up in the tables and of what is remembered."""
    parts, told = [], []
    for panel in panels(found):
        for line in (LOOKED_UP, CACHED):
            delays = curve(found, line, panel)
            least, most = min(delays.values()), max(delays.values())
            parts.append(most <= (1 + NEARLY) * least)
            ends = ", ".join(f"{delays[x]:.2f} ms at {x:,.0f}" for x in (min(delays), max(delays)))
            told.append(f"{panel} {line}: {ends} ({least:.2f} to {most:.2f})".strip())
    return graded(parts, "; ".join(told))


LIMITS: Final = (
    "Open vSwitch in userspace, ten switches and eight hosts on one machine: a crossing of five switches wakes one "
    "process five times"
)

FIGURES = (
    Figure(
        name="000-7a",
        title="Delay over five switches by the size of their tables",
        x="entries a table",
        y="milliseconds",
        claim="the number of entries hardly changes the delay",
        settings=f"10,000 packets, 500 a second, each twice; {LIMITS}",
        starts=(Point("000-7a"),),
        rows=table_rows,
        verdict=almost_constant,
        log="x",
        rates=False,
        lab=True,
    ),
    Figure(
        name="000-7b",
        title="Delay to all who are reached, by the number of subscriptions",
        x="subscriptions",
        y="milliseconds",
        claim="the number of subscriptions hardly changes the delay",
        settings=f"8 attributes 0–4095, covers of up to 8 dz, 10,000 events, 500 a second, each twice; {LIMITS}",
        starts=tuple(Point("000-7b", panel) for panel in ("uniform", "zipf")),
        rows=subscription_rows,
        verdict=almost_constant,
        log="x",
        rates=False,
        lab=True,
    ),
)
