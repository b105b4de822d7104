"""The claims of attribute selection, measured: a row each, with the bound that it must reach.

100,000 events, 10,000 subscriptions, 8 attributes; what is made once a workload (projections) is in the time.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from benchmarks.core import Row, best, row
from benchmarks.workload import Floats, schema, zipf
from plerion.index.propose import regular
from plerion.learning.judge import Judge
from plerion.learning.projection import Projections
from plerion.learning.selection import Selection, cs, emcs, evs, greedy
from plerion.learning.similarity import similarity
from plerion.learning.summaries import attribute_moments, match_totals
from plerion.learning.workload import Workload

EVENTS, SUBSCRIPTIONS = 100_000, 10_000
BITS, BUDGET = 23, 32
PART = 20  # the definitions are given one event in so many


def workload(scale: float) -> Workload:
    load = zipf(max(50, int(SUBSCRIPTIONS * scale)), max(200, int(EVENTS * scale)), seed=7)
    return Workload.of_boxes(schema(), load.events, load.boxes)


def by_variance(load: Workload) -> Selection:
    return evs(attribute_moments(load.points))


def by_matches(load: Workload) -> Selection:
    projections = Projections.of(load.offsets, load.bounds)
    return emcs(match_totals(projections, load.points), len(load.points), load.interests)


def by_correlation(load: Workload) -> Selection:
    projections = Projections.of(load.offsets, load.bounds)
    return cs(similarity(projections, load.points), len(load.points), load.interests)


def defined_matches(points: Floats, boxes: Floats) -> list[int]:
    """Algorithm 2 in NumPy: for each attribute and event the subscriptions, all at once."""
    low, high = np.ascontiguousarray(boxes[:, :, 0].T), np.ascontiguousarray(boxes[:, :, 1].T)
    return [
        sum(int(np.count_nonzero((low[d] <= x) & (x < high[d]))) for x in points[:, d])
        for d in range(points.shape[1])
    ]


def defined_similarity(points: Floats, boxes: Floats) -> list[list[int]]:
    """Algorithm 3 in NumPy: the sets S_e^d of each event once, then every pair of attributes."""
    low, high = np.ascontiguousarray(boxes[:, :, 0].T), np.ascontiguousarray(boxes[:, :, 1].T)
    width = points.shape[1]
    found = [[0] * width for _ in range(width)]
    for point in points[:, :, np.newaxis]:
        inside = (low <= point) & (point < high)
        for i in range(width):
            for j in range(i, width):
                found[i][j] += int(np.count_nonzero(inside[i] & inside[j]))
                found[j][i] = found[i][j]
    return found


def selecting(scale: float) -> list[Row]:
    """Seconds a selection takes, and how many times as long the definitions take.

    The definitions run on a twentieth of the events and count twenty times: every event takes them as long.
    """
    load = workload(scale)
    part = load.with_points(load.points[::PART])
    methods = {"EVS": (by_variance, 0.05), "EMCS": (by_matches, 0.2), "CS": (by_correlation, 2)}
    definitions = {"EMCS": defined_matches, "CS": defined_similarity}
    rows, took = [], {}
    for name, (method, bound) in methods.items():
        method(part)
        took[name] = best(partial(method, load))
        rows.append(row(f"{name}, 100,000 × 10,000 × 8", took[name], bound, "s", at_most=True))
    for name, definition in definitions.items():
        defined = best(partial(definition, part.points, part.bounds), 1) * len(load.points) / len(part.points)
        rows.append(row(f"… its definition in NumPy / {name}", defined / took[name], 50, "×"))
    return rows


def greedily(scale: float) -> list[Row]:
    """Algorithm 4 with exact rates: 36 indexes are made, encoded, covered and counted, two at a time."""
    load = workload(scale)

    def run() -> Selection:
        judge = Judge.of(load, BUDGET)

        def rate(attributes: tuple[int, ...]) -> float:
            return judge.rate(regular(load.schema, BITS, attributes))

        with ThreadPoolExecutor(2) as pool:
            return greedy(len(load.schema.attributes), rate, pool.map)

    Judge.of(load.with_points(load.points[:10]), BUDGET).rate(regular(load.schema, BITS))
    return [row("greedy, 100,000 × 10,000 × 8, two cores", best(run, 1), 15, "s", at_most=True)]


MEASUREMENTS: dict[str, Callable[[float], list[Row]]] = {
    "attribute selection": selecting,
    "greedy selection": greedily,
}
