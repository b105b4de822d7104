"""A job as a program of its own: sample, statistics and the evaluation of a regular index, on any Spark.

    python -m tests.spark.job '{"master": "local[2]", "events": "…", …}'

Prints a line of JSON a result. With `executors` it waits for so many first. With `pause` it goes through the work a
second time and prints "half way" as soon as a quarter of the tasks of the evaluation are done; whoever started it may
then break something.
"""

from __future__ import annotations

import json
import sys
from threading import Event, Thread
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from plerion.index.propose import regular
from plerion.pipeline.session import session
from plerion.pipeline.source import read_events
from plerion.pipeline.steps.evaluate import Asked, evaluated, evaluation
from plerion.pipeline.steps.sample import halves, sample
from plerion.pipeline.steps.statistics import moments, statistics
from tests.spark.twins import SCHEMA, workload

LOAD = workload(6_000, 400, 11)
ASKED = Asked.of(regular(SCHEMA, 11), LOAD, 4)


def results(spark: SparkSession, path: str) -> dict[str, Any]:
    source = read_events(spark, path, SCHEMA)
    drawn = [half.tolist() for half in halves(sample(source.events, SCHEMA, 50, seed=1), SCHEMA)]
    found = moments(statistics(source.events, SCHEMA), SCHEMA)
    return {
        "sample": drawn,
        "mean": found.mean.tolist(),
        "squares": found.squares.tolist(),
        "counted": sorted(map(list, source.counted.collect())),
        "evaluation": judged(source.events),
    }


def judged(events: DataFrame) -> dict[str, Any]:
    found, missed = evaluated(evaluation(events, ASKED), ASKED)
    return {**found.to_json(), "misses": missed.tolist(), "by interest": found.deliveries.tolist()}


def await_executors(spark: SparkSession, wanted: int) -> None:
    tracker = spark.sparkContext._jsc.sc().statusTracker()
    pause = Event()
    while len(tracker.getExecutorInfos()) <= wanted:
        pause.wait(0.05)


def announce_half_way(spark: SparkSession, done: Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    known = set(tracker.getJobIdsForGroup(None))
    while not done.wait(0.02):
        for job in set(tracker.getJobIdsForGroup(None)) - known:
            found = tracker.getJobInfo(job)
            stages = [tracker.getStageInfo(at) for at in found.stageIds] if found else []
            if any(stage and 0 < stage.numTasks // 4 <= stage.numCompletedTasks for stage in stages):
                print(json.dumps("half way"), flush=True)
                return


def interrupted(spark: SparkSession, path: str) -> dict[str, Any]:
    done = Event()
    watching = Thread(target=announce_half_way, args=(spark, done))
    watching.start()
    try:
        return judged(read_events(spark, path, SCHEMA).events)
    finally:
        done.set()
        watching.join()


def main(options: dict[str, Any]) -> None:
    with session(options.get("master", "local[2]"), options.get("remote")) as running:
        if "executors" in options:
            await_executors(running.spark, options["executors"])
        print(json.dumps(results(running.spark, options["events"])), flush=True)
        if options.get("pause"):
            print(json.dumps(interrupted(running.spark, options["events"])), flush=True)
            infos = running.spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
            print(json.dumps(len(infos) - 1), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
