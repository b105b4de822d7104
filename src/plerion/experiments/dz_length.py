"""Seed 000, Figures 7(d) and (e): false positives by the length of dz, and by the attributes that PCA selects.

In 7(d) a false positive is an event that reaches an *end host* where nobody asked for it, so a host with many
subscriptions hardly has any: seed 000 counts that way, and its claim on the number of subscriptions rests on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from plerion.experiments.dimension import least
from plerion.experiments.figure import (
    BITS,
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
from plerion.experiments.study import Study, of_size
from plerion.experiments.synthetic import PRESETS, Settings
from plerion.index.content_index import ContentIndex
from plerion.index.cover import covers
from plerion.index.encode import encode
from plerion.learning.workload import Workload
from plerion.matching.bitset import BitsetMatcher
from plerion.matching.evaluate import evaluate

LENGTHS = (4, 8, 12, 16, 20, BITS)
SUBSCRIPTIONS = (100, 1_000, 4_000)
EVENTS = 10_000
HOSTS = 8
KINDS = 3


def _settings(preset: str) -> Settings:
    """As the preset, in the event space of seed 000 §6.1."""
    return replace(PRESETS[preset], attributes=7, high=1023, hotspots=7, hosts=HOSTS)


def length_rows(point: Point) -> list[Row]:
    """One number of subscriptions: the rate at hosts for each length."""
    study = Study.drawn(_settings(point.panel), point, point.at, EVENTS)
    ours = point.line == OURS
    line = f"{study.workload.interests:,} subscriptions" + (f", {OURS}" if ours else "")
    found = []
    for length in LENGTHS:
        index = replace(study, bits=length).index("boundary" if ours else "regular", study.attributes)
        found.append(
            Row(point.panel, line, length, host_rate(study.halves[1], index, study.budget), point.seed)
        )
    return found


def host_rate(load: Workload, index: ContentIndex, budget: int) -> float:
    """The share of (event, host) deliveries that nobody at the host asked for."""
    matcher = BitsetMatcher.of(load.offsets, load.bounds)
    found = covers(index, load.offsets, load.bounds, budget)
    outcome = evaluate(load.points, encode(index, load.points), matcher, found, load.hosts)
    return outcome.host_false_positive_rate


def longer_is_better(found: Sequence[Row]) -> Verdict:
    """From each length to the next the rate falls or stays, and more subscriptions mean a lower rate."""
    parts, told = [], []
    for panel in panels(found):
        here = [row for row in found if row.panel == panel]
        names = sorted({row.line for row in here if OURS not in row.line}, key=_number)
        drawn = [list(curve(here, name).values()) for name in names]
        parts.append(all(line[-1] <= line[0] * (1 - CLEAR) for line in drawn))
        parts.append(all(many[-1] <= few[-1] for few, many in pairwise(drawn)))
        ends = (
            f"{name} {percent(line[0])} to {percent(line[-1])}"
            for name, line in zip(names, drawn, strict=True)
        )
        told.append(f"{panel}: {', '.join(ends)}")
    return graded(parts, f"from {LENGTHS[0]} to {LENGTHS[-1]} bits, {'; '.join(told)}")


def _number(line: str) -> int:
    return int(line.split(maxsplit=1)[0].replace(",", ""))


def selected_rows(point: Point) -> list[Row]:
    """One kind of restricted variance: the rate for each number of attributes from the top of PCA's ranking."""
    settings = replace(_settings("zipf-random-variance"), seed=100 * point.at)
    study = Study.drawn(settings, point, SUBSCRIPTIONS[1], EVENTS)
    sizes = range(1, len(study.attributes) + 1)
    if point.line == OURS:
        rates = dict.fromkeys(sizes, study.rate("boundary", study.attributes))
    else:
        found = study.selection("pca")
        rates = {n: study.rate("regular", of_size(found, n)) for n in sizes}
    return [Row(point.panel, point.line, n, rate, point.seed) for n, rate in rates.items()]


def fewer_is_better(found: Sequence[Row]) -> Verdict:
    """On each kind some number of attributes below all is clearly better than all."""
    parts, told = [], []
    for panel in panels(found):
        line, ours = curve(found, "PCA", panel), curve(found, OURS, panel)
        (rate, n), every = least(line), line[max(line)]
        parts.append(saved(rate, every) >= CLEAR)
        level = ours[max(ours)]
        told.append(f"{panel} {percent(every)} to {percent(rate)} with {n:.0f}, {OURS} {percent(level)}")
    return graded(parts, "; ".join(told))


FIGURES = (
    Figure(
        name="000-7d",
        title="False positives at hosts by the length of dz",
        x="length of dz (bits)",
        y="false positive rate at hosts",
        claim="longer dz waste less, and with more subscriptions less is wasted",
        settings="regular index, 7 attributes 0–1023, 8 hosts, 7 hotspots, 10,000 events, covers of up to 128 dz",
        starts=tuple(
            Point("000-7d", panel, line, at)
            for panel in ("uniform", "zipf")
            for line, at in ((OURS, SUBSCRIPTIONS[1]), *(("RI", count) for count in SUBSCRIPTIONS))
        ),
        rows=length_rows,
        verdict=longer_is_better,
    ),
    Figure(
        name="000-7e",
        title="Attributes selected by PCA, three zipf workloads",
        x="selected attributes",
        y="false positive rate",
        claim="spending bits on fewer attributes lowers the rate where the variance of some is restricted",
        settings="7 attributes 0–1023, 7 hotspots, 23 bits, 1,000 subscriptions, 10,000 events, covers of up to 128 dz",
        starts=tuple(
            Point("000-7e", f"workload {kind}", line, kind)
            for kind in range(1, KINDS + 1)
            for line in ("PCA", OURS)
        ),
        rows=selected_rows,
        verdict=fewer_is_better,
        reversed_x=True,
    ),
)
