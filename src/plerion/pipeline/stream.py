"""Watches the false-positive rate of a log that grows, window by window, and asks for a new index when it drifts.

Structured Streaming finds the files, each of them once, and gives them to `Watch.take` batch by batch; tasks read them
(`steps.windows`) and give sums; the rest is arithmetic on the driver (`windows`, `learning.drift`, `proposals`).

Exactly once. Spark writes down which files are in a batch before it runs it, and after a crash runs the same batch
again, unless it was ended; `watch` makes a batch's effects appear once. Lines on the screen follow the window files:
after a crash a line may be missing there, never in the files.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from plerion.content.errors import InputError
from plerion.eventlog.disk import write_whole
from plerion.pipeline.errors import PipelineError, plainly
from plerion.pipeline.options import Options, Outcome
from plerion.pipeline.watch import Watch

FILES = "path string, modificationTime timestamp, length long, content binary"
BATCH_BYTES = 128 << 20  # about four million events of eight attributes
TRIGGER = "1 second"
_LOOK_SECONDS = 0.2


def watch(
    spark: SparkSession,
    options: Options,
    stop: Event,
    once: bool,
    tell: Callable[[dict[str, Any]], None],
    complain: Callable[[str], None],
) -> Outcome:
    """Watches until `stop` is set or, with `once`, until all files that are there now have been read.

    A batch that is under way when `stop` is set is brought to its end.
    """
    with _alone(options.checkpoint):
        _check_begun(options)
        watching = Watch(options, tell, complain)
        Thread(target=watching.rehearse, daemon=True).start()
        with plainly("the stream did not start"):
            query = _started(spark, options, watching, once)
        while query.isActive and not stop.wait(_LOOK_SECONDS):
            pass
        stopped = query.isActive
        watching.end()
        with suppress(Exception) if stopped else plainly("the stream failed"):
            query.stop()
        _check_ended(query, watching, stopped)
        return watching.outcome()


def _started(spark: SparkSession, options: Options, watching: Watch, once: bool) -> StreamingQuery:
    """The query over all files of the log, the oldest first. Their content is left to the tasks."""
    settings = {"recursiveFileLookup": "true", "maxBytesPerTrigger": str(BATCH_BYTES), "maxFileAge": "30d"}
    files = spark.readStream.format("binaryFile").schema(FILES).options(**settings)
    writer = files.load(f"file://{options.log.absolute()}").writeStream.foreachBatch(watching.take)
    writer = writer.option("checkpointLocation", f"file://{(options.checkpoint / 'spark').absolute()}")
    return (writer.trigger(availableNow=True) if once else writer.trigger(processingTime=TRIGGER)).start()


def _check_ended(query: StreamingQuery, watching: Watch, stopped: bool) -> None:
    if watching.failure is not None:
        raise watching.failure
    if not stopped:
        with plainly("the stream failed"):
            error = query.exception()
            if error is not None:
                raise error


def _check_begun(options: Options) -> None:
    """Refuses a checkpoint that was begun for something else; begins one otherwise."""
    for name in (options.log, options.checkpoint):
        if re.search(r"[*?\[\]{}\\:%]", str(name.absolute())):
            raise InputError("Spark takes a character of this name for a pattern", "rename it", str(name))
    options.log.mkdir(parents=True, exist_ok=True)
    said = {"version": 1, "log": str(options.log.resolve()), "window": options.window}
    path = options.checkpoint / "begun.json"
    try:
        begun = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        write_whole(path, msgspec.json.encode(said))
        return
    if begun != said:
        what = f"was begun for {begun.get('log')} with windows of {begun.get('window')} s"
        raise InputError(what, "use that log and --window again, or another --checkpoint", str(path))


@contextmanager
def _alone(checkpoint: Path) -> Iterator[None]:
    """One watch at a time; the system frees the place when the process ends, however it ends."""
    checkpoint.mkdir(parents=True, exist_ok=True)
    opened = os.open(checkpoint, os.O_RDONLY)
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            what = f"{checkpoint} is in use by another watch"
            raise PipelineError(what, "stop that one, or give another --checkpoint") from None
        yield
    finally:
        os.close(opened)
