"""One Spark session a process, started on first use, and every reason why it cannot start as one line.

Four ways to run: inside this process (`local[*]`), on a standalone cluster (`spark://host:port`, or any other master
that Spark knows), under `spark-submit`, whose settings then hold, and through Spark Connect (`sc://host:port`), where
there is no Spark context and therefore no broadcast: `shipped` hides that. Steps need plerion and its dependencies on
the machines that run them.

What Spark writes goes to a log in a temporary directory that goes with the process, as do the warehouse and everything
else that Spark would leave in the working directory. Files are cut into parts by their size alone, not by the number
of cores: the same files give the same partitions everywhere, and with them the same sample (`steps.sample`).
"""

from __future__ import annotations

import atexit
import os
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from plerion.pipeline.address import check_answers, check_master, on_loopback
from plerion.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PipelineError", "Session", "Shipped", "session", "shipped"]

T = TypeVar("T")

BATCH_ROWS = 50_000
SUBMITTED = (
    "PYSPARK_GATEWAY_PORT"  # what `spark-submit` leaves in the environment of the program that it starts
)
_SQL = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS),
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.shuffle.partitions": "4",  # what is shuffled are partial sums: small
    # A part is a 512th of the files, but at least a MiB: a second of a kernel's work or less.
    "spark.sql.files.minPartitionNum": "512",
    "spark.sql.files.openCostInBytes": "1m",
}
_QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.catalogImplementation": "in-memory",
}


@dataclass(slots=True, eq=False)
class Session:
    """A running Spark; leaving its `with` block ends it. `start_seconds` is what Spark itself took to start."""

    spark: SparkSession
    where: str
    start_seconds: float

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends Spark and its JVM; the next `session` starts another one. A second time does nothing."""
        global _running  # noqa: PLW0603 - one a process is what Spark allows
        if _running is not self:
            return
        _running = None
        self.spark.stop()
        if not self.where.startswith("sc://"):
            from plerion.pipeline.gateway import end_jvm  # noqa: PLC0415 - imports PySpark

            end_jvm()


_running: Session | None = None


def session(master: str = "local[*]", remote: str | None = None, app: str = "plerion") -> Session:
    """The process's session, started if there is none; `remote` is a Spark Connect URL and goes before `master`.

    PipelineError says in one line why there can be none, within half a minute of waiting for others.
    """
    global _running  # noqa: PLW0603 - one a process is what Spark allows
    where = remote or master
    if _running is not None:
        if _running.where != where:
            what = f"this process already runs Spark on {_running.where}, not on {where}"
            raise PipelineError(what, "stop that session first, or use another process")
        return _running
    try:
        import pyspark  # noqa: F401, PLC0415 - is it there?
    except ImportError:
        raise PipelineError("PySpark is not installed", "install plerion[pipeline]") from None
    began = monotonic()
    if SUBMITTED in os.environ and not remote:
        spark = _submitted()
    else:
        spark = _connected(where) if remote else _started(master, app)
    _running = Session(spark, where, monotonic() - began)
    return _running


def _submitted() -> SparkSession:
    """The session of the JVM that `spark-submit` started this process from; its master is the one that counts."""
    from plerion.pipeline.gateway import joined  # noqa: PLC0415 - imports PySpark

    return joined(_SQL)


def _connected(url: str) -> SparkSession:
    check_answers(url)
    from plerion.pipeline.gateway import connect  # noqa: PLC0415 - imports PySpark

    return connect(url, _SQL)


def _started(master: str, app: str) -> SparkSession:
    check_master(master)
    from plerion.pipeline.gateway import start  # noqa: PLC0415 - imports PySpark

    return start({**_SQL, **_QUIET, **_places(master), "spark.master": master, "spark.app.name": app})


def _places(master: str) -> dict[str, str]:
    """Where Spark may leave things and listen: on loopback only, when nobody else is to be reached."""
    place = scratch()
    java = f"-XX:TieredStopAtLevel=1 -Dderby.system.home={place} -Djava.io.tmpdir={place}"
    found = {
        "spark.sql.warehouse.dir": f"{place}/warehouse",
        "spark.local.dir": place,
        "spark.driver.extraJavaOptions": java,
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }
    if on_loopback(master):
        found |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return found


_directory: TemporaryDirectory[str] | None = None


def scratch() -> str:
    """A directory that goes with the process."""
    global _directory  # noqa: PLW0603 - lives as long as the process
    if _directory is None:
        _directory = TemporaryDirectory(prefix="plerion-spark-", ignore_cleanup_errors=True)
        atexit.register(_leave)
    return _directory.name


def _leave() -> None:
    if _running is not None:
        _running.stop()
    if _directory is not None:
        _directory.cleanup()


@dataclass(frozen=True, slots=True, eq=False)
class Shipped(Generic[T]):
    """A value that travels inside the function that uses it."""

    value: T


def shipped(spark: SparkSession, value: T) -> Shipped[T]:
    """The value for use in a step's function, as `.value`: a broadcast, or a part of the function on Connect.

    A broadcast reaches each machine once; a captured value is sent with every plan, at most 128 MiB by default.
    """
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return Shipped(value)
    return cast(Shipped[T], spark.sparkContext.broadcast(value))
