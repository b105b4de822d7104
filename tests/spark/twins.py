"""Small workloads, and what every step gives, written as loops over events and subscriptions from the definitions."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from plerion.content.schema import MISSING, Enumeration, Number, Schema
from plerion.index.content_index import ContentIndex
from plerion.index.cover import cover
from plerion.index.cuts import Cuts
from plerion.learning.workload import Workload

Floats = npt.NDArray[np.float64]
Point = list[float]

SCHEMA = Schema(
    (
        Number("x", 0, 15, integer=True),
        Number("share of `it`", -1.0, 1.0),
        Number("price.eur", 1, 1000, scale="log"),
        Enumeration("city", ("oslo", "rome", "bonn", "lima")),
    )
)
HOSTS = 3


def workload(events: int, interests: int, seed: int, alike: bool = False, flat: bool = False) -> Workload:
    """Interests of one or two disjoint boxes; `alike`: all the same; `flat`: every third has no width on x."""
    random = np.random.default_rng(seed)
    starts, ends = np.array(SCHEMA.starts), np.array(SCHEMA.ends)
    points = random.uniform(starts, ends, (events, len(starts)))
    points[:, [0, 3]] = np.floor(points[:, [0, 3]])
    points[random.random(points.shape) < 0.15] = MISSING
    parts = [_boxes(random, starts, ends) for _ in range(interests)]
    if alike:
        parts = parts[:1] * interests
    if flat:
        for part in parts[::3]:
            part[:, 0, 1] = part[:, 0, 0]
    offsets = np.cumsum([0, *map(len, parts)]).astype(np.int64)
    bounds = np.concatenate([np.empty((0, len(starts), 2)), *parts])
    return Workload(SCHEMA, points, offsets, bounds, np.arange(interests) % HOSTS)


def _boxes(random: np.random.Generator, starts: Floats, ends: Floats) -> Floats:
    sides = np.sort(random.uniform(starts, ends, (2, len(starts))), axis=0).T
    sides[[0, 3]] = np.floor(sides[[0, 3]]) + np.array([0.0, 1.0])
    box = np.ascontiguousarray(sides)
    for a in np.flatnonzero(random.random(len(starts)) < 0.4):
        box[a] = (-inf, inf) if random.random() < 0.7 else (starts[a], ends[a])
    if random.random() < 0.5:
        return box[None]
    low, high = box.copy(), box.copy()
    low[0], high[0] = (0.0, 4.0), (4.0 + float(random.integers(0, 4)), 12.0)
    return np.stack((low, high))


WORKLOADS = {
    "many": workload(90, 14, 1),
    "no events": workload(0, 5, 2),
    "one event": workload(1, 5, 3),
    "one subscription": workload(40, 1, 4),
    "identical subscriptions": workload(40, 6, 5, alike=True),
    "boxes without width": workload(40, 7, 6, flat=True),
    "no subscriptions": workload(10, 0, 7),
}


def frame(spark: SparkSession, points: Floats) -> DataFrame:
    cells = {
        name: pa.array(points[:, a], mask=points[:, a] == MISSING) for a, name in enumerate(SCHEMA.names)
    }
    return spark.createDataFrame(pa.table(cells))


def rows(load: Workload) -> list[Point]:
    return [list(map(float, point)) for point in load.points]


def asked(load: Workload) -> Iterator[list[list[list[float]]]]:
    """The boxes of each interest that are not empty."""
    for first, last in zip(load.offsets[:-1], load.offsets[1:], strict=True):
        boxes = load.bounds[first:last].tolist()
        yield [box for box in boxes if all(low < high for low, high in box)]


def wants(boxes: list[list[list[float]]], event: Point) -> bool:
    return any(
        all(low <= position < high for position, (low, high) in zip(event, box, strict=True)) for box in boxes
    )


def projected(boxes: list[list[list[float]]], attribute: int, position: float) -> bool:
    """Whether the position lies in the projection of the boxes."""
    return any(box[attribute][0] <= position < box[attribute][1] for box in boxes)


def matches(load: Workload) -> list[int]:
    return [sum(wants(boxes, event) for boxes in asked(load)) for event in rows(load)]


def statistics(load: Workload) -> list[dict[str, float]]:
    found = []
    for a in range(len(SCHEMA.names)):
        values = [event[a] for event in rows(load) if event[a] != MISSING]
        mean = sum(values) / len(values) if values else 0.0
        found.append(
            {
                "values": len(values),
                "missing": len(load.points) - len(values),
                "mean": mean,
                "squares": sum((value - mean) ** 2 for value in values),
                "least": min(values, default=inf),
                "greatest": max(values, default=-inf),
            }
        )
    return found


def w_matrix(load: Workload) -> list[list[int]]:
    """W, one row an attribute: how many projections each event lies in."""
    return [
        [sum(projected(boxes, a, event[a]) for boxes in asked(load)) for event in rows(load)]
        for a in range(len(SCHEMA.names))
    ]


def similarity(load: Workload) -> list[list[int]]:
    width = range(len(SCHEMA.names))
    return [
        [
            sum(
                projected(boxes, i, event[i]) and projected(boxes, j, event[j])
                for event in rows(load)
                for boxes in asked(load)
            )
            for j in width
        ]
        for i in width
    ]


def interval_counts(load: Workload) -> list[dict[int, int]]:
    """By attribute: how many events have how many distinct ends of projections at or below them."""
    found = []
    for a in range(len(SCHEMA.names)):
        ends = {end for boxes in asked(load) for pair in _united([box[a] for box in boxes]) for end in pair}
        counts: dict[int, int] = {}
        for event in rows(load):
            rank = sum(end <= event[a] for end in ends)
            counts[rank] = counts.get(rank, 0) + 1
        found.append(counts)
    return found


def _united(intervals: list[list[float]]) -> list[list[float]]:
    merged: list[list[float]] = []
    for low, high in sorted(intervals):
        if merged and low <= merged[-1][1]:
            merged[-1][1] = max(high, merged[-1][1])
        else:
            merged.append([low, high])
    return merged


def workload_histogram(load: Workload, axes: tuple[Cuts, ...]) -> list[dict[int, int]]:
    found = []
    for a, cuts in enumerate(axes):
        bins: dict[int, int] = {}
        for event, count in zip(rows(load), matches(load), strict=True):
            if count:
                bins[cuts.cell(event[a])] = bins.get(cuts.cell(event[a]), 0) + count
        found.append(bins)
    return found


Counts = dict[tuple[str, int], tuple[int, int, int]]
"""(what, number) -> deliveries, wanted, hits; only what is not all 0."""


def evaluation(
    load: Workload, index: ContentIndex, budget: int, lost: frozenset[int] = frozenset()
) -> Counts:
    """Pair by pair; the interests in `lost` have no cover, so all that they want is a false negative."""
    found: dict[tuple[str, int], list[int]] = {}
    for event in rows(load):
        codes = index.codes(event)
        at: dict[int, list[bool]] = {}
        for i, boxes in enumerate(asked(load)):
            cells = cover(index, np.array(boxes).reshape(-1, len(event), 2), budget)
            delivered = i not in lost and any(cells.covers(code) for code in codes)
            wanted = wants(boxes, event)
            _add(found, ("interest", i), delivered, wanted)
            host = at.setdefault(int(load.hosts[i]), [False, False])
            at[int(load.hosts[i])] = [host[0] or delivered, host[1] or wanted]
            for a, position in enumerate(event):
                missed = delivered and not projected(boxes, a, position)
                _add(found, ("attribute", a), missed, False)
        for number, (delivered, wanted) in at.items():
            _add(found, ("host", number), delivered, wanted)
    return {name: (a, b, c) for name, (a, b, c) in found.items() if a or b or c}


def _add(
    found: dict[tuple[str, int], list[int]], name: tuple[str, int], delivered: bool, wanted: bool
) -> None:
    counts = found.setdefault(name, [0, 0, 0])
    counts[0] += delivered
    counts[1] += wanted
    counts[2] += delivered and wanted
