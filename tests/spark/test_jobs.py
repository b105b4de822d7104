"""Whole jobs: an index is learned from files or a log, judged on what it was not made from, and counted exactly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyspark
import pytest
from pyspark.sql import SparkSession

from plerion.content.read import read_events, read_interests
from plerion.content.schema import read_schema
from plerion.eventlog.imports import import_files
from plerion.index.codec import from_json, to_json
from plerion.index.content_index import ContentIndex
from plerion.index.propose import regular
from plerion.learning.propose import Request
from plerion.learning.workload import Workload
from plerion.matching.naive import NaiveMatcher
from plerion.pipeline.jobs.build import Built, Options, build, evaluate
from plerion.pipeline.jobs.events import seen
from tests.architecture.repository import ROOT

EXAMPLES = ROOT / "examples"
EVENTS, ASKED = EXAMPLES / "events.csv", EXAMPLES / "subscriptions.csv"
SCHEMA = read_schema(EXAMPLES / "schema.yaml")
INTERESTS = read_interests(ASKED, SCHEMA)
LOAD = Workload.of(SCHEMA, np.empty((0, len(SCHEMA.attributes))), INTERESTS)
QUICK = Request(bits=12, budget=8, clusters=4)
FEW = Options(rows=600)


def built(
    spark: SparkSession,
    request: Request = QUICK,
    current: ContentIndex | None = None,
    log: Path | None = None,
) -> Built:
    with seen(spark, [EVENTS], log, SCHEMA) as found:
        return build(found.events, LOAD, request, FEW, current)


def wanted() -> int:
    """By the definition: every event against every box."""
    points = read_events(EVENTS, SCHEMA).points
    return int(NaiveMatcher(INTERESTS.offsets, INTERESTS.bounds).matches(points).sum())


@pytest.mark.parametrize(
    ("method", "select"),
    [
        ("boundary", "none"),
        ("adaptive", "emcs"),
        ("selective", "cs"),
        ("regular", "pca"),
        ("regular", "greedy"),
    ],
)
def test_every_index_has_what_is_wanted_and_those_that_search_are_no_worse_than_regular(
    spark: SparkSession, method: str, select: str
) -> None:
    found = built(
        spark, replace(QUICK, method=method, select=select, clusters=None if method == "regular" else 4)
    )
    assert found.all_events.false_negatives == 0
    assert int(found.all_events.wanted.sum()) == wanted()
    with seen(spark, [EVENTS], None, SCHEMA) as events:
        plain, _ = evaluate(events.events, LOAD, regular(SCHEMA, QUICK.bits), QUICK.budget)
    if method == "boundary" or select == "greedy":
        assert found.all_events.false_positives < plain.false_positives


def test_the_same_events_give_the_same_index_from_files_and_from_a_log(
    spark: SparkSession, tmp_path: Path
) -> None:
    import_files(tmp_path / "log", SCHEMA, EVENTS)
    filed, logged = built(spark), built(spark, log=tmp_path / "log")
    assert to_json(built(spark).index) == to_json(filed.index)
    assert filed.all_events.to_json()["wanted"] == logged.all_events.to_json()["wanted"] == wanted()


def test_an_index_that_is_no_better_than_the_current_one_changes_nothing(spark: SparkSession) -> None:
    first = built(spark)
    again = built(spark, current=first.index)
    assert not again.replaced
    assert again.index == first.index
    better = built(spark, current=regular(SCHEMA, 2))
    assert better.replaced
    assert better.index.epoch == 1


def submit(*words: object) -> subprocess.CompletedProcess[str]:
    """As a user of a cluster starts it."""
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment.pop("PYSPARK_GATEWAY_PORT", None)
    program = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    script = [sys.executable, "-m", "plerion.cli.submit"]
    file = subprocess.run(script, check=True, capture_output=True, text=True).stdout.strip()
    return subprocess.run(
        [str(program), "--master", "local[2]", "--conf", "spark.ui.enabled=false", file, *map(str, words)],
        check=False,
        capture_output=True,
        text=True,
        cwd=EXAMPLES,
        env=environment,
        timeout=300,
    )


@pytest.mark.slow
def test_spark_submit_builds_the_index_that_the_command_builds(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "index.json"
    words = ("--schema", "schema.yaml", "--events", "events.csv", "--subscriptions", "subscriptions.csv")
    options = (
        "--bits",
        12,
        "--budget",
        8,
        "--clusters",
        4,
        "--sample-rows",
        FEW.rows,
        "--out",
        out,
        "--json",
    )
    done = submit("index", "build", *words, *options)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["false_negatives"] == 0
    assert from_json(out.read_bytes()) == built(spark).index
