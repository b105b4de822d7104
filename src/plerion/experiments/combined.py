"""Seed 004, Figures 14(a) and (b): selections of attributes together with an index that learns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from plerion.experiments import datasets
from plerion.experiments.dimension import least
from plerion.experiments.figure import (
    CLEAR,
    OURS,
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
from plerion.experiments.study import RECTANGLES, Study, of_size
from plerion.experiments.synthetic import PRESETS

SUBSCRIPTIONS, EVENTS = 1_000, 20_000
PLAIN: Final = "RI, all attributes"
COMBINATIONS: Final = {
    "CS": ("cs", "regular"),
    "GS": ("greedy", "regular"),
    "CS+ASI": ("cs", "adaptive"),
    "GS+ASI": ("greedy", "adaptive"),
    "EVS+SI": ("evs", "selective"),
    "CS+SI": ("cs", "selective"),
    "GS+SI": ("greedy", "selective"),
}
LEVELS: Final = {OURS: "boundary", PLAIN: "regular"}
SOURCES: Final = (
    datasets.STOCKS,
    datasets.ROOM_CLIMATE,
    datasets.BEIJING_AIR,
    datasets.QUAKES,
    datasets.FLIGHTS,
)
SYNTHETIC, REAL = ("CS", "GS", "CS+ASI", "GS+ASI"), ("EVS+SI", "CS+SI", "GS+SI")


def synthetic_rows(point: Point) -> list[Row]:
    return _line(Study.drawn(PRESETS["random-selectivity"], point, SUBSCRIPTIONS, EVENTS), point)


def real_rows(point: Point) -> list[Row]:
    settings = datasets.Settings(
        subscriptions=point.subscriptions(SUBSCRIPTIONS), events=point.events(), seed=point.seed
    )
    return _line(Study(datasets.DATASETS[point.panel](Path(point.directory), settings)), point)


def _line(study: Study, point: Point) -> list[Row]:
    """The rate for each number of attributes; the same for all where none are selected."""
    sizes = range(1, len(study.attributes) + 1)
    if point.line in LEVELS:
        rates = dict.fromkeys(sizes, study.rate(LEVELS[point.line], study.attributes))
    else:
        name, method = COMBINATIONS[point.line]
        clusters = study.rectangles() if method == "selective" else RECTANGLES
        found = study.selection(name, method, clusters)
        rates = {n: study.rate(method, of_size(found, n), clusters) for n in sizes}
    return [Row(point.panel, point.line, n, rate, point.seed) for n, rate in rates.items()]


def combinations_win(found: Sequence[Row]) -> Verdict:
    """Each combination against the same selection alone, both at their best."""
    bests = {line: least(curve(found, line))[0] for line in (*SYNTHETIC, OURS)}
    plain = curve(found, "CS")[max(row.x for row in found)]
    gains = [saved(bests[f"{name}+ASI"], bests[name]) for name in ("CS", "GS")]
    told = ", ".join(f"{line} {percent(rate)}" for line, rate in bests.items())
    return graded((gain >= CLEAR for gain in gains), f"RI {percent(plain)}; least rates: {told}")


def real_gains(found: Sequence[Row]) -> Verdict:
    """On stocks all three combinations save a third or more, and are alike; other data are told, not judged."""
    stocks = _saved_on(found, "stocks")
    theirs = [stocks[line] for line in REAL]
    told = "; ".join(
        f"{panel} " + ", ".join(f"{line} −{percent(gain)}" for line, gain in _saved_on(found, panel).items())
        for panel in sorted(panels(found), key=lambda panel: panel != "stocks")
    )
    parts = (min(theirs) >= 1 / 3, max(theirs) - min(theirs) < 0.1)
    return graded(parts, f"saved of the rate of RI: {told}".replace("−-", "+"))


def _saved_on(found: Sequence[Row], panel: str) -> dict[str, float]:
    """What each line saves of the rate of a regular index on all attributes, at its best."""
    plain = least(curve(found, PLAIN, panel))[0]
    return {line: saved(least(curve(found, line, panel))[0], plain) for line in (*REAL, OURS)}


FIGURES = (
    Figure(
        name="004-14a",
        title="CS and GS, alone and with ASI",
        x="selected attributes",
        y="false positive rate",
        claim="a selection with ASI wastes much less than the selection alone (80 % to 3.33 % for GS+ASI)",
        settings="zipf data of random selectivity, 23 bits, 1,000 subscriptions, 20,000 events, covers of up to 128 dz",
        starts=tuple(Point("004-14a", "zipf", line) for line in (*reversed(SYNTHETIC), OURS)),
        rows=synthetic_rows,
        verdict=combinations_win,
        reversed_x=True,
    ),
    Figure(
        name="004-14b",
        title="EVS, CS and GS with SI on real data",
        x="selected attributes",
        y="false positive rate",
        claim="on stock quotes EVS, CS and GS with SI save about half of the rate, and are alike",
        settings="real events, up to 100,000, 1,000 drawn subscriptions, 23 bits, covers of up to 128 dz",
        starts=tuple(
            Point("004-14b", panel, line)
            for panel in datasets.DATASETS
            for line in (*reversed(REAL), OURS, PLAIN)
        ),
        rows=real_rows,
        verdict=real_gains,
        reversed_x=True,
        files=tuple(file for source in SOURCES for file in source.files),
    ),
)
