"""How good the indexes are: `boundary` against the best published combination, on the half of the events that judges.

    python -m benchmarks.quality [--budget 128,1024] [--data DIR] [--only redundant-2,stocks]

The published combinations are no selection, EMCS, CS and greedy with regular, adaptive and selective indexing; the
best of them is the one with the least rate *on the judging half*, which favours them: ours is chosen without a
look at it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from plerion.experiments import datasets
from plerion.experiments.synthetic import PRESETS, workload
from plerion.learning.judge import Judge
from plerion.learning.propose import Request, propose, summaries
from plerion.learning.workload import Workload

SUBSCRIPTIONS, EVENTS, BITS = 1_000, 20_000, 23
PUBLISHED = [
    (method, select)
    for method in ("regular", "adaptive", "selective")
    for select in ("none", "emcs", "cs", "greedy")
]


def workloads(directory: Path | None) -> Iterator[tuple[str, Workload]]:
    for name, settings in PRESETS.items():
        yield name, workload(replace(settings, subscriptions=SUBSCRIPTIONS, events=EVENTS))
    if directory is not None:
        for name, read in datasets.DATASETS.items():
            yield name, read(directory, datasets.Settings(subscriptions=SUBSCRIPTIONS, events=EVENTS))


def compared(name: str, load: Workload, budget: int) -> dict[str, object]:
    """The rates of one workload, and how long ours took to find."""
    choosing, judging = load.halves()
    known, judge = summaries(choosing), Judge.of(judging, budget)
    with ThreadPoolExecutor() as pool:

        def rate(method: str, select: str) -> float:
            request = Request(bits=BITS, budget=budget, method=method, select=select)
            return judge.rate(propose(choosing, known, request, over=pool.map).index)

        published = {f"{select} + {method}": rate(method, select) for method, select in PUBLISHED}
        began = perf_counter()
        ours = rate("boundary", "none")
        took = perf_counter() - began
    best = min(published, key=lambda kind: published[kind])
    return {
        "workload": name,
        "budget": budget,
        "plain": round(published["none + regular"], 4),
        "best published": best,
        "its rate": round(published[best], 4),
        "boundary": round(ours, 4),
        "ratio": round(ours / max(published[best], 1e-9), 3),
        "seconds": round(took, 1),
    }


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--budget", default="128")
    words.add_argument("--data", type=Path)
    words.add_argument("--only", default="")
    given = words.parse_args()
    wanted = set(filter(None, given.only.split(",")))
    for name, load in workloads(given.data):
        if not wanted or name in wanted:
            for budget in map(int, given.budget.split(",")):
                print(json.dumps(compared(name, load, budget)), flush=True)


if __name__ == "__main__":
    main()
