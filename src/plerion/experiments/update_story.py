"""What an update on the timeline emulator was like, by time: entries in switches, packets on links, deliveries.

Time counts from the moment at which the update begins, and an event counts where it was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from plerion.learning.workload import Floats, Ints
from plerion.simnet.check import AtRest, judged
from plerion.simnet.timeline import Timeline
from plerion.simnet.traffic import Conditions, Course, Sample
from plerion.simnet.trial import known
from plerion.update.plan import Plan

BEFORE: Final = 5  # intervals that are shown
AFTER: Final = 30
EVENTS_EACH: Final = 200  # sent in an interval, on average

Flags = npt.NDArray[np.bool_]


class BrokenPromise(AssertionError):  # noqa: N818 - what happened
    """A figure would show a strategy that does not do what it promises."""


@dataclass(frozen=True, slots=True, eq=False)
class Story:
    """By event when it was sent, the links that its copies took, who got it, who wanted it in vain; entries by time."""

    at: Floats
    packets: Ints
    delivered: Ints
    unwanted: Ints
    wanted: Ints
    lost: Ints
    held_from: Floats
    held: Ints

    def between(self, first: float, last: float) -> Flags:
        """The events that were sent then."""
        return (first <= self.at) & (self.at < last)

    def packets_each(self, events: Flags) -> float:
        """Links that the copies of one of these events took, on average."""
        return int(self.packets[events].sum()) / max(1, int(events.sum()))

    def waste(self, events: Flags) -> float:
        """The share of deliveries that nobody asked for."""
        return int(self.unwanted[events].sum()) / max(1, int(self.delivered[events].sum()))

    def missed(self, events: Flags) -> float:
        """The share of wanted deliveries that did not happen."""
        return int(self.lost[events].sum()) / max(1, int(self.wanted[events].sum()))

    def most_held(self, first: float, last: float) -> int:
        """The most entries in the whole network at any moment of the interval."""
        begin = max(0, int(np.searchsorted(self.held_from, first, side="right")) - 1)
        return int(self.held[begin : max(begin + 1, int(np.searchsorted(self.held_from, last)))].max())


def story(plan: Plan, samples: Sequence[Sample], seed: int, interval: float) -> Story:
    """Plays the plan under traffic; raises `BrokenPromise` when the strategy does not keep its word."""
    conditions = Conditions(
        gap_seconds=len({sample.publisher for sample in samples}) * interval / EVENTS_EACH,
        quiet_seconds=AFTER * interval,
    )
    course = Timeline(plan, samples, conditions, seed).play()
    report = judged(course, AtRest(plan), seed)
    if not report.keeps(known(plan.strategy).promise):
        raise BrokenPromise(f"{plan.strategy}, seed {seed}: {'; '.join(report.examples)}")
    return told(course)


def told(course: Course) -> Story:
    counts = np.array(
        [
            (
                sent.packets,
                len(sent.delivered),
                len(set(sent.delivered) - sent.sample.wanted),
                len(sent.sample.wanted),
                len(sent.sample.wanted - set(sent.delivered)),
            )
            for sent in course.events
        ],
        np.int64,
    )
    packets, delivered, unwanted, wanted, lost = counts.T
    held_from, held = zip(*course.held, strict=True)
    return Story(
        at=np.array([sent.at for sent in course.events]) - course.began,
        packets=packets,
        delivered=delivered,
        unwanted=unwanted,
        wanted=wanted,
        lost=lost,
        held_from=np.array(held_from) - course.began,
        held=np.array(held, np.int64),
    )


def over_time(
    found: Story, interval: float, value: Callable[[float, float], float]
) -> Iterator[tuple[float, float]]:
    """(milliseconds, value) for each interval that is shown and in which anything was sent."""
    for number in range(-BEFORE, AFTER):
        first, last = number * interval, (number + 1) * interval
        if found.between(first, last).any():
            yield round(500 * (first + last), 3), value(first, last)
