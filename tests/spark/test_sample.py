"""A sample is a bounded part of the events, the same every time, and copies of an event are drawn one by one."""

from collections import Counter

import numpy as np
import pytest
from pyspark.sql import SparkSession

from plerion.pipeline.errors import PipelineError
from plerion.pipeline.steps.sample import MAX_ROWS, halves, hashed, sample, smallest
from tests.spark.twins import SCHEMA, WORKLOADS, frame, workload

WORD = 2**64 - 1


def mixed(word: int) -> int:
    word = (word + 0x9E3779B97F4A7C15) & WORD
    word = ((word ^ word >> 30) * 0xBF58476D1CE4E5B9) & WORD
    word = ((word ^ word >> 27) * 0x94D049BB133111EB) & WORD
    return word ^ word >> 31


def hash_of(event: list[float], seed: int, partition: int, row: int) -> int:
    """The hash in plain whole numbers."""
    word = mixed(row ^ mixed((seed & WORD) ^ mixed(partition)))
    for position in event:
        bits = int(np.array([position + 0.0]).view(np.uint64)[0])
        word = mixed(word ^ bits)
    return word


def test_the_events_with_the_smallest_hashes_are_kept_however_they_come_in_batches() -> None:
    points = workload(300, 0, 8).points
    words = [hash_of(event, -3, 7, row) for row, event in enumerate(points.tolist())]
    assert hashed(points, -3, 7, 0).tolist() == words
    for size in (1, 7, 64, 300):
        batches = (points[at : at + size] for at in range(0, 300, size))
        kept, found = smallest(batches, 10, -3, 7)
        assert sorted(found.tolist()) == sorted(words)[:10]
        assert [
            hash_of(event, -3, 7, words.index(word))
            for event, word in zip(kept.tolist(), found.tolist(), strict=True)
        ] == found.tolist()


@pytest.mark.parametrize("rows", [1, 20, 90, 1000])
def test_a_sample_is_a_part_of_the_events_and_the_same_every_time(spark: SparkSession, rows: int) -> None:
    points = WORKLOADS["many"].points
    events = frame(spark, points)
    one, other = (halves(sample(events, SCHEMA, rows, seed=4), SCHEMA) for _ in range(2))
    drawn = Counter(map(tuple, np.concatenate(one).tolist()))
    assert drawn.total() == min(rows, len(points))
    assert drawn <= Counter(map(tuple, points.tolist()))
    assert [half.tolist() for half in one] == [half.tolist() for half in other]


def test_another_seed_draws_another_sample(spark: SparkSession) -> None:
    events = frame(spark, WORKLOADS["many"].points)
    one, other = (np.concatenate(halves(sample(events, SCHEMA, 20, seed), SCHEMA)) for seed in (1, 2))
    assert sorted(one.tolist()) != sorted(other.tolist())


def test_copies_of_an_event_are_drawn_one_by_one_and_dealt_into_both_halves(spark: SparkSession) -> None:
    """Of 20 × 500 copies 1,000 are drawn: 50 of each, give or take 7; a quarter of them is six of that apart."""
    points = np.repeat(WORKLOADS["many"].points[:20], 500, axis=0)
    chosen, judged = halves(sample(frame(spark, points), SCHEMA, 1000), SCHEMA)
    assert abs(len(chosen) - 500) < 100
    drawn = Counter(map(tuple, np.concatenate((chosen, judged)).tolist()))
    assert len(drawn) == len(set(map(tuple, points.tolist())))
    assert all(count > 8 for count in drawn.values())


def test_no_events_make_an_empty_sample(spark: SparkSession) -> None:
    chosen, judged = halves(sample(frame(spark, WORKLOADS["no events"].points), SCHEMA, 10), SCHEMA)
    assert chosen.shape == judged.shape == (0, len(SCHEMA.names))


@pytest.mark.parametrize("rows", [0, -1, MAX_ROWS + 1])
def test_a_sample_without_bound_is_refused(spark: SparkSession, rows: int) -> None:
    with pytest.raises(PipelineError, match="a sample of"):
        sample(frame(spark, WORKLOADS["one event"].points), SCHEMA, rows)
