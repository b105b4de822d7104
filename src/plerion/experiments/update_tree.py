"""Seed 001, Figures 6.5 and 6.8: a tree moves while events flow, on tori of 8 to 64 switches.

The root goes from the switch of a publisher to one as far away as any; index and interests stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np

from plerion.experiments.figure import (
    CLEAR,
    Figure,
    Point,
    Row,
    Verdict,
    curve,
    graded,
    panels,
    percent,
    saved,
)
from plerion.experiments.torus_site import EVENTS, OPTIONS, SHAPES, Site, learned
from plerion.experiments.update_index import EPOCH, METHOD, SETTINGS, mean
from plerion.experiments.update_story import Story, over_time, story
from plerion.simnet.traffic import Sample
from plerion.update.plan import Plan, extra
from plerion.update.strategies import MOVES, STRATEGIES

VERSIONING, CUSTOMISED = "tree-versioning", "customised-versioning"
LINES: Final = (VERSIONING, CUSTOMISED, EPOCH)
INTERVALS: Final = {8: 0.003, 16: 0.003, 32: 0.005, 64: 0.008}  # seconds that a dot stands for
ALIKE: Final = 0.02  # means of a few thousand events differ by as much at rest
SLIGHTLY: Final = 0.1


def planned(line: str, switches: int, seed: int, scale: float) -> tuple[Plan, list[Sample]]:
    """The move by this strategy, and events to send meanwhile."""
    site = Site.drawn(switches, seed, events=Point("", scale=scale).events(EVENTS))
    index = learned(site.drift.before, site.budget, *METHOD)
    old, new = site.state(index), site.state(index, site.far)
    make = {**STRATEGIES, **MOVES}[line.removesuffix(" (ours)")].make
    return make(old, new, site.topology, OPTIONS), site.samples(index, index, drifted=False)


def room_rows(point: Point) -> list[Row]:
    """By size: how many entries more than the larger state the middle switch holds at its worst moment."""
    return [
        Row(point.panel, point.line, switches, float(np.median(extra(plan))), point.seed)
        for switches in SHAPES
        for plan, _ in [planned(point.line, switches, point.seed, point.scale)]
    ]


@cache
def _told(line: str, switches: int, seed: int, scale: float) -> Story:
    plan, samples = planned(line, switches, seed, scale)
    return story(plan, samples, seed, INTERVALS[switches])


def waste_rows(point: Point) -> list[Row]:
    found = _told(point.line, point.at, point.seed, point.scale)
    dots = over_time(found, INTERVALS[point.at], lambda *when: found.waste(found.between(*when)))
    return [Row(point.panel, point.line, x, y, point.seed) for x, y in dots]


def customised_needs_less(found: Sequence[Row]) -> Verdict:
    theirs = {line: curve(found, line) for line in LINES}
    parts = [saved(theirs[CUSTOMISED][x], theirs[VERSIONING][x]) >= CLEAR for x in SHAPES]
    told = (
        f"{x} switches: " + ", ".join(f"{line} {ys[x]:,.0f}" for line, ys in theirs.items()) for x in SHAPES
    )
    return graded(parts, f"entries more at the median switch: {'; '.join(told)}")


def only_customised_wastes(found: Sequence[Row]) -> Verdict:
    """Versioning stays as it was, customised versioning wastes more for a while, at the worst a tenth of all more."""
    parts, told = [], []
    for panel in panels(found):
        before = {line: mean(found, line, panel, after=False) for line in LINES}
        after = {line: mean(found, line, panel) for line in LINES}
        worst = max(curve(found, CUSTOMISED, panel).values())
        parts += [
            after[VERSIONING] - before[VERSIONING] <= ALIKE,
            after[CUSTOMISED] - before[CUSTOMISED] > ALIKE,
            worst - before[CUSTOMISED] <= SLIGHTLY,
        ]
        means = ", ".join(f"{line} {percent(before[line])} to {percent(after[line])}" for line in LINES)
        told.append(f"{panel}: {means} ({CUSTOMISED} {percent(worst)} at the worst)")
    return graded(parts, f"before, and on average from the beginning on: {'; '.join(told)}")


FIGURES = (
    Figure(
        name="001-6.5",
        title="More entries a switch while a tree moves",
        x="switches",
        y="entries more, median over switches",
        claim="versioning needs many more entries a switch than customised versioning",
        settings=SETTINGS,
        starts=tuple(Point("001-6.5", "", line) for line in LINES),
        rows=room_rows,
        verdict=customised_needs_less,
        log="x",
        rates=False,
        emulated=True,
    ),
    Figure(
        name="001-6.8",
        title="False positives while a tree moves",
        x="milliseconds from the beginning of the update",
        y="false positive rate at hosts",
        claim="versioning causes no false positives, customised versioning slightly more while the tree moves",
        settings=SETTINGS,
        starts=tuple(Point("001-6.8", f"{size} switches", line, size) for size in SHAPES for line in LINES),
        rows=waste_rows,
        verdict=only_customised_wastes,
        emulated=True,
    ),
)
