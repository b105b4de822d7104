"""The checker: runs a plan under many interleavings and counts what went wrong.

An event is *lost* when somebody who wants it never gets it, *doubled* when anybody gets it twice, *looping* when a copy
comes back to a port. It is *wrong* when a state that it does not belong to forwarded it, when a switch could have taken
either of two entries, or when a host saw its tag. An *extra false positive* is a delivery that nobody there asked for
and that neither state at rest would make. *Residue* is an entry that a switch has in the end and should not have, or
should have and has not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from plerion.flow.walk import ModelNetwork
from plerion.index.dz import Dz
from plerion.simnet.fault import Faults
from plerion.simnet.switch import action, identity
from plerion.simnet.timeline import Timeline
from plerion.simnet.traffic import Conditions, Course, Sample, Sent
from plerion.topology.graph import HostId
from plerion.update.entries import Entry, Side
from plerion.update.plan import Plan, extra, peaks
from plerion.update.strategies import Promise

MOST_EXAMPLES = 5


@dataclass(slots=True)
class Report:
    """Counts over all runs; the first few faults are told, with the seed that shows them again."""

    runs: int = 0
    events: int = 0
    deliveries: int = 0
    lost: int = 0
    doubled: int = 0
    looping: int = 0
    wrong: int = 0
    false_positives: int = 0  # all of them; some are there at rest
    extra_false_positives: int = 0
    packets: int = 0
    residue: int = 0
    most_extra_entries: int = 0
    longest_seconds: float = 0.0
    examples: list[str] = field(default_factory=list)

    @property
    def flawless(self) -> bool:
        return not (self.lost or self.doubled or self.looping or self.wrong or self.residue)

    def keeps(self, promise: Promise) -> bool:
        """Whether everything that was promised held."""
        return not (
            self.residue
            or (promise.no_loss and self.lost)
            or (promise.no_double and (self.doubled or self.looping))
            or (promise.coherent and self.wrong)
            or (promise.accurate and self.extra_false_positives)
        )

    def add(self, other: Report) -> None:
        for name in ("runs", "events", "deliveries", "lost", "doubled", "looping", "wrong", "false_positives",
                     "extra_false_positives", "packets", "residue"):  # fmt: skip
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.most_extra_entries = max(self.most_extra_entries, other.most_extra_entries)
        self.longest_seconds = max(self.longest_seconds, other.longest_seconds)
        self.examples = (self.examples + other.examples)[:MOST_EXAMPLES]


def check(
    plan: Plan,
    samples: Sequence[Sample],
    seeds: Iterable[int],
    conditions: Conditions | None = None,
    faults: Faults | None = None,
) -> Report:
    """The plan under one interleaving for each seed."""
    rest = AtRest(plan)
    total = Report(most_extra_entries=int(extra(plan).max(initial=0)))
    for seed in seeds:
        course = Timeline(plan, samples, conditions or Conditions(), seed, faults).play()
        total.add(judged(course, rest, seed))
        _assert_counted(plan, course)
    return total


def _assert_counted(plan: Plan, course: Course) -> None:
    """What a switch ever held is within what the plan's own accounting said that it may."""
    most = np.array([course.most_entries[s] for s in plan.old.tables.fabric.topology.switches])
    assert (most <= peaks(plan)).all(), f"{plan.strategy} needs more entries than it says"


class AtRest:
    """Who gets an event of either state when nothing changes, and what switches hold then."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._entries: dict[bool, set[object]] = {}
        self._networks = {Side.OLD: ModelNetwork(plan.old.tables), Side.NEW: ModelNetwork(plan.new.tables)}
        self._known: dict[tuple[Side, Dz, HostId], frozenset[HostId]] = {}

    def residue(self, course: Course) -> int:
        """How many entries are too many or too few after the course."""
        if course.back not in self._entries:
            self._entries[course.back] = _said(self._plan.before() if course.back else self._plan.after())
        return len(_said(course.left) ^ self._entries[course.back])

    def reached(self, sample: Sample) -> frozenset[HostId]:
        return self._one(Side.OLD, sample.old, sample.publisher) | self._one(
            Side.NEW, sample.new, sample.publisher
        )

    def _one(self, side: Side, code: Dz | None, publisher: HostId) -> frozenset[HostId]:
        if code is None:
            return frozenset()
        key = (side, code, publisher)
        if key not in self._known:
            self._known[key] = frozenset(self._networks[side].walk(code, publisher).delivered)
        return self._known[key]


def _said(entries: Iterable[Entry]) -> set[object]:
    return {(entry.switch, identity(entry), action(entry)) for entry in entries}


def judged(course: Course, rest: AtRest, seed: int) -> Report:
    """What one course was worth."""
    found = Report(runs=1, events=len(course.events), residue=rest.residue(course))
    found.longest_seconds = course.ended - course.began
    for sent in course.events:
        _judge(sent, rest, found, seed)
    return found


def _judge(sent: Sent, rest: AtRest, found: Report, seed: int) -> None:
    copies = Counter(sent.delivered)
    faults = {
        "lost": len(sent.sample.wanted - copies.keys()),
        "doubled": sum(n > 1 for n in copies.values()),
        "looping": int("looping" in sent.faults),
        "wrong": int(_incoherent(sent) or bool(sent.faults - {"looping"})),
    }
    found.deliveries += len(sent.delivered)
    found.packets += sent.packets
    unwanted = copies.keys() - sent.sample.wanted
    found.false_positives += len(unwanted)
    found.extra_false_positives += len(unwanted - rest.reached(sent.sample))
    for name, number in faults.items():
        setattr(found, name, getattr(found, name) + number)
        if number and len(found.examples) < MOST_EXAMPLES:
            found.examples.append(
                f"seed {seed}: event {sent.number} of {sent.sample.publisher}, sent {sent.at * 1e3:.2f} ms "
                f"in the {sent.side.name.lower()} language, {name}: went to {sorted(sent.delivered)}, "
                f"wanted by {sorted(sent.sample.wanted)}"
            )


def _incoherent(sent: Sent) -> bool:
    """Coded for one state and forwarded by the other. Where the language is the same, forwarded by both."""
    if sent.sample.old == sent.sample.new:
        return {Side.OLD, Side.NEW} <= sent.sides
    return (Side.NEW if sent.side == Side.OLD else Side.OLD) in sent.sides
