"""Sums over events from which attributes are selected: match totals, moments of W, similarity, and interval counts.

All work on the projections of the subscriptions on single attributes (`learning.projection`), which travel once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from plerion.content.schema import Schema
from plerion.learning import summaries
from plerion.learning.projection import Projections
from plerion.learning.similarity import attribute_pairs
from plerion.learning.similarity import similarity as pair_matches
from plerion.learning.summaries import WMoments
from plerion.pipeline import schemas
from plerion.pipeline.session import shipped
from plerion.pipeline.steps.batches import (
    Columns,
    Floats,
    Ints,
    add_to,
    column_arrays,
    counts_by,
    listed,
    partials,
    pieces,
    summed,
)

ROWS = 400_000  # a piece: the pairs of intervals cost the same for few events as for many
ONE = -1
"""Stands for the constant 1 among the rows of W: its product with a row is the row's sum, with itself the events."""


def match_totals(events: DataFrame, schema: Schema, projections: Projections) -> DataFrame:
    """By attribute d, the sum over events of |S_e^d|."""

    def partial(known: Projections, parts: Iterator[Floats]) -> Columns:
        total = np.zeros(known.attributes, np.int64)
        for points in parts:
            total += summaries.match_totals(known, points)
        return [np.arange(len(total)), total]

    return summed(_partials(events, schema, projections, partial, schemas.MATCH_TOTALS), "attribute")


def w_moments(events: DataFrame, schema: Schema, projections: Projections) -> DataFrame:
    """Sums and sums of products of the rows of W, exactly; `ONE` stands for a row of ones."""

    def partial(known: Projections, parts: Iterator[Floats]) -> Columns:
        width = known.attributes
        total = WMoments(0, (0,) * width, ((0,) * width,) * width)
        for points in parts:
            total += summaries.w_moments(known, points)
        rows = [(ONE, ONE, total.events), *((ONE, a, found) for a, found in enumerate(total.sums))]
        rows += [(i, j, total.products[i][j]) for i, j in attribute_pairs(width)]
        one, other, found = zip(*rows, strict=True)
        return [np.array(one), np.array(other), np.array([Decimal(total) for total in found], np.object_)]

    return summed(_partials(events, schema, projections, partial, schemas.W_MOMENTS), "one", "other")


def similarity(events: DataFrame, schema: Schema, projections: Projections) -> DataFrame:
    """By pair of attributes i <= j, the sum over events of |S_e^i ∩ S_e^j|."""

    def partial(known: Projections, parts: Iterator[Floats]) -> Columns:
        total = np.zeros((known.attributes, known.attributes), np.int64)
        for points in pieces(parts, ROWS):
            total += pair_matches(known, points)
        one, other = np.array(attribute_pairs(known.attributes)).T
        return [one, other, total[one, other]]

    return summed(_partials(events, schema, projections, partial, schemas.SIMILARITY), "one", "other")


def interval_counts(events: DataFrame, schema: Schema, projections: Projections) -> DataFrame:
    """By attribute and rank, the events between two neighbouring ends of subscriptions."""

    def partial(known: Projections, parts: Iterator[Floats]) -> Columns:
        total = [np.zeros(len(along.depth), np.int64) for along in known.along]
        for points in parts:
            add_to(total, summaries.interval_counts(known, points))
        return listed(total)

    return summed(_partials(events, schema, projections, partial, schemas.INTERVALS), "attribute", "rank")


def _partials(
    events: DataFrame,
    schema: Schema,
    projections: Projections,
    partial: Callable[[Projections, Iterator[Floats]], Columns],
    table: StructType,
) -> DataFrame:
    sent = shipped(events.sparkSession, projections)

    def reduce(parts: Iterator[Floats]) -> Iterator[Columns]:
        yield partial(sent.value, parts)

    return partials(events, schema, reduce, table)


def totals(table: DataFrame, schema: Schema) -> Ints:
    """Match totals on the driver."""
    rows, found = column_arrays(table), np.zeros(len(schema.names), np.int64)
    found[rows["attribute"]] = rows["matches"]
    return found


def moments_of_w(table: DataFrame, schema: Schema) -> WMoments:
    """The moments of W on the driver."""
    found = {(row["one"], row["other"]): int(row["total"]) for row in table.collect()}
    names = range(len(schema.names))
    products = tuple(tuple(found.get((min(i, j), max(i, j)), 0) for j in names) for i in names)
    return WMoments(found.get((ONE, ONE), 0), tuple(found.get((ONE, a), 0) for a in names), products)


def similarities(table: DataFrame, schema: Schema) -> Ints:
    """The similarities on the driver, as a symmetric matrix."""
    rows, found = column_arrays(table), np.zeros((len(schema.names),) * 2, np.int64)
    found[rows["one"], rows["other"]] = found[rows["other"], rows["one"]] = rows["matches"]
    return found


def counts_by_rank(table: DataFrame, projections: Projections) -> tuple[Ints, ...]:
    """The interval counts on the driver, for each attribute by rank."""
    return counts_by(table, "rank", "events", [len(along.depth) for along in projections.along])
