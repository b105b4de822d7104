"""Every step equals its twin, which is written from the definition, on small workloads of every odd kind."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

from plerion.index.cover import Covers
from plerion.index.dzset import DzColumns
from plerion.index.propose import regular
from plerion.learning.packing import rectangles
from plerion.learning.projection import Projections
from plerion.learning.summaries import WMoments, workload_axes
from plerion.learning.workload import Workload
from plerion.pipeline import schemas
from plerion.pipeline.steps.batches import Floats, Ints, pieces
from plerion.pipeline.steps.evaluate import Asked, evaluated, evaluation
from plerion.pipeline.steps.matches import matches
from plerion.pipeline.steps.projections import (
    counts_by_rank,
    interval_counts,
    match_totals,
    moments_of_w,
    similarities,
    similarity,
    totals,
    w_moments,
)
from plerion.pipeline.steps.rectangles import by_kmeans, by_packing, cluster_numbers
from plerion.pipeline.steps.sample import sample
from plerion.pipeline.steps.statistics import moments, statistics
from plerion.pipeline.steps.workload import workload_by_bin, workload_histogram
from tests.spark import twins
from tests.spark.twins import SCHEMA, WORKLOADS, frame

INDEX, BUDGET = regular(SCHEMA, 9), 3

every_workload = pytest.mark.parametrize("load", WORKLOADS.values(), ids=WORKLOADS.keys())


def counts(found: tuple[Ints, ...]) -> list[dict[int, int]]:
    """By attribute, what is not 0."""
    return [{int(at): int(some[at]) for at in np.flatnonzero(some)} for some in found]


@every_workload
def test_statistics_are_those_of_the_definition(spark: SparkSession, load: Workload) -> None:
    found = moments(statistics(frame(spark, load.points), SCHEMA), SCHEMA)
    for a, expected in enumerate(twins.statistics(load)):
        assert {name: getattr(found, name)[a] for name in expected} == pytest.approx(expected)


@every_workload
def test_the_sums_over_projections_are_those_of_the_definition(spark: SparkSession, load: Workload) -> None:
    events, projections = frame(spark, load.points), Projections.of(load.offsets, load.bounds)
    w = np.array(twins.w_matrix(load), np.int64)
    found = totals(match_totals(events, SCHEMA, projections), SCHEMA)
    assert found.tolist() == w.sum(axis=1).tolist()
    assert moments_of_w(w_moments(events, SCHEMA, projections), SCHEMA) == WMoments(
        len(load.points), tuple(w.sum(axis=1).tolist()), tuple(map(tuple, (w @ w.T).tolist()))
    )
    pairs = similarities(similarity(events, SCHEMA, projections), SCHEMA)
    assert pairs.tolist() == twins.similarity(load)
    ranks = counts_by_rank(interval_counts(events, SCHEMA, projections), projections)
    assert counts(ranks) == twins.interval_counts(load)


@every_workload
def test_matches_and_workload_are_those_of_the_definition(spark: SparkSession, load: Workload) -> None:
    events, axes = frame(spark, load.points), workload_axes(SCHEMA)
    found = matches(events, SCHEMA, load.bounds).toArrow()
    assert found.column(schemas.MATCHES).to_pylist() == twins.matches(load)
    assert found.column_names == [*SCHEMA.names, schemas.MATCHES]
    bins = workload_by_bin(workload_histogram(events, SCHEMA, load.bounds, axes), axes)
    assert counts(bins) == twins.workload_histogram(load, axes)


def tallied(table: DataFrame) -> twins.Counts:
    rows = table.collect()
    assert all(row.false_positives == row.deliveries - row.hits for row in rows)
    assert all(row.false_negatives == row.wanted - row.hits for row in rows)
    return {(row.by, row.number): (row.deliveries, row.wanted, row.hits) for row in rows}


@every_workload
def test_an_evaluation_counts_what_a_loop_over_all_pairs_counts(spark: SparkSession, load: Workload) -> None:
    asked = Asked.of(INDEX, load, BUDGET)
    table = evaluation(frame(spark, load.points), asked).cache()
    expected = twins.evaluation(load, INDEX, BUDGET)
    assert tallied(table) == expected
    found, missed = evaluated(table, asked)
    table.unpersist()
    assert found.false_negatives == 0
    by_interest = [expected.get(("interest", i), (0, 0, 0)) for i in range(load.interests)]
    assert np.stack((found.deliveries, found.wanted, found.hits), axis=1).tolist() == list(
        map(list, by_interest)
    )
    assert missed.tolist() == [expected.get(("attribute", a), (0,))[0] for a in range(len(SCHEMA.names))]
    assert found.host_deliveries.sum() == sum(n for (by, _), (n, _, _) in expected.items() if by == "host")


def test_what_covers_lack_is_counted_at_interests_and_hosts(spark: SparkSession) -> None:
    load, lost = WORKLOADS["many"], frozenset({0, 3, 5})
    asked = Asked.of(INDEX, load, BUDGET)
    kept = [DzColumns.of([]) if i in lost else asked.covers[i] for i in range(load.interests)]
    table = evaluation(frame(spark, load.points), replace(asked, covers=Covers.of(kept)))
    found = tallied(table)
    assert found == twins.evaluation(load, INDEX, BUDGET, lost)
    assert found != twins.evaluation(load, INDEX, BUDGET), "the twin must tell the difference"


@pytest.mark.parametrize("name", ["many", "identical subscriptions", "no subscriptions", "one subscription"])
def test_clusters_are_numbered_without_gaps_and_hold_equal_interests(spark: SparkSession, name: str) -> None:
    load = WORKLOADS[name]
    shapes = rectangles(SCHEMA, load.offsets, load.bounds)
    different = len(np.unique(shapes.reshape(len(shapes), 8), axis=0))
    for asked in (1, 4):
        for table in (by_kmeans(spark, shapes, asked), by_packing(spark, shapes, asked)):
            assert table.dtypes == [("interest", "int"), ("cluster", "int")]
            found = cluster_numbers(table)
            assert len(found) == load.interests
            assert sorted(set(found.tolist())) == list(range(min(asked, different)))
            groups = {tuple(shape.ravel()): set[int]() for shape in shapes}
            for shape, cluster in zip(shapes, found.tolist(), strict=True):
                groups[tuple(shape.ravel())].add(cluster)
            assert all(len(group) == 1 for group in groups.values())


STEPS: dict[str, Callable[[DataFrame, Workload], DataFrame]] = {
    "statistics": lambda events, _: statistics(events, SCHEMA),
    "match totals": lambda events, load: match_totals(events, SCHEMA, projected(load)),
    "moments of W": lambda events, load: w_moments(events, SCHEMA, projected(load)),
    "similarity": lambda events, load: similarity(events, SCHEMA, projected(load)),
    "intervals": lambda events, load: interval_counts(events, SCHEMA, projected(load)),
    "workload": lambda events, load: workload_histogram(events, SCHEMA, load.bounds, workload_axes(SCHEMA)),
    "matches": lambda events, load: matches(events, SCHEMA, load.bounds),
    "sample": lambda events, _: sample(events, SCHEMA, 5),
    "evaluation": lambda events, load: evaluation(events, Asked.of(INDEX, load, BUDGET)),
}
DECLARED = {
    "statistics": schemas.STATISTICS,
    "match totals": schemas.MATCH_TOTALS,
    "moments of W": schemas.W_MOMENTS,
    "similarity": schemas.SIMILARITY,
    "intervals": schemas.INTERVALS,
    "workload": schemas.WORKLOAD,
    "sample": schemas.sample(SCHEMA),
    "evaluation": schemas.EVALUATION,
}
EVERY_WITH_EVERY = ("CartesianProduct", "NestedLoop")


def projected(load: Workload) -> Projections:
    return Projections.of(load.offsets, load.bounds)


def plan(table: DataFrame, capsys: pytest.CaptureFixture[str]) -> str:
    table.explain()
    return capsys.readouterr().out


@pytest.mark.parametrize("name", STEPS)
def test_a_step_gives_the_declared_columns_and_compares_no_events_with_each_other(
    spark: SparkSession, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    load = WORKLOADS["many"]
    table = STEPS[name](frame(spark, load.points), load)
    if name in DECLARED:
        assert [(f.name, f.dataType) for f in table.schema] == [(f.name, f.dataType) for f in DECLARED[name]]
    found = plan(table, capsys)
    assert "MapInArrow" in found
    assert not any(word in found for word in EVERY_WITH_EVERY)


def test_a_cartesian_product_would_be_seen(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    events = frame(spark, WORKLOADS["many"].points)
    assert any(word in plan(events.crossJoin(events), capsys) for word in EVERY_WITH_EVERY)


@pytest.mark.parametrize("sizes", [[], [0], [3], [2, 0, 5, 1], [9, 9]])
def test_pieces_hold_the_same_points_in_the_same_order(sizes: list[int]) -> None:
    parts = [np.full((size, 2), at + 0.5 * np.arange(size)[:, None]) for at, size in enumerate(sizes)]
    whole: Floats = np.concatenate([np.empty((0, 2)), *parts])
    found = list(pieces(parts, 3))
    assert all(len(piece) == 3 for piece in found[:-1])
    assert all(0 < len(piece) <= 3 for piece in found)
    assert np.concatenate([np.empty((0, 2)), *found]).tolist() == whole.tolist()
