"""Where the work is: each event weighs as much as the interests that it matches (seed 004 §III-B)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from pyspark.sql import DataFrame

from plerion.content.schema import Schema
from plerion.index.cuts import Cuts
from plerion.learning import summaries
from plerion.matching.bitset import match_counts
from plerion.pipeline import schemas
from plerion.pipeline.session import shipped
from plerion.pipeline.steps.batches import Columns, Floats, Ints, add_to, counts_by, listed, partials, summed


def workload_histogram(events: DataFrame, schema: Schema, bounds: Floats, axes: Sequence[Cuts]) -> DataFrame:
    """By attribute and bin of its axis, the sum of the events' counts of exact matches. At most 2**16 bins each."""
    sent = shipped(events.sparkSession, (np.ascontiguousarray(bounds), tuple(axes)))

    def reduce(parts: Iterator[Floats]) -> Iterator[Columns]:
        asked, bins = sent.value
        total = [np.zeros(cuts.cells, np.int64) for cuts in bins]
        for points in parts:
            add_to(total, summaries.workload_histogram(points, match_counts(asked, points), bins))
        yield listed(total)

    return summed(partials(events, schema, reduce, schemas.WORKLOAD), "attribute", "bin")


def workload_by_bin(table: DataFrame, axes: Sequence[Cuts]) -> tuple[Ints, ...]:
    """The histograms on the driver."""
    return counts_by(table, "bin", "matches", [cuts.cells for cuts in axes])
