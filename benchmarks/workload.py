"""The papers' workload: interests and events around hotspots of Zipf popularity (seed 000 §6.1, seed 004 §VI)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plerion.content.schema import Number, Schema

ATTRIBUTES, HIGH, HOTSPOTS = 8, 4095, 8
SPREAD = 300.0  # standard deviation of centres around their hotspot

Floats = npt.NDArray[np.float64]


def schema() -> Schema:
    return Schema(tuple(Number(f"a{i}", 0, HIGH, integer=True) for i in range(ATTRIBUTES)))


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """Boxes (n, attributes, 2) with the hotspot that each belongs to, and events."""

    boxes: Floats
    hotspot: npt.NDArray[np.int64]
    events: Floats


def zipf(interests: int, events: int, seed: int, widths: tuple[float, float] = (0.002, 0.1)) -> Workload:
    """Each interest spans between the given shares of the range on every attribute."""
    random = np.random.default_rng(seed)
    centres = random.integers(0, HIGH + 1, (HOTSPOTS, ATTRIBUTES))
    popularity = 1 / np.arange(1, HOTSPOTS + 1)
    popularity /= popularity.sum()
    hotspot = random.choice(HOTSPOTS, interests, p=popularity)
    middle = random.normal(centres[hotspot], SPREAD)
    half = random.uniform(*widths, (interests, ATTRIBUTES)) * (HIGH + 1) / 2
    low = np.floor(np.clip(middle - half, 0, HIGH))
    high = np.floor(np.clip(middle + half, 0, HIGH)) + 1
    points = random.normal(centres[random.choice(HOTSPOTS, events, p=popularity)], SPREAD)
    return Workload(np.stack((low, high), axis=-1), hotspot, np.floor(np.clip(points, 0, HIGH)))
