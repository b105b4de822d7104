"""Selective indexing: bits are spent inside the bounding rectangles of groups of subscriptions (seed 004 §III-A).

Each group is a cluster with an id of its own, and its equal halves are those of its rectangle. Rectangles may
overlap, and an event in two of them has two codes; an event in none has none, because nobody asked for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np

from plerion.content.box import Box
from plerion.content.schema import Attribute
from plerion.index.content_index import Cluster, ContentIndex
from plerion.index.cuts import ContentIndexError, Cuts, equal_cuts
from plerion.index.dz import Dz
from plerion.index.propose import regular, round_robin
from plerion.learning.packing import packed, rectangles
from plerion.learning.workload import Floats, Ints, Workload


def selective(
    workload: Workload,
    bits: int,
    attributes: Sequence[int],
    clusters: int,
    groups: Ints | None = None,
    epoch: int = 0,
) -> ContentIndex:
    """A cluster for each group of interests; `groups` numbers them from 0, or they are packed like an R-tree.

    An interest that can match nothing belongs to no group. Without any other, the index is a regular one.
    """
    load = workload
    if groups is None:
        groups = packed(rectangles(load.schema, load.offsets, load.bounds), clusters)
    of_box = np.repeat(groups, np.diff(load.offsets))
    numbers = np.unique(of_box)
    if not len(numbers):
        return regular(load.schema, bits, attributes, epoch)
    length = (len(numbers) - 1).bit_length()
    if length > bits:
        raise ContentIndexError(
            f"{len(numbers)} clusters need ids of {length} bits, there are {bits}: ask for fewer"
        )
    order = round_robin(load.schema, attributes, bits - length)
    made = [
        _cluster(load, Dz(place, length), load.bounds[of_box == number], order)
        for place, number in enumerate(numbers)
    ]
    return ContentIndex(load.schema, tuple(made), epoch)


def _cluster(workload: Workload, id: Dz, boxes: Floats, order: tuple[int, ...]) -> Cluster:
    box = Box(tuple(boxes[:, :, 0].min(axis=0).tolist()), tuple(boxes[:, :, 1].max(axis=0).tolist()))
    cuts = tuple(
        _inside(attribute, order.count(a), box.lows[a], box.highs[a])
        for a, attribute in enumerate(workload.schema.attributes)
    )
    return Cluster(id, box, order, cuts)


def _inside(attribute: Attribute, bits: int, low: float, high: float) -> Cuts:
    """Equal halves of the part of the axis that the rectangle has."""
    low = max(low, attribute.start) if isfinite(low) else attribute.start
    high = min(high, attribute.end) if isfinite(high) else attribute.end
    return equal_cuts(attribute, bits, low, high) if low < high else equal_cuts(attribute, bits)
