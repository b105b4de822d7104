"""There is one session a process, and one line says why there is none. What needs no JVM is tested without."""

import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest
from pyspark.sql import SparkSession

from plerion.pipeline.address import check_answers, check_master, on_loopback
from plerion.pipeline.errors import plainly
from plerion.pipeline.session import PipelineError, session, shipped

NOT_THERE = {
    "spark://127.0.0.1:1": "no Spark master answers: 127.0.0.1:1 said: connection refused",
    "spark://nosuch.invalid:7077": "nosuch.invalid:7077 has no known address",
    "spark://127.0.0.1:1,127.0.0.1:2": "127.0.0.1:1 said: connection refused, 127.0.0.1:2 said",
    "spark://127.0.0.1": "is no address; write spark://host:port",
    "spark://:7077": "is no address",
    "spark://[::1]:99999": "is no address",
    "local[0]": "'local[0]' is no master; use local[*]",
    "mesos": "'mesos' is no master",
    "": "'' is no master",
}


@pytest.mark.parametrize("master", NOT_THERE)
def test_a_master_that_cannot_be_used_is_one_line_at_once(master: str) -> None:
    began = monotonic()
    with pytest.raises(PipelineError) as refused:
        check_master(master)
    assert NOT_THERE[master] in str(refused.value)
    assert "\n" not in str(refused.value)
    assert monotonic() - began < 15


def test_a_connect_server_that_is_not_there_is_one_line() -> None:
    with pytest.raises(PipelineError, match=r"no Spark Connect server answers: 127\.0\.0\.1:1 said"):
        check_answers("sc://127.0.0.1:1/;user_id=me")
    with pytest.raises(PipelineError, match="is no address; write sc://host:port"):
        check_answers("sc://")


def test_one_answering_master_of_several_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        check_answers(f"spark://127.0.0.1:1,127.0.0.1:{listening.getsockname()[1]}")


def test_java_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(PipelineError, match=r"has no bin/java; point it to Java 17 or later, or unset it"):
        check_master("local[*]")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PipelineError, match=r"there is no Java.*install Java 17 or later"):
        check_master("local[*]")


def test_only_masters_on_this_machine_are_on_loopback() -> None:
    near = ["local", "local[*]", "local[2,3]", "spark://127.0.0.1:7077", "spark://localhost:1,[::1]:2"]
    far = ["spark://10.1.2.3:7077", "spark://master:7077", "yarn", "k8s://https://x:443"]
    assert all(map(on_loopback, near))
    assert not any(map(on_loopback, far))


FAILURES = {
    # Somebody listens, but it is no master.
    "mute": (
        "from plerion.pipeline import gateway; gateway.MASTER_SECONDS = 4.0\n"
        "listening = socket.create_server(('127.0.0.1', 0))\n"
        "session(f'spark://127.0.0.1:{listening.getsockname()[1]}')",
        "did not answer as a Spark master within 4 s; check that a master of the same Spark version",
    ),
    # Java that is too old, or something else that calls itself so.
    "odd Java": (
        "home = Path(tempfile.mkdtemp()); (home / 'bin').mkdir()\n"
        "(home / 'bin' / 'java').write_text('#!/bin/sh\\necho java.lang.UnsupportedClassVersionError >&2; exit 1')\n"
        "(home / 'bin' / 'java').chmod(0o755)\n"
        "os.environ['JAVA_HOME'] = str(home)\n"
        "session('local[1]')",
        "Spark did not start; use Java 17 or later: this one is too old for Spark",
    ),
}


@pytest.mark.parametrize("kind", FAILURES)
def test_a_start_that_fails_shows_no_traceback_and_ends_within_bounds(kind: str, tmp_path: Path) -> None:
    work, line = FAILURES[kind]
    program = (
        "import os, socket, tempfile\nfrom pathlib import Path\n"
        "from plerion.pipeline.session import PipelineError, session\n"
        "try:\n    " + work.replace("\n", "\n    ") + "\nexcept PipelineError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=True, cwd=tmp_path
    )
    assert line in done.stdout
    assert done.stdout.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_session_is_the_same_until_it_is_stopped(spark: SparkSession) -> None:
    again = session("local[2]")
    assert again.spark is spark
    assert again.start_seconds > 0
    with pytest.raises(PipelineError, match=r"already runs Spark on local\[2\], not on local\[1\]"):
        session("local[1]")
    assert spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == "50000"


def test_what_is_shipped_arrives(spark: SparkSession) -> None:
    sent = shipped(spark, {"a": 1})
    assert sent.value == {"a": 1}
    assert spark.sparkContext.parallelize([1, 2]).map(lambda x: x + sent.value["a"]).collect() == [2, 3]


def test_what_fails_in_a_task_is_told_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    def fail(_: int) -> int:
        raise ValueError("the seventh row\nis odd")

    (tmp_path / "torn.parquet").write_text("no Parquet")
    works: dict[str, Callable[[], object]] = {
        "ValueError: the seventh row": lambda: spark.sparkContext.parallelize([1]).map(fail).collect(),
        "[TABLE_OR_VIEW_NOT_FOUND]": lambda: spark.sql("select * from nowhere"),
        "torn.parquet": lambda: spark.read.schema("x double").parquet(str(tmp_path)).collect(),
    }
    for line, work in works.items():
        with pytest.raises(PipelineError) as failed, plainly("counting"):
            work()
        assert str(failed.value).startswith("counting: ")
        assert line in str(failed.value)
        assert "\n" not in str(failed.value)


def test_spark_leaves_nothing_in_the_working_directory(spark: SparkSession) -> None:
    spark.sql("select 1").collect()
    for name in ("spark-warehouse", "metastore_db", "derby.log", "artifacts"):
        assert not Path(name).exists()
