"""One seed, one strategy: a scene, a plan for it and a run, all drawn from the seed. What `plerion simulate` shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from types import MappingProxyType
from typing import get_args

from plerion.simnet.check import Report, check
from plerion.simnet.fault import Faults
from plerion.simnet.scene import Change, Scene, scene
from plerion.simnet.traffic import Conditions
from plerion.update.plan import Plan
from plerion.update.state import NotApplicable, Options, Order
from plerion.update.strategies import MOVES, STRATEGIES, Known

KINDS: Mapping[str, tuple[Change, ...]] = MappingProxyType(
    {**dict.fromkeys(STRATEGIES, ("index", "index", "tree", "both")), **dict.fromkeys(MOVES, ("tree",))}
)
"""What changes in the scenes that a strategy is tried on."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A plan and what the checker says of it; `refusal` instead where the strategy does not apply."""

    seed: int
    change: Change
    scene: Scene
    plan: Plan | None
    report: Report
    refusal: str = ""


def known(strategy: str) -> Known:
    return STRATEGIES[strategy] if strategy in STRATEGIES else MOVES[strategy]


def options(seed: int) -> Options:
    """Options of this seed: what a user may choose freely, they do."""
    random = Random(seed)
    return Options(epoch_bits=1, order=random.choice(get_args(Order)), seed=seed)


def conditions(seed: int) -> Conditions:
    """From quick to slow switches, links and publishers, and switches that take changes one by one."""
    random = Random(seed)
    return Conditions(
        install_seconds=random.choice((0.001, 0.004, 0.012)),
        notice_seconds=random.choice((0.001, 0.004, 0.012)),
        piecewise=random.random() < 0.5,
        slowest=random.random() < 0.25,
    )


def planned(seed: int, strategy: str, change: Change | None = None) -> tuple[Change, Scene, Plan]:
    """The plan of the seed; raises `NotApplicable` where there is none."""
    kinds = KINDS[strategy]
    kind = change or kinds[seed % len(kinds)]
    found = scene(seed, kind)
    return kind, found, known(strategy).make(found.old, found.new, found.topology, options(seed))


def trial(seed: int, strategy: str, change: Change | None = None, faults: Faults | None = None) -> Trial:
    """Tries the strategy on what the seed gives."""
    try:
        kind, found, plan = planned(seed, strategy, change)
    except NotApplicable as refusal:
        kinds = KINDS[strategy]
        kind = change or kinds[seed % len(kinds)]
        return Trial(seed, kind, scene(seed, kind), None, Report(), str(refusal))
    report = check(plan, found.samples, [seed], conditions(seed), faults)
    return Trial(seed, kind, found, plan, report)
