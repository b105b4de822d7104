"""From files of events and subscriptions to an index: Spark reads everything and gives small summaries, then the
decision is a pure function of these (`learning.propose`), and Spark counts what the chosen index does to every event.

Half of the sampled events choose, the other half judge. With a current index, the new one replaces it only when it is
better by a margin on the judging half; otherwise the current one stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import cpu_count
from time import monotonic
from typing import Any

import numpy as np
from pyspark.sql import DataFrame

from plerion.index.content_index import ContentIndex
from plerion.learning.judge import Judge
from plerion.learning.projection import Projections
from plerion.learning.propose import Proposal, Request, Summaries, histograms, is_better, propose
from plerion.learning.selection import emcs
from plerion.learning.summaries import attribute_moments, w_moments, workload_axes
from plerion.learning.workload import Workload
from plerion.matching.evaluate import Evaluation
from plerion.pipeline.steps import projections as step
from plerion.pipeline.steps.evaluate import Asked, evaluated, evaluation
from plerion.pipeline.steps.sample import halves, sample
from plerion.pipeline.steps.statistics import moments, statistics
from plerion.pipeline.steps.workload import workload_by_bin, workload_histogram

SAMPLE_ROWS = 100_000
BEST_SECONDS = 120.0
MARGIN = 0.02


@dataclass(slots=True)
class Clock:
    """What each part of the work took; `tell` hears of each part as it begins."""

    tell: Callable[[str], None] = lambda _: None
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        self.tell(name)
        began = monotonic()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + monotonic() - began


@dataclass(frozen=True, slots=True, eq=False)
class Built:
    """The index to use from now on, and how it was found; rates are those on the judging half."""

    index: ContentIndex
    proposal: Proposal
    judged: float
    judged_current: float | None
    replaced: bool
    all_events: Evaluation
    missed_on: tuple[int, ...]
    seconds: dict[str, float]


@dataclass(frozen=True, slots=True)
class Options:
    """How the search is done: the size of the sample, the seconds that `best` may take, the margin to win by."""

    rows: int = SAMPLE_ROWS
    seconds: float = BEST_SECONDS
    margin: float = MARGIN
    seed: int = 0


def build(
    events: DataFrame,
    asked: Workload,
    request: Request,
    options: Options = Options(),
    current: ContentIndex | None = None,
    clock: Clock | None = None,
) -> Built:
    """The index that wastes least on these events; `asked` has the subscriptions and no events of its own."""
    clock = clock or Clock()
    with clock.part("sampling events"):
        choosing, judging = halves(sample(events, asked.schema, options.rows, options.seed), asked.schema)
    with clock.part("summing up events"):
        known = summaries_of(events, asked, request)
    with clock.part("choosing"), ThreadPoolExecutor(cpu_count()) as pool:
        epoch = 0 if current is None else current.epoch + 1
        end = monotonic() + options.seconds
        proposal = propose(
            asked.with_points(choosing), known, request, epoch, lambda: end - monotonic(), pool.map
        )
    with clock.part("judging"):
        judge = Judge.of(asked.with_points(judging), request.budget)
        judged = judge.rate(proposal.index)
        held = None if current is None else judge.rate(current)
    replaced = held is None or is_better(judged, held, options.margin)
    index = proposal.index if replaced or current is None else current
    with clock.part("counting every event"):
        found, missed = evaluate(events, asked, index, request.budget)
    return Built(index, proposal, judged, held, replaced, found, missed, clock.seconds)


def evaluate(
    events: DataFrame, asked: Workload, index: ContentIndex, budget: int
) -> tuple[Evaluation, tuple[int, ...]]:
    """What the index does to every event, and for each attribute the false positives that miss on it."""
    what = Asked.of(index, asked, budget)
    found, missed = evaluated(evaluation(events, what), what)
    return found, tuple(missed.tolist())


def summaries_of(events: DataFrame, asked: Workload, request: Request) -> Summaries:
    """The sums over all events that the request needs; what it does not need is that of no events."""
    schema, best = asked.schema, request.method == "best"
    along = Projections.of(asked.offsets, asked.bounds)
    none = np.empty((0, len(schema.attributes)))
    width, axes = len(schema.attributes), workload_axes(schema)

    def needed(select: str) -> bool:
        return best or request.select == select

    totals: Any = np.zeros(width, np.int64)
    pairs: Any = np.zeros((width, width), np.int64)
    bins: Any = [np.zeros(axis.cells, np.int64) for axis in axes]
    if needed("emcs"):
        totals = step.totals(step.match_totals(events, schema, along), schema)
    if needed("cs"):
        pairs = step.similarities(step.similarity(events, schema, along), schema)
    if best or request.method == "adaptive":
        bins = workload_by_bin(workload_histogram(events, schema, asked.bounds, axes), axes)
    return Summaries(
        events.count(),
        moments(statistics(events, schema), schema) if needed("evs") else attribute_moments(none),
        totals,
        pairs,
        step.moments_of_w(step.w_moments(events, schema, along), schema)
        if needed("pca")
        else w_moments(along, none),
        histograms(schema, bins),
    )


@dataclass(frozen=True, slots=True)
class Curves:
    """Rates on the judging half: against the number of bits, and against the attributes that were tried."""

    method: str
    by_bits: tuple[tuple[int, float], ...]
    by_attributes: tuple[tuple[int, float], ...]
    won: tuple[int, int, float]  # attributes, bits, rate


def curves(events: DataFrame, asked: Workload, request: Request, built: Built, options: Options) -> Curves:
    """What fewer bits and fewer attributes would give, with the method that won."""
    choosing, judging = halves(sample(events, asked.schema, options.rows, options.seed), asked.schema)
    known, won = summaries_of(events, asked, replace(request, method="best")), built.proposal.won
    judge, load = Judge.of(asked.with_points(judging), request.budget), asked.with_points(choosing)

    def rate(bits: int, attributes: tuple[int, ...]) -> float:
        names = ",".join(asked.schema.names[a] for a in attributes)
        asks = replace(
            request, method=won.method, select=names, bits=bits, clusters=won.clusters, dimensions=None
        )
        return judge.rate(propose(load, known, asks).index)

    ranking = built.proposal.selection.ranking if built.proposal.selection else emcs_ranking(known, asked)
    steps = sorted({*range(4, request.bits, max(1, request.bits // 6)), request.bits})
    return Curves(
        won.method,
        tuple((bits, rate(bits, won.attributes)) for bits in steps),
        tuple((n, rate(request.bits, tuple(sorted(ranking[:n])))) for n in range(1, len(ranking) + 1)),
        (len(won.attributes), request.bits, built.judged),
    )


def emcs_ranking(known: Summaries, asked: Workload) -> tuple[int, ...]:
    """Attributes by how much each tells apart alone."""
    return emcs(known.totals, known.events, asked.interests).ranking
