"""What a change of index would come to: the state after it, the plan that leads there, and what stands against it.

Pure and, with many subscriptions, slow: everything that is live is deployed anew under the other index.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import numpy as np

from plerion.content.errors import quoted, suggestion
from plerion.controller.load import live, loaded
from plerion.controller.state import State
from plerion.index.content_index import ContentIndex
from plerion.update.auto import chosen
from plerion.update.plan import Plan, peaks
from plerion.update.state import NotApplicable, Options
from plerion.update.strategies import STRATEGIES

AUTO = "auto"


class CannotChange(ValueError):  # noqa: N818 - an answer, not a mistake
    """Why the index cannot be changed like this, and what could be done."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Another index, and how the user would like to get there."""

    index: ContentIndex
    strategy: str = AUTO
    options: Options = field(default_factory=Options)


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A change of index, worked out and not begun."""

    old: State
    new: State
    plan: Plan
    passed: tuple[tuple[str, str], ...] = ()  # strategies that would have been preferred, and why not

    def digest(self) -> bytes:
        """Tells plans apart, so that one which was begun is never gone on with as another."""
        found = blake2b(digest_size=16)
        for one in self.plan.rounds:
            found.update(repr((one.name, one.notice, one.wait_seconds)).encode())
            for part in (one.changes.removed, one.changes.added):
                for column in (*part.identity(), part.behaviour()):
                    found.update(np.ascontiguousarray(column).tobytes())
        return found.digest()

    def to_json(self) -> dict[str, Any]:
        """The flow diff, the cost in entries and the strategy, for people and machines."""
        names = self.plan.old.tables.fabric.topology.switches
        sizes = [np.diff(state.tables.first) for state in (self.plan.old, self.plan.new)]
        most = peaks(self.plan)
        return {
            "strategy": self.plan.strategy,
            "passed": [{"strategy": name, "reason": reason} for name, reason in self.passed],
            "epoch": self.new.settings.index.epoch,
            "publishers": list(self.plan.publishers),
            "no_return": self.plan.no_return,
            "rounds": [
                {
                    "name": one.name,
                    "switches": len(one.changes.switches()),
                    "added": len(one.changes.added),
                    "removed": len(one.changes.removed),
                    "notice": one.notice is not None,
                    "wait_seconds": round(one.wait_seconds, 6),
                }
                for one in self.plan.rounds
            ],
            "switches": [
                {"switch": name, "entries": int(before), "after": int(after), "peak": int(peak)}
                for name, before, after, peak in zip(names, *sizes, most, strict=True)
            ],
            "entries": int(sizes[0].sum()),
            "entries_after": int(sizes[1].sum()),
            "most_extra": int((most - np.maximum(*sizes)).max(initial=0)),
        }


def prepared(state: State, wanted: Wanted) -> Prepared:
    """The change worked out; `CannotChange` when there is none."""
    settings = state.settings
    if wanted.index.schema != settings.index.schema:
        raise CannotChange("the index is for another schema: an index can be changed, a schema cannot")
    if wanted.strategy != AUTO and wanted.strategy not in STRATEGIES:
        fix = suggestion(wanted.strategy, STRATEGIES) or f"choose {AUTO} or one of {', '.join(STRATEGIES)}"
        raise CannotChange(f"there is no strategy {quoted(wanted.strategy)}: {fix}")
    index = replace(wanted.index, epoch=settings.index.epoch + 1)
    try:
        new, lost = loaded(replace(settings, index=index), live(state.live()))
    except ValueError as error:
        raise CannotChange(str(error)) from None
    if lost:
        name, reason = next(iter(lost.items()))
        raise CannotChange(f"{len(lost)} interests would be lost, {name} first: {reason}")
    return _planned(state, new, wanted)


def _planned(old: State, new: State, wanted: Wanted) -> Prepared:
    settings = old.settings
    options = replace(wanted.options, epoch_bits=settings.epoch_bits, limits=dict(settings.tcam))
    before, after = old.network(), new.network()
    passed: tuple[tuple[str, str], ...] = ()
    try:
        if wanted.strategy == AUTO:
            choice = chosen(before, after, old.surviving, options)
            plan, passed = choice.plan, choice.passed
        else:
            plan = STRATEGIES[wanted.strategy].make(before, after, old.surviving, options)
    except NotApplicable as refusal:
        raise CannotChange(str(refusal)) from None
    new.settings = replace(new.settings, stamp=plan.new.stamp)
    return Prepared(old, new, plan, passed)
