"""Packing puts neighbours together, in clusters of about equal size, none of them empty."""

from math import inf

import numpy as np
import pytest

from plerion.content.schema import Enumeration, Number, Schema
from plerion.learning.packing import packed, rectangles

SCHEMA = Schema(
    (Number("x", 0, 9, integer=True), Number("p", 1, 100, scale="log"), Enumeration("c", ("a", "b")))
)


def some_rectangles(count: int, seed: int = 1, width: int = 4) -> np.ndarray:
    ends = np.random.default_rng(seed).random((count, width, 2))
    return np.sort(ends, axis=2)


@pytest.mark.parametrize("clusters", [1, 2, 3, 7, 16, 60, 61, 1000])
@pytest.mark.parametrize("width", [1, 2, 8])
def test_clusters_are_numbered_without_gaps_and_equally_full(clusters: int, width: int) -> None:
    sizes = np.bincount(packed(some_rectangles(60, width=width), clusters))
    assert len(sizes) == min(clusters, 60)
    assert sizes.min() >= 1
    assert sizes.max() - sizes.min() <= 1 + 60 // len(sizes) // 2


def test_equal_rectangles_share_a_cluster_and_may_leave_fewer() -> None:
    some = some_rectangles(3)[[0, 1, 2, 0, 1, 2, 2]]
    found = packed(some, 5)
    assert found.tolist() == found[[0, 1, 2, 0, 1, 2, 2]].tolist()
    assert sorted(set(found.tolist())) == [0, 1, 2]


def test_hotspots_that_lie_apart_are_told_apart() -> None:
    centres = np.array([[0.1, 0.1], [0.1, 0.9], [0.9, 0.1], [0.9, 0.9]])
    jitter = np.random.default_rng(2).uniform(-0.05, 0.05, (40, 2))
    middle = np.repeat(centres, 10, axis=0) + jitter
    found = packed(np.stack((middle - 0.01, middle + 0.01), axis=-1), 4).reshape(4, 10)
    assert all(len(set(group)) == 1 for group in found.tolist())
    assert len(set(found[:, 0].tolist())) == 4


def test_the_order_of_the_rectangles_does_not_matter() -> None:
    some = some_rectangles(50)
    order = np.random.default_rng(3).permutation(50)
    assert packed(some[order], 6).tolist() == packed(some, 6)[order].tolist()


def test_no_rectangles_are_in_no_cluster() -> None:
    assert packed(np.empty((0, 3, 2)), 4).tolist() == []
    with pytest.raises(ValueError, match="at least 1"):
        packed(some_rectangles(2), 0)


def test_a_rectangle_encloses_all_boxes_as_shares_of_the_axes() -> None:
    boxes = np.array([[[0, 5], [10, 100], [0, 1]], [[5, 10], [-inf, 10], [-inf, inf]]], np.float64)
    found = rectangles(SCHEMA, np.array([0, 0, 2, 2]), boxes)
    assert found[[0, 2]].tolist() == np.zeros((2, 3, 2)).tolist()
    np.testing.assert_allclose(found[1], [[0, 1], [0, 1], [0, 1]])
    alone = rectangles(SCHEMA, np.array([0, 1]), boxes[:1])
    np.testing.assert_allclose(alone[0], [[0, 0.5], [0.5, 1], [0, 0.5]])
