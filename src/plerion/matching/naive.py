"""Matching by the definition: every event against every box. The oracle for the fast ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plerion.matching.matcher import Flags, Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class NaiveMatcher:
    """Interest i is the union of `bounds[offsets[i]:offsets[i + 1]]`, boxes of (attributes, [low, high))."""

    offsets: Ints
    bounds: Floats

    def matches(self, points: Floats) -> Flags:
        found = np.zeros((len(points), len(self.offsets) - 1), np.bool_)
        for i, (first, last) in enumerate(zip(self.offsets[:-1], self.offsets[1:], strict=True)):
            for box in self.bounds[first:last]:
                found[:, i] |= ((points >= box[:, 0]) & (points < box[:, 1])).all(axis=1)
        return found
