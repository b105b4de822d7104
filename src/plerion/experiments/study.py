"""One workload under study: indexes are made and selected by one half of its events and judged by the other.

Within the choosing half the same is done once more: whatever tries out candidates (greedy, brute force, the number of
rectangles) makes them of one quarter of the events and rates them on another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plerion.experiments.figure import BITS
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


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """A workload in halves, with what is known of the choosing half."""

    choosing: Workload
    known: Summaries
    judge: Judge
    made_of: Workload
    kept: Judge
    bits: int

    @classmethod
    def of(cls, workload: Workload, budget: int = DEFAULT_BUDGET, bits: int = BITS) -> Study:
        choosing, judging = workload.halves()
        made_of, kept = choosing.halves()
        known = summaries(choosing)
        return cls(choosing, known, Judge.of(judging, budget), made_of, Judge.of(kept, budget), bits)

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
        return self.kept.rate(self._made(self.made_of, method, attributes, clusters))

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
