"""What an index is made for: events that were seen, and the subscriptions that they meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from plerion.content.read import Interests
from plerion.content.schema import Schema

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """Points (n, attributes) and interests; interest i has the boxes `bounds[offsets[i]:offsets[i + 1]]`.

    `hosts[i]` is the number of interest i's host, counted from 0.
    """

    schema: Schema
    points: Floats
    offsets: Ints
    bounds: Floats
    hosts: Ints

    @classmethod
    def of(cls, schema: Schema, points: Floats, interests: Interests) -> Workload:
        return cls(schema, points, interests.offsets, interests.bounds, host_numbers(interests.hosts))

    @classmethod
    def of_boxes(cls, schema: Schema, points: Floats, boxes: Floats) -> Workload:
        """Each box is a subscription at a host of its own."""
        count = len(boxes)
        return cls(schema, points, np.arange(count + 1), boxes, np.arange(count))

    @property
    def interests(self) -> int:
        return len(self.offsets) - 1

    def with_points(self, points: Floats) -> Workload:
        return replace(self, points=points)

    def halves(self) -> tuple[Workload, Workload]:
        """Events in turn: one half to choose an index by, the other to judge it by."""
        return self.with_points(self.points[::2]), self.with_points(self.points[1::2])


def host_numbers(names: Sequence[str]) -> Ints:
    """Hosts by number, in the order in which they first appear."""
    number = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return np.array([number[name] for name in names], np.int64)
