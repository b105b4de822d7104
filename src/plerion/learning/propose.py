"""From a workload and its summaries to the content index that wastes least: selection of attributes, then a method.

Everything here is a pure function of bounded input: a sample of the events (the *choosing* half; the other half judges
what was chosen and is never seen here), the subscriptions, and summaries of all events. Rates that decide
between candidates are measured on events that the candidate was not made from; the winner is then made again from
all events of the choosing half.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from plerion.content.errors import InputError, quoted, suggestion
from plerion.content.schema import MAX_ATTRIBUTES, Schema
from plerion.index.codec import MAX_CLUSTERS
from plerion.index.content_index import ContentIndex
from plerion.index.cover import DEFAULT_BUDGET, MAX_BUDGET
from plerion.index.dz import MAX_LENGTH
from plerion.index.propose import regular
from plerion.index.selection import by_names
from plerion.learning.adaptive import Histograms, adaptive, adaptive_tree, bin_positions, weighed
from plerion.learning.boundary import boundary
from plerion.learning.judge import Judge
from plerion.learning.projection import Projections
from plerion.learning.selection import DEFAULT_THRESHOLD, Over, Selection, brute, cs, emcs, evs, greedy, pca
from plerion.learning.selective import selective
from plerion.learning.similarity import similarity
from plerion.learning.summaries import (
    AttributeMoments,
    WMoments,
    attribute_moments,
    match_totals,
    w_moments,
    workload_axes,
)
from plerion.learning.workload import Floats, Ints, Workload
from plerion.matching.bitset import match_counts

METHODS = ("regular", "adaptive", "selective", "boundary", "best")
SELECTIONS = ("none", "evs", "emcs", "cs", "pca", "greedy", "brute")
TREES = {"adaptive": (1, 16, 64), "selective": (2, 4, 8, 16), "boundary": (1, 16, 64, 256)}
"""Numbers of clusters that are tried unless one is asked for."""

QUICK_CLUSTERS = 16  # of a boundary index while attributes are being selected


@dataclass(frozen=True, slots=True)
class Request:
    """What kind of index is wanted. `select` is one of SELECTIONS or names of attributes, separated by commas."""

    bits: int = 23
    budget: int = DEFAULT_BUDGET
    method: str = "boundary"
    select: str = "none"
    dimensions: int | None = None
    clusters: int | None = None
    threshold: float = DEFAULT_THRESHOLD

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(f"--method {quoted(self.method)} is none", suggestion(self.method, METHODS))
        for option, value, least, most in (
            ("bits", self.bits, 0, MAX_LENGTH),
            ("budget", self.budget, 1, MAX_BUDGET),
            ("dimensions", self.dimensions, 1, MAX_ATTRIBUTES),
            ("clusters", self.clusters, 1, MAX_CLUSTERS),
        ):
            if value is not None and not least <= value <= most:
                raise InputError(
                    f"--{option} {value} is out of bounds", f"give a number from {least} to {most}"
                )


@dataclass(frozen=True, slots=True, eq=False)
class Summaries:
    """Small sums over all events; `histograms` are the workload along each attribute."""

    events: int
    moments: AttributeMoments
    totals: Ints
    similarity: Ints
    w: WMoments
    histograms: Histograms


@dataclass(frozen=True, slots=True)
class Trial:
    """One candidate: what it was made of, and the rate that it had on events it was not made from."""

    method: str
    select: str
    attributes: tuple[int, ...]
    clusters: int
    rate: float


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """The index, the trial that won, the selection behind it and all that was tried."""

    index: ContentIndex
    won: Trial
    selection: Selection | None
    tried: tuple[Trial, ...]


def summaries(workload: Workload) -> Summaries:
    """What the pipeline's steps find, from a workload that fits in memory."""
    load = workload
    asked = Projections.of(load.offsets, load.bounds)
    counts = match_counts(load.bounds, load.points)
    return Summaries(
        len(load.points),
        attribute_moments(load.points),
        match_totals(asked, load.points),
        similarity(asked, load.points),
        w_moments(asked, load.points),
        weighed(load.points, counts.astype(np.float64)),
    )


def histograms(schema: Schema, counts: Sequence[Ints]) -> Histograms:
    """The pipeline's workload histograms as positions with weights."""
    axes = workload_axes(schema)
    return [
        (bin_positions(attribute, axis), found.astype(np.float64))
        for attribute, axis, found in zip(schema.attributes, axes, counts, strict=True)
    ]


def propose(
    choosing: Workload,
    known: Summaries,
    request: Request,
    epoch: int = 0,
    seconds_left: Callable[[], float] = lambda: inf,
    over: Over = map,
) -> Proposal:
    """The best index for the request. `best` goes through the combinations until no seconds are left.

    `over` maps a function over independent trials; a pool's `map` runs them at once.
    """
    made_of, kept = choosing.halves() if len(choosing.points) > 1 else (choosing, choosing)
    search = _Search(made_of, Judge.of(kept, request.budget), known, request, over)
    kinds = combinations() if request.method == "best" else iter([(request.method, request.select)])
    tried: list[Trial] = []
    selections: dict[Trial, Selection | None] = {}
    for method, select in kinds:
        if tried and seconds_left() <= 0:
            break
        found, selection = search.best_of(method, select)
        tried += found
        selections |= dict.fromkeys(found, selection)
    won = min(tried, key=lambda trial: trial.rate)
    whole = replace(search, made_of=choosing)
    index = replace(whole.make(won.method, won.attributes, won.clusters), epoch=epoch)
    return Proposal(index, won, selections[won], tuple(tried))


def combinations() -> Iterator[tuple[str, str]]:
    """Every method with every selection, the most promising first; brute force only ever repeats greedy's work."""
    yield from (("boundary", "none"), ("adaptive", "greedy"), ("regular", "greedy"), ("selective", "greedy"))
    ranked = ("none", "cs", "emcs", "pca", "evs")
    yield from ((method, select) for select in ranked for method in ("adaptive", "regular", "selective"))
    yield from (("boundary", select) for select in ("greedy", *ranked[1:]))


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """Makes candidates from one part of the events and rates them on another."""

    made_of: Workload
    judge: Judge
    known: Summaries
    request: Request
    over: Over

    def best_of(self, method: str, select: str) -> tuple[list[Trial], Selection | None]:
        """All that was tried of one combination, and how the attributes were selected."""
        chosen, selection = self.selected(method, select)
        sizes = (1,) if method == "regular" else self.sizes(method)
        rates = self.over(lambda size: self.judge.rate(self.make(method, chosen, size)), sizes)  # type: ignore[arg-type]  # a number of clusters is tried like a combination
        trials = [Trial(method, select, chosen, size, rate) for size, rate in zip(sizes, rates, strict=True)]
        return trials, selection

    def sizes(self, method: str) -> Iterable[int]:
        asked = self.request.clusters
        return TREES[method] if asked is None else (asked,)

    def selected(self, method: str, select: str) -> tuple[tuple[int, ...], Selection | None]:
        """The attributes that bits are spent on, in schema order."""
        schema, wanted = self.made_of.schema, self.request.dimensions
        if select not in SELECTIONS or (select in schema.names and select != "none"):
            return _named(schema, select)[:wanted], None
        if select == "none":
            return tuple(range(len(schema.attributes)))[:wanted], None
        found = self.ranking(method, select)
        if wanted is not None:
            found = _with_size(found, min(wanted, len(found.ranking)))
        elif select in ("evs", "emcs", "cs"):
            found = found.best_prefix(lambda some: self.quick_rate(method, some), self.over)
        return found.chosen, found

    def ranking(self, method: str, select: str) -> Selection:
        known, count = self.known, self.made_of.interests
        match select:
            case "evs":
                return evs(known.moments)
            case "emcs":
                return emcs(known.totals, known.events, count)
            case "cs":
                return cs(known.similarity, known.events, count)
            case "pca":
                return pca(known.w, self.request.threshold)
        search = greedy if select == "greedy" else brute
        width = len(self.made_of.schema.attributes)
        return search(width, lambda some: self.quick_rate(method, some), self.over)

    def quick_rate(self, method: str, attributes: tuple[int, ...]) -> float:
        """The rate of these attributes with the method at its quickest."""
        clusters = {"boundary": QUICK_CLUSTERS, "selective": 4}.get(method, 1)
        return self.judge.rate(self.make(method, attributes, self.request.clusters or clusters))

    def make(self, method: str, attributes: tuple[int, ...], clusters: int) -> ContentIndex:
        load, bits = self.made_of, self.request.bits
        match method:
            case "regular":
                return regular(load.schema, bits, attributes)
            case "adaptive" if clusters == 1:
                return adaptive(load.schema, bits, attributes, self.known.histograms)
            case "adaptive":
                return adaptive_tree(load.schema, bits, attributes, load.points, self.weights(), clusters)
            case "selective":
                return selective(load, bits, attributes, min(clusters, 1 << min(bits, 16)))
        return boundary(load, bits, attributes, clusters)

    def weights(self) -> Floats:
        return match_counts(self.made_of.bounds, self.made_of.points).astype(np.float64)


def _named(schema: Schema, select: str) -> tuple[int, ...]:
    """The attributes whose names are listed, in the order of the list."""
    names = [name.strip() for name in select.split(",")]
    for name in names:
        if name not in schema.positions:
            fix = suggestion(name, (*schema.names, *SELECTIONS))
            known = ", ".join(SELECTIONS)
            raise InputError(f"--select {quoted(name)} is neither an attribute nor one of {known}", fix)
    return by_names(schema, names)


def _with_size(found: Selection, wanted: int) -> Selection:
    """As many attributes as asked for: the best combination of that size that was tried, or the top of the ranking."""
    fitting = [step for step in found.trail if len(step.attributes) == wanted]
    if not fitting:
        return found.first(wanted)
    return replace(found, chosen=min(fitting, key=lambda step: step.rate).attributes)


def is_better(rate: float, current: float, margin: float) -> bool:
    """Whether a new index may replace the current one: its rate on events that made neither is lower by the margin."""
    return rate < current * (1 - margin)
