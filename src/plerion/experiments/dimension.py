"""Seed 004, Figure 12: what is wasted when bits are spent on fewer attributes, by how these are selected.

All selections drive a regular index. A boundary index on all attributes, which needs no selection, is drawn
beside them as a level line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from plerion.experiments.figure import (
    CLEAR,
    OURS,
    Curve,
    Figure,
    Point,
    Row,
    Verdict,
    curve,
    graded,
    percent,
    saved,
    savings,
)
from plerion.experiments.study import Study, of_size
from plerion.experiments.synthetic import PRESETS, Settings

SUBSCRIPTIONS, EVENTS = 1_000, 20_000
DRAWS = 5  # random combinations of each size
SELECTIONS: Final = {"EVS": "evs", "EMCS": "emcs", "CS": "cs", "GS": "greedy", "brute force": "brute"}
RANDOM: Final = "random"

WORKLOADS: Final[Mapping[str, Settings]] = {
    "random variance": PRESETS["zipf-random-variance"],
    "uniform variance": PRESETS["zipf-uniform-variance"],
    "high correlation": PRESETS["high-correlation"],
    "low correlation": PRESETS["low-correlation"],
    # Attributes that differ, or all selections of one size would be equal.
    "uniform data": replace(PRESETS["uniform"], selectivity="random", widths=(0.3, 1.0)),
    "zipf data": replace(PRESETS["zipf"], selectivity="random", widths=(0.05, 0.8)),
}


def rows(point: Point) -> list[Row]:
    """One line: the rate for each number of attributes."""
    study = Study.drawn(WORKLOADS[point.panel], point, SUBSCRIPTIONS, EVENTS)
    rate = _rates(study, point)
    return [Row(point.panel, point.line, n, rate(n), point.seed) for n in range(1, len(study.attributes) + 1)]


def _rates(study: Study, point: Point) -> Callable[[int], float]:
    if point.line == OURS:
        level = study.rate("boundary", study.attributes)
        return lambda _: level
    if point.line == RANDOM:
        random = np.random.default_rng((point.seed, 12))
        return lambda n: _random_rate(study, n, random)
    found = study.selection(SELECTIONS[point.line])
    return lambda n: study.rate("regular", of_size(found, n))


def _random_rate(study: Study, wanted: int, random: np.random.Generator) -> float:
    """The mean over some combinations of this size."""
    draws = DRAWS if wanted < len(study.attributes) else 1
    chosen = [sorted(random.choice(study.attributes, wanted, replace=False).tolist()) for _ in range(draws)]
    return float(np.mean([study.rate("regular", some) for some in chosen]))


def least(line: Curve) -> tuple[float, float]:
    """(the least rate, the number of attributes that gives it)."""
    return min((rate, n) for n, rate in line.items())


def _told(found: Sequence[Row], names: Sequence[str]) -> str:
    bests = ((name, *least(curve(found, name))) for name in names)
    told = ", ".join(f"{name} {percent(rate)} with {n:.0f}" for name, rate, n in bests)
    every = max(row.x for row in found)
    all_of_them = curve(found, names[0])[every]
    ours = curve(found, OURS)[every]
    return f"least rates: {told}; all {every:.0f} attributes {percent(all_of_them)}; {OURS} {percent(ours)}"


def evs_beats_random(found: Sequence[Row]) -> Verdict:
    line, chance = curve(found, "EVS"), curve(found, RANDOM)
    rate, n = least(line)
    dips = 1 < n < max(line) and saved(rate, line[max(line)]) >= CLEAR
    better = np.mean([gain >= CLEAR for gain in savings(line, chance)[:-1]]) >= 0.8
    return graded((dips, bool(better)), _told(found, ("EVS", RANDOM)))


def emcs_beats_evs(found: Sequence[Row]) -> Verdict:
    line, other, chance = (curve(found, name) for name in ("EMCS", "EVS", RANDOM))
    fewer = savings(line, other)[:-1]
    alike = abs(float(np.mean(savings(other, chance)[:-1]))) < 0.1
    parts = (float(np.mean(fewer)) >= CLEAR and saved(least(line)[0], least(other)[0]) >= CLEAR, alike)
    return graded(parts, _told(found, ("EMCS", "EVS", RANDOM)))


def cs_beats_emcs(found: Sequence[Row]) -> Verdict:
    gains = savings(curve(found, "CS"), curve(found, "EMCS"))[:-1]
    at_best = saved(least(curve(found, "CS"))[0], least(curve(found, "EMCS"))[0])
    parts = (at_best >= CLEAR, float(np.mean(gains)) >= CLEAR)
    return graded(parts, _told(found, ("CS", "EMCS")))


def cs_is_no_worse(found: Sequence[Row]) -> Verdict:
    gains = savings(curve(found, "CS"), curve(found, "EMCS"))
    return graded((min(gains) >= -0.05, abs(float(np.mean(gains))) < 0.05), _told(found, ("CS", "EMCS")))


def greedy_beats_cs(found: Sequence[Row]) -> Verdict:
    gains = savings(curve(found, "GS"), curve(found, "CS"))[:-1]
    at_best = saved(least(curve(found, "GS"))[0], least(curve(found, "CS"))[0])
    return graded((min(gains) >= -CLEAR, at_best >= CLEAR), _told(found, ("GS", "CS")))


def greedy_is_ideal(found: Sequence[Row]) -> Verdict:
    gains = savings(curve(found, "GS"), curve(found, "brute force"))
    at_best = saved(least(curve(found, "GS"))[0], least(curve(found, "brute force"))[0])
    return graded((at_best >= -CLEAR, min(gains) >= -0.05), _told(found, ("GS", "brute force")))


def _figure(
    letter: str,
    panel: str,
    names: tuple[str, ...],
    claim: str,
    verdict: Callable[[Sequence[Row]], Verdict],
) -> Figure:
    name = f"004-12{letter}"
    return Figure(
        name=name,
        title=f"{', '.join(names[:-1])} and {names[-1]} selection, {panel}",
        x="selected attributes",
        y="false positive rate",
        claim=claim,
        settings="8 attributes 0–4095, 23 bits, 1,000 subscriptions, 20,000 events, covers of up to 128 dz",
        starts=tuple(Point(name, panel, line) for line in (*reversed(names), OURS)),
        rows=rows,
        verdict=verdict,
        reversed_x=True,
    )


FIGURES = (
    _figure(
        "a",
        "random variance",
        ("EVS", RANDOM),
        "leaving attributes out helps up to a point, and EVS chooses them better than chance",
        evs_beats_random,
    ),
    _figure(
        "b",
        "uniform variance",
        ("EVS", "EMCS", RANDOM),
        "where events vary alike EVS is no better than chance, and EMCS is clearly better than EVS",
        emcs_beats_evs,
    ),
    _figure(
        "c",
        "high correlation",
        ("EMCS", "CS"),
        "where attributes repeat each other CS is clearly better than EMCS",
        cs_beats_emcs,
    ),
    _figure(
        "d",
        "low correlation",
        ("EMCS", "CS"),
        "where attributes hardly follow each other CS and EMCS are alike, and CS is not worse",
        cs_is_no_worse,
    ),
    _figure(
        "e", "high correlation", ("CS", "GS"), "GS is better than CS even where CS is best", greedy_beats_cs
    ),
    _figure("f", "uniform data", ("GS", "brute force"), "GS nearly reaches brute force", greedy_is_ideal),
    _figure("g", "zipf data", ("GS", "brute force"), "GS nearly reaches brute force", greedy_is_ideal),
)
