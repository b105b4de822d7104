"""Seed 004, Figure 13: how long a selection of four of eight attributes takes.

Each selection is timed with the sums over events that it needs. The kernels are compiled before the clock starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from time import perf_counter
from typing import Final

from plerion.experiments.figure import BITS, EVENTS, Figure, Point, Row, Verdict, curve, graded
from plerion.experiments.study import Study, of_size
from plerion.experiments.synthetic import PRESETS
from plerion.index.cover import DEFAULT_BUDGET
from plerion.index.propose import regular
from plerion.learning.judge import Judge
from plerion.learning.projection import Projections
from plerion.learning.selection import Selection, cs, emcs, evs, greedy
from plerion.learning.similarity import similarity
from plerion.learning.summaries import attribute_moments, match_totals
from plerion.learning.workload import Workload

SUBSCRIPTIONS = 1_000
WANTED = 4
REPEATS = 3  # of what takes less than a second; the least counts


def _evs(load: Workload) -> Selection:
    return evs(attribute_moments(load.points))


def _emcs(load: Workload) -> Selection:
    asked = Projections.of(load.offsets, load.bounds)
    return emcs(match_totals(asked, load.points), len(load.points), load.interests)


def _cs(load: Workload) -> Selection:
    asked = Projections.of(load.offsets, load.bounds)
    return cs(similarity(asked, load.points), len(load.points), load.interests)


def _greedy(load: Workload) -> Selection:
    judge = Judge.of(load, DEFAULT_BUDGET)
    return greedy(len(load.schema.attributes), lambda some: judge.rate(regular(load.schema, BITS, some)))


SELECTIONS: Final[dict[str, Callable[[Workload], Selection]]] = {
    "EVS": _evs,
    "EMCS": _emcs,
    "CS": _cs,
    "GS": _greedy,
}


def rows(point: Point) -> list[Row]:
    """The seconds of all four at one number of events or of subscriptions."""
    asked, seen = (SUBSCRIPTIONS, point.at) if point.panel == "events" else (point.at, EVENTS)
    load = Study.drawn(PRESETS["zipf"], point, asked, seen).workload
    tiny = load.with_points(load.points[:50])
    x = len(load.points) if point.panel == "events" else load.interests
    found = []
    for line, select in SELECTIONS.items():
        select(tiny)
        found.append(Row(point.panel, line, x, seconds(select, load), point.seed))
    return found


def seconds(select: Callable[[Workload], Selection], load: Workload) -> float:
    taken: list[float] = []
    while len(taken) < REPEATS and sum(taken) < 1:
        began = perf_counter()
        of_size(select(load), WANTED)
        taken.append(perf_counter() - began)
    return min(taken)


def verdict(found: Sequence[Row]) -> Verdict:
    """The order of the paper, from neighbour to neighbour, where there is most to do."""
    most = max(row.x for row in found)
    taken = {line: curve(found, line)[most] for line in SELECTIONS}
    told = ", ".join(f"{line} {value:.2g} s" for line, value in taken.items())
    return graded((a < b for a, b in pairwise(taken.values())), f"at {most:,.0f} {found[0].panel}: {told}")


def _figure(letter: str, panel: str, fixed: str, along: tuple[int, ...]) -> Figure:
    name = f"004-13{letter}"
    return Figure(
        name=name,
        title=f"Time to select 4 of 8 attributes, by {panel}",
        x=panel,
        y="seconds",
        claim="EVS is quickest, then EMCS, then CS, and GS takes longest",
        settings=f"zipf data, 8 attributes 0–4095, {fixed}; GS with covers of up to 128 dz",
        starts=tuple(Point(name, panel, at=at) for at in along),
        rows=rows,
        verdict=verdict,
        log="xy",
        together=False,
    )


FIGURES = (
    _figure("a", "events", "1,000 subscriptions", (1_000, 10_000, 30_000, 100_000)),
    _figure("b", "subscriptions", "100,000 events", (100, 1_000, 3_000, 10_000)),
)
