"""Subscriptions in groups of neighbours, packed like the leaves of an R-tree (sort-tile-recursive, Leutenegger 1997).

Where subscriptions gather around several hotspots, a group's bounding rectangle is much smaller than the space and a
selective index spends its bits inside it (seed 004 §III-A). Packing sorts the rectangles by their centres on one
attribute, cuts them into slabs of equal numbers, and goes on within each slab with the next attribute. It is quick and
needs no start values; k-means (`pipeline.steps.rectangles`) looks at all attributes at once.

A rectangle is what encloses all boxes of an interest, as shares of the range of values: 0 is the start of an axis and 1
its end. Attributes that tell the rectangles apart most, by the variance of centres, are cut first.
"""

from __future__ import annotations

from math import ceil

import numpy as np
import numpy.typing as npt

from plerion.content.schema import Attribute, Number, Schema

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def rectangles(schema: Schema, offsets: Ints, bounds: Floats) -> Floats:
    """(interests, attributes, 2): low and high of what encloses each interest's boxes, between 0 and 1.

    An interest without boxes is a point at the start of every axis. A logarithmic axis is shared out by logarithm.
    """
    found = np.zeros((len(offsets) - 1, len(schema.attributes), 2))
    some = np.flatnonzero(np.diff(offsets))
    if len(some):
        for a, attribute in enumerate(schema.attributes):
            low = np.minimum.reduceat(bounds[:, a, 0], offsets[some])
            high = np.maximum.reduceat(bounds[:, a, 1], offsets[some])
            found[some, a, 0], found[some, a, 1] = _shares(low, attribute), _shares(high, attribute)
    return found


def _shares(ends: Floats, attribute: Attribute) -> Floats:
    start, end = attribute.start, attribute.end
    ends = np.clip(ends, start, end)
    if isinstance(attribute, Number) and attribute.scale == "log":
        start, end, ends = float(np.log(start)), float(np.log(end)), np.log(ends)
    return np.clip((ends - start) / (end - start), 0.0, 1.0) if start < end else np.zeros_like(ends)


def packed(rectangles: Floats, clusters: int) -> Ints:
    """For each rectangle a cluster from 0 on, at most `clusters` and none empty; equal ones share a cluster.

    There are fewer clusters only when there are fewer different rectangles.
    """
    if clusters < 1:
        raise ValueError(f"{clusters} clusters: ask for at least 1")
    if not len(rectangles):
        return np.empty(0, np.int64)
    different, which = np.unique(rectangles.reshape(len(rectangles), -1), axis=0, return_inverse=True)
    centres = different.reshape(len(different), -1, 2).mean(axis=2)
    order = np.argsort(-centres.var(axis=0), kind="stable")
    found = np.empty(len(different), np.int64)
    _pack(centres[:, order], np.arange(len(different)), 0, min(clusters, len(different)), 0, found)
    return found[which.reshape(-1)]


def _pack(centres: Floats, rows: Ints, axis: int, clusters: int, first: int, found: Ints) -> None:
    """Numbers the rows from `first` on, in as many clusters; there are at least as many rows."""
    if clusters == 1:
        found[rows] = first
        return
    rows = rows[np.argsort(centres[rows, axis], kind="stable")]
    left = centres.shape[1] - axis
    slabs = min(clusters, ceil(round(clusters ** (1 / left), 9))) if left > 1 else clusters
    for slab in range(slabs):
        begin, end = clusters * slab // slabs, clusters * (slab + 1) // slabs
        part = rows[len(rows) * begin // clusters : len(rows) * end // clusters]
        _pack(centres, part, min(axis + 1, centres.shape[1] - 1), end - begin, first + begin, found)
