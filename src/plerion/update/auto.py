"""`auto`: the strategy that suits this change, this network and its user, by trying them on paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from plerion.topology.graph import SwitchId, Topology
from plerion.update.plan import Plan, peaks
from plerion.update.state import NetworkState, NotApplicable, Options, Prefer
from plerion.update.strategies import MOVES, STRATEGIES

PREFERENCE: Mapping[Prefer, tuple[str, ...]] = MappingProxyType(
    {
        # No event more than at rest, as long as there is room for two states; `epoch` first, for it tags nothing.
        "accurate": (
            "epoch", "versioning", "tree-versioning", "customised-versioning", "custom-multicast", "ip-multicast",
            "bridge",
        ),
        # As few entries as possible; `bridge` needs none, but all events then go through the controller.
        "small": (
            "custom-multicast", "ip-multicast", "customised-versioning", "epoch", "versioning", "tree-versioning",
            "bridge",
        ),
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The plan that was chosen, and why those that would have been preferred were not."""

    plan: Plan
    passed: tuple[tuple[str, str], ...]


def auto(old: NetworkState, new: NetworkState, topology: Topology, options: Options) -> Plan:
    """The plan of the first safe strategy, as the user prefers them, that applies and fits into every table."""
    return chosen(old, new, topology, options).plan


def chosen(old: NetworkState, new: NetworkState, topology: Topology, options: Options) -> Choice:
    """`auto` with its reasons. Raises `NotApplicable` with all of them when nothing fits."""
    passed: list[tuple[str, str]] = []
    for name in PREFERENCE[options.prefer]:
        known = STRATEGIES[name] if name in STRATEGIES else MOVES[name]
        try:
            plan = known.make(old, new, topology, options)
        except NotApplicable as refusal:
            passed.append((name, str(refusal)))
            continue
        full = next(_full(plan, options.limits), None)
        if full is None:
            return Choice(plan, tuple(passed))
        passed.append((name, full))
    raise NotApplicable("; ".join(f"{name}: {reason}" for name, reason in passed))


def _full(plan: Plan, limits: Mapping[SwitchId, int]) -> Iterator[str]:
    """What does not fit where."""
    switches = plan.old.tables.fabric.topology.switches
    most = peaks(plan)
    room = np.array([limits.get(switch, most[x]) for x, switch in enumerate(switches)])
    for x in np.flatnonzero(most > room).tolist():
        yield f"{switches[x]} would hold up to {most[x]} entries and has room for {room[x]}"
