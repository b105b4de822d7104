"""Independent pieces of work, spread over the machines that Spark has, with the results as they come.

Each point is a job of one task: a job's results arrive when all of its tasks are done, and points differ in
cost by orders of magnitude. Spark queues what it has no core for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING

import pyarrow as pa

from plerion.pipeline.errors import plainly
from plerion.pipeline.session import Session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT_ONCE = 64  # jobs that wait in Spark; each holds a thread here


def sweep(session: Session, points: Sequence[str], work: Callable[[str], str]) -> Iterator[str]:
    """What `work` makes of each point, in the order in which they are done.

    `work` has to be importable where it runs. The first failure ends the sweep; points that wait are then not begun.
    """
    if not points:
        return
    pool = ThreadPoolExecutor(min(AT_ONCE, len(points)))
    try:
        waiting = [pool.submit(_result, session.spark, point, work) for point in points]
        for done in as_completed(waiting):
            with plainly("a point of the sweep failed"):
                found = done.result()
            yield found
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _result(spark: SparkSession, point: str, work: Callable[[str], str]) -> str:
    def over(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"result": [work(each) for each in batch.column(0).to_pylist()]})

    frame = spark.createDataFrame([(point,)], "point string").coalesce(1)
    rows = frame.mapInArrow(over, "result string").collect()
    return str(rows[0][0])
