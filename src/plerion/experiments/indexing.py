"""Seed 004, Figure 11: selective and adaptive indexes against the regular one, by number of subscriptions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from plerion.experiments.figure import (
    CLEAR,
    OURS,
    Figure,
    Point,
    Row,
    Verdict,
    curve,
    graded,
    percent,
    savings,
)
from plerion.experiments.study import Study
from plerion.experiments.synthetic import PRESETS

SUBSCRIPTIONS = (100, 1_000, 4_000, 10_000)
METHODS = {"RI": "regular", "SI": "selective", "ASI": "adaptive", OURS: "boundary"}


def rows(point: Point) -> list[Row]:
    """The rate of one kind of index for one number of subscriptions."""
    study = Study.drawn(PRESETS[point.panel], point, point.at)
    method = METHODS[point.line]
    clusters = study.rectangles() if method == "selective" else 1
    rate = study.rate(method, study.attributes, clusters)
    return [Row(point.panel, point.line, study.workload.interests, rate, point.seed)]


def verdict(found: Sequence[Row], line: str) -> Verdict:
    gains = savings(curve(found, line), curve(found, "RI"))
    ours = savings(curve(found, OURS), curve(found, "RI"))
    because = (
        f"{line} changes the rate of RI by {percent(-max(gains))} to {percent(-min(gains))}, "
        f"{OURS} by {percent(-max(ours))} to {percent(-min(ours))}"
    )
    return graded((gain >= CLEAR for gain in gains), because)


def _figure(letter: str, distribution: str, label: str) -> Figure:
    name = f"004-11{letter}"
    return Figure(
        name=name,
        title=f"{label} against regular indexing (RI), {distribution} data",
        x="subscriptions",
        y="false positive rate",
        claim=f"{label} wastes clearly less than regular indexing for every number of subscriptions",
        settings="8 attributes 0–4095, 23 bits, 100,000 events, covers of up to 128 dz",
        starts=tuple(
            Point(name, distribution, line, count)
            for count in reversed(SUBSCRIPTIONS)
            for line in (OURS, label, "RI")
        ),
        rows=rows,
        verdict=partial(verdict, line=label),
        log="x",
    )


FIGURES = (
    _figure("a", "uniform", "SI"),
    _figure("b", "zipf", "SI"),
    _figure("c", "uniform", "ASI"),
    _figure("d", "zipf", "ASI"),
)
