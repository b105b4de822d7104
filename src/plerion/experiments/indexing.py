"""Seed 004, Figure 11: selective and adaptive indexes against the regular one, by number of subscriptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
from plerion.experiments.synthetic import PRESETS, workload

SUBSCRIPTIONS = (100, 1_000, 4_000, 10_000)
LABELS = {"selective": "SI", "adaptive": "ASI"}


def rows(point: Point, method: str) -> list[Row]:
    """The rates of the regular index, of the method and of ours for one number of subscriptions."""
    count = point.subscriptions(point.at)
    settings = replace(PRESETS[point.panel], subscriptions=count, events=point.events(), seed=point.seed)
    study = Study.of(workload(settings))
    clusters = study.rectangles() if method == "selective" else 1
    labels = {"regular": "RI", method: LABELS[method], "boundary": OURS}
    return [
        Row(point.panel, label, count, study.rate(kind, study.attributes, clusters), point.seed)
        for kind, label in labels.items()
    ]


def verdict(found: Sequence[Row], line: str) -> Verdict:
    gains = savings(curve(found, line), curve(found, "RI"))
    ours = savings(curve(found, OURS), curve(found, "RI"))
    because = (
        f"{line} changes the rate of RI by {percent(-max(gains))} to {percent(-min(gains))}, "
        f"{OURS} by {percent(-max(ours))} to {percent(-min(ours))}"
    )
    return graded((gain >= CLEAR for gain in gains), because)


def _figure(letter: str, distribution: str, method: str) -> Figure:
    label = LABELS[method]
    return Figure(
        name=f"004-11{letter}",
        title=f"{label} against regular indexing, {distribution} data",
        x="subscriptions",
        y="false positive rate",
        claim=f"{label} wastes clearly less than regular indexing for every number of subscriptions",
        settings="8 attributes 0–4095, 23 bits, 100,000 events, covers of up to 128 dz",
        starts=tuple(Point(f"004-11{letter}", distribution, count) for count in reversed(SUBSCRIPTIONS)),
        rows=partial(rows, method=method),
        verdict=partial(verdict, line=label),
        log="x",
    )


FIGURES = (
    _figure("a", "uniform", "selective"),
    _figure("b", "zipf", "selective"),
    _figure("c", "uniform", "adaptive"),
    _figure("d", "zipf", "adaptive"),
)
