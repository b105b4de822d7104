"""Seed 004, Figure 14(c): what happens drifts, the index gets worse, a better one is learned and goes live.

The seed's axis is in seconds. Here it is milliseconds of the virtual clock, because switches take changes in
milliseconds. An index is made of one half of the events that happen when it is made; the other half is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

from plerion.experiments.figure import (
    CLEAR,
    Curve,
    Figure,
    Point,
    Row,
    Verdict,
    curve,
    graded,
    percent,
    saved,
)
from plerion.experiments.torus_site import EVENTS, OPTIONS, Site, learned
from plerion.experiments.update_story import EVENTS_EACH, Story, told
from plerion.simnet.timeline import Timeline
from plerion.simnet.traffic import Conditions, Sample
from plerion.update.plan import Plan
from plerion.update.strategies import STRATEGIES

SWITCHES: Final = 16
DRIFT: Final = 0.095  # seconds from the beginning, as in the seed in thousands
UPDATE: Final = 0.350
END: Final = 0.500
INTERVAL: Final = 0.010
CARELESS, LOOP, OURS = "CS, all at once", "CS, light-weight", "boundary, epoch (ours)"
LOOPS: Final = {
    CARELESS: ("direct", "regular", "cs"),
    LOOP: ("custom-multicast", "regular", "cs"),
    OURS: ("epoch", "boundary", "none"),
}
WASTED, MISSED = "false positives", "false negatives"


@cache
def _loop(line: str, seed: int, scale: float) -> tuple[Story, Story]:
    """Until the drift, and from then on; time counts from the end of the first and from the update in the second."""
    strategy, *method = LOOPS[line]
    site = Site.drawn(SWITCHES, seed, events=Point("", scale=scale).events(EVENTS))
    old, new = (learned(load, site.budget, *method) for load in (site.drift.before, site.drift.after))
    states = site.state(old), site.state(new)
    rest = Plan("rest", states[0], states[0], (), 0)
    change = STRATEGIES[strategy].make(*states, site.topology, OPTIONS)
    early = _played(rest, site.samples(old, old, drifted=False), seed, DRIFT / 2)
    return early, _played(change, site.samples(old, new), seed, UPDATE - DRIFT)


def _played(plan: Plan, samples: list[Sample], seed: int, quiet: float) -> Story:
    senders = len({sample.publisher for sample in samples})
    conditions = Conditions(gap_seconds=senders * INTERVAL / EVENTS_EACH, quiet_seconds=quiet)
    return told(Timeline(plan, samples, conditions, seed).play())


def rows(point: Point) -> list[Row]:
    early, late = _loop(point.line, point.seed, point.scale)
    found = []
    for number in range(round(END / INTERVAL)):
        first, last = number * INTERVAL, (number + 1) * INTERVAL
        one, since = (early, DRIFT / 2) if last <= DRIFT else (late, UPDATE)
        events = one.between(max(first, DRIFT if one is late else 0) - since, last - since)
        if events.any():
            y = one.waste(events) if point.panel == WASTED else one.missed(events)
            found.append(Row(point.panel, point.line, round(500 * (first + last), 3), y, point.seed))
    return found


def the_loop_closes(found: Sequence[Row]) -> Verdict:
    """Low, then higher after the drift, highest during the update, low again; and nothing is missed."""
    parts, told = [], []
    for line in LOOPS:
        wasted, missed = (curve(found, line, panel) for panel in (WASTED, MISSED))
        early, stale = _mean(wasted, 0, DRIFT), _mean(wasted, DRIFT, UPDATE)
        meanwhile = max(y for x, y in wasted.items() if x > 1e3 * UPDATE)
        late, lost = _mean(wasted, 0.9 * END, END), max(missed.values())
        if line == LOOP:
            parts = [
                saved(early, stale) >= CLEAR,
                saved(stale, meanwhile) >= CLEAR,
                saved(late, stale) >= CLEAR,
                lost == 0,
            ]
        told.append(
            f"{line}: {percent(early)}, {percent(stale)} after the drift, {percent(meanwhile)} at the worst of the "
            f"update, {percent(late)} in the end, missed at most {percent(lost)}"
        )
    return graded(parts, "; ".join(told))


def _mean(line: Curve, first: float, last: float) -> float:
    ys = [y for x, y in line.items() if 1e3 * first < x < 1e3 * last]
    return sum(ys) / len(ys)


FIGURES = (
    Figure(
        name="004-14c",
        title="False positives while what happens changes and the index follows",
        x="milliseconds",
        y="rate at hosts",
        claim=(
            "the rate rises when traffic changes, rises once more while the light-weight approach brings in a new "
            "index, and is low again after that; nothing is ever missed"
        ),
        settings=(
            "torus of 16 switches, 8 publishers, 8 subscribers of one region each, 4 attributes, 23 bits, "
            "covers of up to 128 dz; traffic changes at 95, an index is learned and brought in at 350"
        ),
        starts=tuple(Point("004-14c", panel, line) for panel in (WASTED, MISSED) for line in LOOPS),
        rows=rows,
        verdict=the_loop_closes,
        emulated=True,
    ),
)
