"""Events that change while the interests stay: what makes a bad index of a good one (seed 004 §VI, seed 001 §6.2.4).

Two synthetic workloads in one event space: in each of them other attributes vary and other places are popular. Half of
the subscriptions are about what happens in the first, half about what happens in the second, and all of them are there
all the time. First the events of the one happen, then those of the other.

Publishers share the events out among themselves: each has a territory in either workload, a box that contains as many
events as any other's, and advertises both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from plerion.experiments.synthetic import Settings, workload
from plerion.learning.workload import Floats, Ints, Workload

APART: Final = 1_000  # between the seeds of the two workloads
REGIONAL: Final = Settings(attributes=4, variance="random", widths=(0.05, 0.2), spread=0.05, hotspots=16)


@dataclass(frozen=True, eq=False)
class Territory:
    """Who sends an event of a workload, by row, and the box (attributes, 2) that each publisher's events lie in."""

    sender: Ints
    boxes: Floats


@dataclass(frozen=True, eq=False)
class Drift:
    """The same subscriptions under the events of before and of after."""

    before: Workload
    after: Workload

    @classmethod
    def drawn(cls, subscriptions: int, events: int, hosts: int, seed: int) -> Drift:
        """Every host has as many subscriptions as any other, give or take one."""
        settings = replace(REGIONAL, subscriptions=-(-subscriptions // 2), events=events)
        one, other = (workload(replace(settings, seed=seed + more)) for more in (0, APART))
        # In turns, so that each host has some of both.
        bounds = np.stack((one.bounds, other.bounds), axis=1).reshape(-1, *one.bounds.shape[1:])
        bounds = bounds[:subscriptions]
        offsets, owner = np.arange(subscriptions + 1), np.arange(subscriptions) % hosts
        return cls(*(Workload(one.schema, load.points, offsets, bounds, owner) for load in (one, other)))


def shared_out(load: Workload, publishers: int) -> Territory:
    """As many boxes as publishers, found by halving the events again and again along what varies most in a box."""
    space = np.tile((-np.inf, np.inf), (load.points.shape[1], 1))
    parts = [(space, np.arange(len(load.points)))]
    while len(parts) < publishers:
        most = max(range(len(parts)), key=lambda i: len(parts[i][1]))
        parts[most : most + 1] = _halved(load.points, *parts[most])
    sender = np.empty(len(load.points), np.int64)
    for publisher, (_, rows) in enumerate(parts):
        sender[rows] = publisher
    return Territory(sender, np.array([box for box, _ in parts]))


def _halved(points: Floats, box: Floats, rows: Ints) -> list[tuple[Floats, Ints]]:
    here = points[rows]
    attribute = int(np.argmax(here.std(axis=0)))
    middle = float(np.median(here[:, attribute]))
    lower, upper = box.copy(), box.copy()
    lower[attribute, 1] = upper[attribute, 0] = middle
    below = here[:, attribute] < middle
    return [(lower, rows[below]), (upper, rows[~below])]
