"""One workload under study: indexes are made and selected by one half of its events and judged by the other.

Within the choosing half the same is done once more: whatever tries out candidates (greedy, brute force, the number of
rectangles) makes them of one quarter of the events and rates them on another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from plerion.experiments.figure import BITS, EVENTS, Point
from plerion.experiments.synthetic import Settings, workload
from plerion.index.content_index import ContentIndex
from plerion.index.cover import DEFAULT_BUDGET
from plerion.index.propose import regular
from plerion.learning.adaptive import adaptive
from plerion.learning.boundary import boundary
from plerion.learning.judge import Judge
from plerion.learning.propose import TREES, Summaries, summaries
from plerion.learning.selection import Selection, brute, cs, emcs, evs, greedy, pca
from plerion.learning.selective import selective
from plerion.learning.workload import Workload

RECTANGLES = 8  # of a selective index, unless a number is chosen


@dataclass(frozen=True, eq=False)
class Study:
    """A workload in halves; what is known of the choosing half is found when it is first needed."""

    workload: Workload
    budget: int = DEFAULT_BUDGET
    bits: int = BITS

    @classmethod
    def drawn(cls, settings: Settings, point: Point, subscriptions: int, events: int = EVENTS) -> Study:
        """A synthetic workload of these sizes at the point's scale, the point's seed on top of the settings' own."""
        sized = replace(
            settings, subscriptions=point.subscriptions(subscriptions), events=point.events(events)
        )
        return cls(workload(replace(sized, seed=settings.seed + point.seed - 1)))

    @cached_property
    def halves(self) -> tuple[Workload, Workload]:
        return self.workload.halves()

    @property
    def choosing(self) -> Workload:
        return self.halves[0]

    @cached_property
    def judge(self) -> Judge:
        return Judge.of(self.halves[1], self.budget)

    @cached_property
    def quarters(self) -> tuple[Workload, Judge]:
        """What trials are made of, and what rates them."""
        made_of, kept = self.choosing.halves()
        return made_of, Judge.of(kept, self.budget)

    @cached_property
    def known(self) -> Summaries:
        return summaries(self.choosing)

    @property
    def attributes(self) -> tuple[int, ...]:
        return tuple(range(len(self.choosing.schema.attributes)))

    def index(self, method: str, attributes: Sequence[int], clusters: int = RECTANGLES) -> ContentIndex:
        return self._made(self.choosing, method, attributes, clusters)

    def rate(self, method: str, attributes: Sequence[int], clusters: int = RECTANGLES) -> float:
        """On the events that nothing was chosen by."""
        return self.judge.rate(self.index(method, attributes, clusters))

    def trial(self, method: str, attributes: Sequence[int], clusters: int = RECTANGLES) -> float:
        """On events of the choosing half, for choices."""
        made_of, kept = self.quarters
        return kept.rate(self._made(made_of, method, attributes, clusters))

    def rectangles(self) -> int:
        """The number of rectangles that serves a selective index best."""
        return min(TREES["selective"], key=lambda count: self.trial("selective", self.attributes, count))

    def selection(self, name: str, method: str = "regular", clusters: int = RECTANGLES) -> Selection:
        """How the named algorithm sees the attributes; greedy and brute force try them out with the method."""
        known, count = self.known, self.choosing.interests
        match name:
            case "evs":
                return evs(known.moments)
            case "emcs":
                return emcs(known.totals, known.events, count)
            case "cs":
                return cs(known.similarity, known.events, count)
            case "pca":
                return pca(known.w)
        search = greedy if name == "greedy" else brute
        return search(len(self.attributes), lambda some: self.trial(method, some, clusters))

    def _made(self, load: Workload, method: str, attributes: Sequence[int], clusters: int) -> ContentIndex:
        match method:
            case "regular":
                return regular(load.schema, self.bits, attributes)
            case "adaptive":
                return adaptive(load.schema, self.bits, attributes, self.known.histograms)
            case "selective":
                return selective(load, self.bits, attributes, clusters)
        return boundary(load, self.bits, attributes)


def of_size(found: Selection, wanted: int) -> tuple[int, ...]:
    """The attributes for a wanted number: the best of that size that was tried, or the top of the ranking."""
    fitting = [step for step in found.trail if len(step.attributes) == wanted]
    return min(fitting, key=lambda step: step.rate).attributes if fitting else found.first(wanted).chosen
