"""Indexes whose clusters tile the space: a k-d tree with a grid in each leaf.

Where the clusters' boxes part the whole space without overlapping, every event has exactly one code. Then an
interest may be covered in every cluster that it meets, and none is outside of all of them. Such a tiling is
asked to follow the ids: where the ids of some clusters part into those with 0 and those with 1 at the next bit,
one cut of one attribute parts their boxes. So a prefix shorter than an id is a box, too, and finding an event's
cluster takes a comparison a bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plerion.content.box import Box
from plerion.index.content_index import ContentIndex, everywhere
from plerion.kernel import Int, kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class TileTree(NamedTuple):
    """Inner nodes from the root down: positions from `cut` on are in the upper child. ~c is cluster c."""

    attribute: Ints
    cut: Floats
    lower: Ints
    upper: Ints


ONE_TILE = TileTree(np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))


@lru_cache(maxsize=64)
def tile_tree(index: ContentIndex) -> TileTree | None:
    """The tree, or None where the clusters do not tile the space. One cluster for everything is a tree of no nodes."""
    order = sorted(range(len(index.clusters)), key=lambda c: index.clusters[c].id)
    nodes: list[tuple[int, float, int, int]] = []
    if _grow(index, order, everywhere(index.schema), 0, nodes) is None:
        return None
    if not nodes:
        return ONE_TILE
    columns = zip(*nodes, strict=True)
    attribute, cut, lower, upper = (list(column) for column in columns)
    return TileTree(
        np.array(attribute, np.int64),
        np.array(cut, np.float64),
        np.array(lower, np.int64),
        np.array(upper, np.int64),
    )


def _grow(
    index: ContentIndex, some: Sequence[int], box: Box, bit: int, nodes: list[tuple[int, float, int, int]]
) -> int | None:
    """The node over clusters `some`, whose ids agree in the bits before `bit`, if they tile the box."""
    if len(some) == 1:
        return ~some[0] if index.clusters[some[0]].box == box else None
    halves: tuple[list[int], list[int]] = ([], [])
    for c in some:
        id = index.clusters[c].id
        halves[id.bits >> (id.length - bit - 1) & 1].append(c)
    if not all(halves):
        return _grow(index, some, box, bit + 1, nodes)
    parted = _cut_between(_around(index, halves[0]), _around(index, halves[1]), box)
    if parted is None:
        return None
    attribute, cut = parted
    here = len(nodes)
    nodes.append((attribute, cut, 0, 0))
    below = [_grow(index, half, _around(index, half), bit + 1, nodes) for half in halves]
    if below[0] is None or below[1] is None:
        return None
    nodes[here] = (attribute, cut, below[0], below[1])
    return here


def _around(index: ContentIndex, some: Sequence[int]) -> Box:
    boxes = [index.clusters[c].box for c in some]
    return Box(
        tuple(map(min, zip(*(box.lows for box in boxes), strict=True))),
        tuple(map(max, zip(*(box.highs for box in boxes), strict=True))),
    )


def _cut_between(lower: Box, upper: Box, box: Box) -> tuple[int, float] | None:
    """The attribute and place of the one cut that parts the box into these two."""
    differing = [a for a, (low, high) in enumerate(zip(lower.lows, upper.lows, strict=True)) if low != high]
    if len(differing) != 1:
        return None
    a = differing[0]
    cut = upper.lows[a]
    highs = (*box.highs[:a], cut, *box.highs[a + 1 :])
    lows = (*box.lows[:a], cut, *box.lows[a + 1 :])
    tile = lower == Box(box.lows, highs) and upper == Box(lows, box.highs)
    return (a, cut) if tile else None


@kernel
def tiles_of(tree: TileTree, points: Floats) -> Ints:
    """The cluster of every point."""
    found = np.empty(len(points), np.int64)
    for i in range(len(points)):
        node: Int = 0 if len(tree.cut) else ~0
        while node >= 0:
            above = points[i, tree.attribute[node]] >= tree.cut[node]
            node = tree.upper[node] if above else tree.lower[node]
        found[i] = ~node
    return found
