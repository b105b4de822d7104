"""A real Spark cluster on the loopback address: a master, workers, or a Connect server, each a JVM of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from time import monotonic

import pyspark

SPARK_HOME = Path(pyspark.__file__).parent
START_SECONDS = 60.0
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Cluster:
    url: str
    workers: list[subprocess.Popen[bytes]]


def free_port() -> int:
    with closing(socket.create_server((LOOPBACK, 0))) as taken:
        port: int = taken.getsockname()[1]
        return port


@contextmanager
def running(name: str, arguments: list[str], place: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program of Spark with its own process group, so that what it starts ends with it."""
    place.mkdir(parents=True, exist_ok=True)
    environment: Mapping[str, str] = {
        **os.environ,
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_LOCAL_DIRS": str(place / "local"),
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1",
        "PYSPARK_PYTHON": sys.executable,
    }
    with (place / f"{name}.log").open("wb") as log:
        program = subprocess.Popen(
            [SPARK_HOME / "bin" / "spark-class", *arguments],
            env=environment,
            cwd=place,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield program
        finally:
            end(program)


def end(program: subprocess.Popen[bytes]) -> None:
    """Kills the program and what it started; once more does nothing."""
    with suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)
    program.wait()


def await_listening(port: int, program: subprocess.Popen[bytes]) -> None:
    deadline, pause = monotonic() + START_SECONDS, Event()
    while monotonic() < deadline and program.poll() is None:
        try:
            socket.create_connection((LOOPBACK, port), 1).close()
            return
        except OSError:
            pause.wait(0.05)
    raise AssertionError(
        f"nothing listens on port {port} after {START_SECONDS:.0f} s; exit code {program.poll()}"
    )


@contextmanager
def cluster(place: Path, workers: int = 2) -> Iterator[Cluster]:
    """A standalone master and its workers, of one core each."""
    port = free_port()
    master = [
        "org.apache.spark.deploy.master.Master",
        "--host",
        LOOPBACK,
        "--port",
        str(port),
        "--webui-port",
        "0",
    ]
    worker = ["org.apache.spark.deploy.worker.Worker", "--host", LOOPBACK, "--webui-port", "0"]
    limits = ["--cores", "1", "--memory", "1g"]
    url = f"spark://{LOOPBACK}:{port}"
    with ExitStack() as stack:
        await_listening(port, stack.enter_context(running("master", master, place)))
        started = [
            stack.enter_context(running("worker", [*worker, *limits, url], place / f"worker{n}"))
            for n in range(workers)
        ]
        yield Cluster(url, started)


@contextmanager
def connect_server(place: Path) -> Iterator[str]:
    """A Spark Connect server; its URL."""
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(place / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
    }
    options = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    submit = ["org.apache.spark.deploy.SparkSubmit", "--class", server, "--master", "local[2]"]
    with running("connect", [*submit, *options, "spark-internal"], place) as program:
        await_listening(port, program)
        yield f"sc://{LOOPBACK}:{port}"
