"""Seed 004, Figure 10: how many entries versioning and the light-weight approach need while an index changes.

The light-weight approach is called `custom-multicast` here. Nothing is played: a plan says what it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from plerion.experiments.figure import Figure, Point, Row, Verdict, curve, graded, percent
from plerion.experiments.torus_site import EVENTS, OPTIONS, Site, learned
from plerion.experiments.update_index import EPOCH, METHOD
from plerion.update.plan import peaks
from plerion.update.state import NetworkState
from plerion.update.strategies import STRATEGIES

SUBSCRIPTIONS: Final = (32, 64, 128, 256, 512)
SWITCHES: Final = 64
REST, VERSIONING, LIGHT = "the larger state", "versioning", "light-weight"
STRATEGY: Final = {VERSIONING: "versioning", LIGHT: "custom-multicast", EPOCH: "epoch"}


@lru_cache(maxsize=16)
def _change(subscriptions: int, seed: int, scale: float) -> tuple[NetworkState, NetworkState]:
    events = Point("", scale=scale).events(EVENTS)
    site = Site.drawn(SWITCHES, seed, subscriptions, events)
    before, after = (
        site.state(learned(load, site.budget, *METHOD)) for load in (site.drift.before, site.drift.after)
    )
    return before, after


def rows(point: Point) -> list[Row]:
    """By number of subscriptions: the entries of all switches, each at its worst moment."""
    found = []
    for count in SUBSCRIPTIONS:
        old, new = _change(count, point.seed, point.scale)
        if point.line == REST:
            most = np.maximum(np.diff(old.tables.first), np.diff(new.tables.first))
        else:
            make = STRATEGIES[STRATEGY[point.line]].make
            most = peaks(make(old, new, old.tables.fabric.topology, OPTIONS))
        found.append(Row(point.panel, point.line, count, float(most.sum()), point.seed))
    return found


def versioning_doubles(found: Sequence[Row]) -> Verdict:
    """Versioning needs half as many again or more, the light-weight approach five entries a switch at most."""
    lines = {line: curve(found, line) for line in (REST, *STRATEGY)}
    more = {line: [ys[x] / lines[REST][x] - 1 for x in lines[REST]] for line, ys in lines.items()}
    added = max(lines[LIGHT][x] - lines[REST][x] for x in lines[REST])
    parts = (min(more[VERSIONING]) >= 0.5, added <= 5 * SWITCHES)
    told = ", ".join(
        f"{line} +{percent(min(more[line]))} to +{percent(max(more[line]))}" for line in STRATEGY
    )
    return graded(parts, f"{told}; light-weight at most {added:.0f} entries in {SWITCHES} switches")


FIGURES = (
    Figure(
        name="004-10",
        title="Entries that an update needs",
        x="subscriptions",
        y="entries, each switch at its worst moment",
        claim="versioning nearly doubles the entries, the light-weight approach adds at most one an in-port",
        settings="torus of 64 switches, half of the hosts publish, 4 attributes, CS, 23 bits, covers of up to 128 dz",
        starts=tuple(Point("004-10", "", line) for line in (REST, *STRATEGY)),
        rows=rows,
        verdict=versioning_doubles,
        log="x",
        rates=False,
        emulated=True,
    ),
)
