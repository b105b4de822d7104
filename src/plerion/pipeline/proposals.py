"""A new index for the events of late, and whether it is better than the one in use: asked for, never put to use here.

The controller decides. What it gets is a document: the index, of the next epoch, and the rates of both indexes on
the same half of the sample, which neither of them was made from.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from plerion.content.schema import Schema
from plerion.index.codec import to_json
from plerion.index.content_index import ContentIndex
from plerion.learning.judge import Judge
from plerion.learning.propose import Proposal, Request, is_better, propose, summaries
from plerion.learning.workload import Floats, Workload

FEWEST_EVENTS = 100  # in each half of a sample that an index is made from
THREADS = 2

PROPOSED, NOTHING_BETTER, TOO_FEW, NOBODY = (
    "proposed",
    "nothing better",
    "too few events",
    "no subscriptions",
)


@dataclass(frozen=True, slots=True, eq=False)
class Consideration:
    """What became of the attempt, and where it got so far: both rates on the judging half, and the new index."""

    verdict: str
    current_rate: float | None = None
    proposed_rate: float | None = None
    proposal: Proposal | None = None
    choosing: int = 0
    judging: int = 0


def considered(
    index: ContentIndex, interests: Workload, halves: tuple[Floats, Floats], request: Request, margin: float
) -> Consideration:
    """A new index from the first half of the events, if on the second it is better than `index` by the margin."""
    choosing, judging = halves
    if not len(interests.bounds):
        return Consideration(NOBODY)
    if min(len(choosing), len(judging)) < FEWEST_EVENTS:
        return Consideration(TOO_FEW, choosing=len(choosing), judging=len(judging))
    load = interests.with_points(np.ascontiguousarray(choosing))
    with ThreadPoolExecutor(THREADS) as pool:
        found = propose(load, summaries(load), request, epoch=index.epoch + 1, over=pool.map)
    judge = Judge.of(interests.with_points(np.ascontiguousarray(judging)), request.budget)
    current, proposed = judge.rate(index), judge.rate(found.index)
    verdict = PROPOSED if is_better(proposed, current, margin) else NOTHING_BETTER
    return Consideration(verdict, current, proposed, found, len(choosing), len(judging))


def documents(name: str, reason: str, found: Consideration, interests: int) -> dict[str, bytes]:
    """The files of a proposal, by name, in the order to write them: the index alone, then all that is to say of it."""
    if found.verdict != PROPOSED or found.proposal is None:
        return {}
    index, won = to_json(found.proposal.index), found.proposal.won
    said: dict[str, Any] = {
        "window": name,
        "reason": reason,
        "epoch": found.proposal.index.epoch,
        "current_rate": found.current_rate,
        "proposed_rate": found.proposed_rate,
        "choosing": found.choosing,
        "judging": found.judging,
        "subscriptions": interests,
        "method": won.method,
        "clusters": won.clusters,
        "index": msgspec.Raw(index),
    }
    return {f"{name}.index.json": index + b"\n", f"{name}.json": msgspec.json.encode(said) + b"\n"}


def rehearse(schema: Schema, request: Request) -> None:
    """Goes through all of it with a few made-up events, so that the first proposal waits for no compiler."""
    random = np.random.default_rng(1)
    starts, ends = np.array(schema.starts), np.array(schema.ends)
    points = np.floor(random.uniform(starts, ends, (2 * FEWEST_EVENTS, len(starts))))
    low = np.floor(random.uniform(starts, ends, (4, len(starts))))
    boxes = np.stack((low, np.maximum(low + 1, ends)), axis=-1)
    load = Workload.of_boxes(schema, points, boxes)
    few = replace(request, clusters=2) if request.method != "regular" else request
    halves = points[:FEWEST_EVENTS], points[FEWEST_EVENTS:]
    index = propose(load, summaries(load), replace(few, method="regular", select="none")).index
    considered(index, load, halves, few, 0.0)
