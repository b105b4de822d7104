"""Selective indexes put every subscription into the rectangle of its group, and cost no wanted event."""

from math import ceil, inf, log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plerion.content.schema import Number, Schema
from plerion.index.codec import from_json, to_json
from plerion.index.content_index import ContentIndex
from plerion.index.cuts import ContentIndexError
from plerion.index.propose import regular
from plerion.learning.packing import packed, rectangles
from plerion.learning.selective import selective
from plerion.learning.workload import Ints, Workload
from tests.laws.indexes import costly_law
from tests.laws.test_learning_judge import LINE, faults, interest, line, workloads

BITS = 10


def outside(index: ContentIndex, load: Workload, groups: Ints) -> list[int]:
    """Interests that do not lie in the rectangle of their group, or in one that is wider than its members."""
    numbers = sorted({int(g) for i, g in enumerate(groups) if interest(load, i)})
    found = []
    for cluster, number in zip(index.clusters, numbers, strict=True):
        members = [i for i, g in enumerate(groups) if g == number]
        boxes = [box for i in members for box in interest(load, i)]
        lows = tuple(min(column) for column in zip(*(box.lows for box in boxes), strict=True))
        highs = tuple(max(column) for column in zip(*(box.highs for box in boxes), strict=True))
        found += members if (lows, highs) != (cluster.box.lows, cluster.box.highs) else []
    return found


@costly_law
@given(workloads(), st.integers(1, 20), st.data())
def test_every_interest_lies_in_the_rectangle_of_its_group(
    load: Workload, clusters: int, data: st.DataObject
) -> None:
    chosen = data.draw(st.lists(st.sampled_from(range(len(load.schema.attributes))), min_size=1, unique=True))
    index = selective(load, BITS, chosen, clusters, epoch=2)
    if not len(load.bounds):
        assert index == regular(load.schema, BITS, chosen, 2)
        return
    groups = packed(rectangles(load.schema, load.offsets, load.bounds), clusters)
    assert outside(index, load, groups) == []
    count = len(index.clusters)
    assert count <= min(clusters, load.interests)
    assert {c.id.length for c in index.clusters} == {ceil(log2(count))}
    assert len({c.id for c in index.clusters}) == count
    assert all(set(c.order) <= set(chosen) for c in index.clusters)
    assert index.bits <= BITS
    assert index.epoch == 2
    assert from_json(to_json(index)) == index


@costly_law
@given(workloads(), st.integers(1, 20))
def test_a_selective_index_costs_no_wanted_event(load: Workload, clusters: int) -> None:
    every = range(len(load.schema.attributes))
    assert faults(selective(load, BITS, every, clusters), load) == []


@costly_law
@given(workloads(), st.data())
def test_groups_can_be_given(load: Workload, data: st.DataObject) -> None:
    size = load.interests
    groups = np.array(data.draw(st.lists(st.integers(0, 5), min_size=size, max_size=size)), np.int64)
    index = selective(load, BITS, [0], 1, groups)
    if len(load.bounds):
        assert outside(index, load, groups) == []
    assert faults(index, load) == []


def test_bits_part_the_rectangle_and_not_the_space() -> None:
    load = line([0.0], [[0, 2]], [[4, 8]])
    low, high = selective(load, 2, [0], 2).clusters
    assert [str(code) for x in range(8) for code in selective(load, 2, [0], 2).codes((x,))] == [
        "00",
        "01",
        "10",
        "10",
        "11",
        "11",
    ]
    assert (low.cuts[0].low, low.cuts[0].end) == (0, 2)
    assert (high.cuts[0].low, high.cuts[0].end) == (4, 8)


def test_sides_without_end_are_those_of_the_axis() -> None:
    plane = Schema((Number("x", 0, 7, integer=True), Number("y", -4, 4)))
    load = Workload.of_boxes(plane, np.empty((0, 2)), np.array([[[-inf, 3.0], [0.0, inf]]]))
    (cluster,) = selective(load, 4, [0, 1], 1).clusters
    assert (cluster.box.lows, cluster.box.highs) == ((-inf, 0.0), (3.0, inf))
    assert [(c.low, c.end) for c in cluster.cuts] == [(0.0, 3.0), (0.0, plane.attributes[1].end)]


def test_more_clusters_than_the_bits_can_number_are_refused() -> None:
    load = line([0.0], [[0, 1]], [[2, 3]], [[4, 5]])
    assert len(selective(load, 2, [0], 50).clusters) == 3
    with pytest.raises(ContentIndexError, match="3 clusters need ids of 2 bits, there are 1"):
        selective(load, 1, [0], 3)


def test_the_oracle_sees_a_rectangle_that_is_not_that_of_its_group() -> None:
    load = line([0.0], [[0, 1]], [[2, 3]], [[4, 5]])
    index = selective(load, 3, [0], 1, np.array([0, 0, 1]))
    assert outside(index, load, np.array([0, 0, 1])) == []
    assert outside(index, load, np.array([0, 1, 1])) == [0, 1, 2]
    assert index.schema == LINE
