"""Starts Spark's JVM with its chatter in a file, and turns what can go wrong into one line.

PySpark starts its JVM by a script and talks to it over a socket. The file is where the reason stands when the JVM does
not come up; a Java traceback is never shown. A master that accepts connections but does not speak Spark's protocol
would be waited for a minute: a timer ends the JVM before.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import TimeoutExpired
from threading import Timer
from time import monotonic, sleep
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from plerion.pipeline.errors import PipelineError, said

MASTER_SECONDS = 20.0
WORKER_SECONDS = 30.0
_START_SECONDS = 180.0  # on a busy machine; usually eight
_END_SECONDS = 10.0


def start(settings: Mapping[str, str]) -> SparkSession:
    """A session of a JVM of its own; its standard output and error go to `log` in Spark's local directory."""
    master = settings["spark.master"]
    _set_environment(master)
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    log = Path(settings["spark.local.dir"]) / "log"
    with _hushed(), log.open("ab") as sink:
        try:
            gateway: Any = launch_gateway(conf, {"stdout": sink, "stderr": sink})  # type: ignore[no-untyped-call]  # of PySpark
        except Exception as error:
            raise _failure("Spark did not start", error, log) from None
        try:
            return SparkSession(_context(conf, gateway, master, log))
        except Exception:
            SparkContext._gateway = gateway
            end_jvm()
            raise


def _context(conf: SparkConf, gateway: Any, master: str, log: Path) -> SparkContext:
    cluster = not master.startswith("local")
    timer = Timer(MASTER_SECONDS if cluster else _START_SECONDS, gateway.proc.kill)
    timer.start()
    try:
        context = SparkContext(conf=conf, gateway=gateway)
    except Exception as error:
        if timer.finished.is_set():
            what = f"{master} did not answer as a Spark master within {timer.interval:.0f} s"
            fix = "check that a master of the same Spark version listens there"
            raise PipelineError(what, fix, _end(log)) from None
        raise _failure("Spark did not start", error, log) from None
    finally:
        timer.cancel()
    if master.startswith("spark://"):
        _await_worker(context, master)
    return context


def joined(settings: Mapping[str, str]) -> SparkSession:
    """A session of the JVM that started this process."""
    try:
        spark = SparkSession.builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        for key, value in settings.items():
            spark.conf.set(key, value)
        return spark
    except Exception as error:
        what = f"Spark did not start under spark-submit: {said(error)}"
        raise PipelineError(what, "check the options that spark-submit was given") from None


def connect(url: str, settings: Mapping[str, str]) -> SparkSession:
    """A session of a Spark Connect server."""
    try:
        spark = SparkSession.builder.remote(url).getOrCreate()
        for key, value in settings.items():
            spark.conf.set(key, value)
        return spark
    except Exception as error:
        what = f"{url} does not work as a Spark Connect server: {said(error)}"
        raise PipelineError(what, "check the address and that its Spark is of version 4") from None


def end_jvm() -> None:
    """Ends the JVM that this process started, and waits until it is gone."""
    gateway: Any = SparkContext._gateway
    if gateway is None:
        return
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    with suppress(Exception):  # it may be gone already, which is what we want
        gateway.shutdown()
    if gateway.proc is not None:
        gateway.proc.stdin.close()  # which tells it to end
        try:
            gateway.proc.wait(_END_SECONDS)
        except TimeoutExpired:
            gateway.proc.kill()
            gateway.proc.wait()


def _await_worker(context: SparkContext, master: str) -> None:
    """Returns when an executor is there; a cluster without one would let the first job wait for ever."""
    tracker: Any = context._jsc.sc().statusTracker()
    end = monotonic() + WORKER_SECONDS
    while len(tracker.getExecutorInfos()) < 2:  # the driver counts as one
        if monotonic() > end:
            context.stop()
            what = f"no worker of {master} took this application within {WORKER_SECONDS:.0f} s"
            raise PipelineError(what, "start workers, or wait until they have cores and memory free")
        sleep(0.05)


def _set_environment(master: str) -> None:
    """The workers' Python is this one; on other machines a setting of the user goes first."""
    if master.startswith("local"):
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1")


@contextmanager
def _hushed() -> Iterator[None]:
    """Without the tracebacks that Py4J logs when a JVM ends while it is asked something."""
    loggers = [logging.getLogger(name) for name in ("py4j", "py4j.clientserver", "py4j.java_gateway")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _failure(what: str, error: Exception, log: Path) -> PipelineError:
    written = _end(log)
    for sign, fix in _FIXES.items():
        if sign in written:
            return PipelineError(what, fix, written)
    return PipelineError(f"{what}: {said(error)}", "check that Java 17 or later runs here", written)


def _end(log: Path) -> str:
    return log.read_text(errors="replace")[-4000:]


_FIXES = {
    "UnsupportedClassVersionError": "use Java 17 or later: this one is too old for Spark",
    "Unable to locate a Java Runtime": "install Java 17 or later, or set JAVA_HOME",
    "Could not reserve enough space": "free some memory: Java could not get what it asked for",
    "All masters are unresponsive": "check that a Spark master of the same version listens there",
}
