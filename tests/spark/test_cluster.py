"""The same job gives the same result in this process, on a cluster, on one that loses a worker, and through Connect."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from plerion.content.schema import MISSING, Enumeration
from plerion.matching.bitset import match_counts
from tests.spark import job
from tests.spark.clusters import Cluster, cluster, connect_server, end
from tests.spark.twins import SCHEMA

ROOT = Path(__file__).parents[2]
JOB_SECONDS = 150.0


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The workload's events in a dozen files, each of them a part."""
    place = tmp_path_factory.mktemp("events")
    for at, points in enumerate(np.array_split(job.LOAD.points, 12)):
        cells = {}
        for a, attribute in enumerate(SCHEMA.attributes):
            values: Any = points[:, a]
            if isinstance(attribute, Enumeration):
                values = [None if rank == MISSING else attribute.values[int(rank)] for rank in values]
                cells[attribute.name] = pa.array(values)
            else:
                cells[attribute.name] = pa.array(values, mask=values == MISSING)
        pq.write_table(pa.table(cells), place / f"{at:02}.parquet")
    return str(place)


@pytest.fixture(scope="module")
def here(spark: SparkSession, events: str) -> dict[str, Any]:
    """What the job gives in this process, as it comes out of JSON."""
    found: dict[str, Any] = json.loads(json.dumps(job.results(spark, events)))
    return found


@contextmanager
def started(**options: object) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.spark.job", json.dumps(options)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        try:
            yield program
        finally:
            program.kill()


def next_line(program: subprocess.Popen[str]) -> Any:
    assert program.stdout is not None
    line = program.stdout.readline()
    assert line, f"the job ended with {program.wait(JOB_SECONDS)}"
    return json.loads(line)


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture(scope="module")
def runs(standalone: Cluster, events: str) -> list[Any]:
    """The job on the cluster, once in peace and once while a worker and its executor are killed half way."""
    with started(master=standalone.url, events=events, executors=2, pause=True) as program:
        peaceful, half_way = next_line(program), next_line(program)
        end(standalone.workers[0])
        return [peaceful, half_way, next_line(program), next_line(program)]


def test_a_cluster_gives_what_one_process_gives(here: dict[str, Any], runs: list[Any]) -> None:
    assert runs[0] == here


def test_a_worker_that_dies_half_way_changes_nothing(here: dict[str, Any], runs: list[Any]) -> None:
    assert runs[1] == "half way"
    assert runs[2] == here["evaluation"]
    assert runs[3] == 1, "one executor must be left"


def test_connect_gives_what_one_process_gives(
    here: dict[str, Any], events: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with (
        connect_server(tmp_path_factory.mktemp("connect")) as url,
        started(remote=url, events=events) as program,
    ):
        assert next_line(program) == here


def test_the_job_counts_what_the_definition_counts(here: dict[str, Any]) -> None:
    matched = match_counts(job.LOAD.bounds, job.LOAD.points)
    assert here["evaluation"]["wanted"] == matched.sum() > 0
    assert here["evaluation"]["false_negatives"] == 0
    assert here["evaluation"]["false_positives"] > 0
    assert here["counted"][-1][:2] == ["x", len(job.LOAD.points)]
    assert len(here["sample"][0]) + len(here["sample"][1]) == 50
