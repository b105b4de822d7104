"""What every matcher answers: which interests match which events, exactly."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Matcher(Protocol):
    """Exact matching of many interests, each a union of disjoint half-open boxes."""

    def matches(self, points: Floats) -> Flags:
        """(events, interests): whether the interest matches the event."""
        ...
