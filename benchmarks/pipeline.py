"""The claims of the pipeline, measured: what Spark costs on top of the kernels, and that the cost of an event stays.

Events × 10,000 subscriptions × 8 attributes, from Parquet on disk through a warm session; beside it the bare kernels on
the same events in memory, on as many threads as Spark has cores. The two take turns, because machines are noisy.

    python -m benchmarks.pipeline 0.1      a tenth of the work
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from benchmarks.core import Row, row
from benchmarks.workload import Floats, schema, zipf
from plerion.index.propose import regular
from plerion.learning.workload import Workload
from plerion.matching.bitset import match_counts
from plerion.pipeline.session import session
from plerion.pipeline.source import read_events
from plerion.pipeline.steps.evaluate import Asked, evaluated, evaluation, tallied
from plerion.pipeline.steps.matches import matches

EVENTS, SUBSCRIPTIONS = 1_000_000, 10_000
SOME, MANY = 10, 20  # times as many events
BITS, BUDGET = 23, 32
GROUP_ROWS = 100_000
REPEATS = 2
CORES = cpu_count() or 1


def write_events(points: Floats, path: Path) -> None:
    cells = {name: points[:, a] for a, name in enumerate(schema().names)}
    pq.write_table(pa.table(cells), path, row_group_size=GROUP_ROWS)


def on_threads(work: Callable[[Floats], object], points: Floats) -> None:
    """The work on pieces as large as Spark's, the kernels without Spark."""
    parts = [points[at : at + GROUP_ROWS] for at in range(0, len(points), GROUP_ROWS)]
    with ThreadPoolExecutor(CORES) as pool:
        list(pool.map(work, parts))


def in_turns(works: dict[str, Callable[[], object]], repeats: int = REPEATS) -> dict[str, float]:
    """The least seconds of each, taken in turns."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            began = perf_counter()
            work()
            times[name].append(perf_counter() - began)
    return {name: min(found) for name, found in times.items()}


def matched(events: DataFrame, load: Workload) -> int:
    total: int = matches(events, load.schema, load.bounds).groupBy().sum("matches").collect()[0][0]
    return total


def warmed(events: DataFrame, load: Workload, asked: Asked) -> None:
    """Kernels are compiled and Spark is warm after this, and both ways have counted the same."""
    on_threads(lambda part: match_counts(load.bounds, part), load.points[:GROUP_ROWS])
    on_threads(lambda part: tallied(asked, iter([part])), load.points[:GROUP_ROWS])
    assert matched(events, load) == evaluated(evaluation(events, asked), asked)[0].wanted.sum()


def overhead(events: DataFrame, points: Floats, load: Workload, asked: Asked) -> list[Row]:
    """Warm Spark against the bare kernels, both counting the same."""
    took = in_turns(
        {
            "matching": lambda: matched(events, load),
            "bare matching": lambda: on_threads(lambda part: match_counts(load.bounds, part), points),
            "evaluation": lambda: evaluated(evaluation(events, asked), asked),
            "bare evaluation": lambda: on_threads(lambda part: tallied(asked, iter([part])), points),
        }
    )
    count, workload = len(points), f"{len(points):,} events × {load.interests:,} subscriptions"
    return [
        row(f"matched through Spark, {workload}", count / took["matching"], 100e3, "1/s"),
        row("… as a share of the bare kernels", 100 * took["bare matching"] / took["matching"], 50, "%"),
        row(f"evaluated through Spark, {workload}", count / took["evaluation"], 50e3, "1/s"),
        row("… as a share of the bare kernels", 100 * took["bare evaluation"] / took["evaluation"], 50, "%"),
    ]


def growth(few: DataFrame, many: DataFrame, asked: Asked) -> list[Row]:
    """An event of many costs what an event of few costs."""
    took = in_turns(
        {
            "few": lambda: evaluated(evaluation(few, asked), asked),
            "many": lambda: evaluated(evaluation(many, asked), asked),
        }
    )
    ratio = took["many"] / MANY / took["few"]
    return [row(f"cost of an event, {MANY} times as many events / as before", ratio, 1.2, "×", at_most=True)]


def pipeline(scale: float) -> list[Row]:
    count = max(2000, int(EVENTS * scale))
    made = zipf(max(50, int(SUBSCRIPTIONS * min(1.0, 10 * scale))), count, seed=8)
    offsets = Workload.of_boxes(schema(), made.events, made.boxes).offsets
    load = Workload(schema(), made.events, offsets, made.boxes, made.hotspot)
    asked = Asked.of(regular(load.schema, BITS), load, BUDGET)
    points = np.concatenate([made.events, *(zipf(1, count, seed=20 + i).events for i in range(1, SOME))])
    with TemporaryDirectory() as folder, session(f"local[{CORES}]") as running:

        def stored(name: str, parts: int) -> DataFrame:
            place = Path(folder) / name
            place.mkdir()
            for part in range(parts):
                write_events(points[part % SOME * count :][:count], place / f"{part}.parquet")
            return read_events(running.spark, place, load.schema).events

        few = stored("few", 1)
        warmed(few, load, asked)
        found = overhead(stored("some", SOME), points, load, asked)
        found += growth(few, stored("many", MANY), asked)
        return [*found, row("start of a session", running.start_seconds, 30, "s", at_most=True)]


MEASUREMENTS: dict[str, Callable[[float], list[Row]]] = {"pipeline": pipeline}


if __name__ == "__main__":
    for line in pipeline(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0):
        print(
            f"{line['what']:60} {line['measured']:14,.2f} {line['unit']:4} {line['at least']:>16} {line['met']}"
        )
