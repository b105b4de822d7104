"""Adaptive cuts: every halving leaves the same workload on both sides (seed 004 §III-B).

The workload of a region is the number of (event, subscription) pairs that match in it, so an event weighs as much as
the subscriptions that it matches. Along one attribute the cuts are then quantiles of that weight. Where a cell holds
its whole workload at one position it can be parted no further, and the cut isolates that position.

The same is done per cell as a k-d tree: the first cuts part the space into clusters, each of which has quantiles of
its own. That pays where the workload of one region differs from that of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from plerion.content.box import Box
from plerion.content.schema import Attribute, Enumeration, Number, Schema
from plerion.index.content_index import Cluster, ContentIndex, everywhere
from plerion.index.cuts import MAX_EXPLICIT_BITS, Cuts, equal_cuts, explicit_cuts, pattern
from plerion.index.dz import WHOLE, Dz
from plerion.index.propose import round_robin

Floats = npt.NDArray[np.float64]


def workload_cuts(
    attribute: Attribute,
    bits: int,
    positions: Floats,
    weights: Floats,
    ends: tuple[float, float] = (-inf, inf),
) -> Cuts:
    """2**bits cells of equal weight, as far as the positions (in order, each with its weight) can be parted."""
    low, high = max(ends[0], attribute.start), min(ends[1], attribute.end)
    held = (weights > 0) & (positions >= low) & (positions < high)
    at, mass = positions[held], weights[held]
    if bits == 0 or not len(at):
        return equal_cuts(attribute, bits, *((low, high) if low < high else (None, None)))
    total = np.concatenate(([0.0], np.cumsum(mass)))
    cuts = np.empty((1 << bits) - 1)
    _halve(attribute, at, total, (0, len(at)), (low, high), cuts)
    return explicit_cuts(attribute, cuts)


def _halve(
    attribute: Attribute,
    at: Floats,
    total: Floats,
    rows: tuple[int, int],
    ends: tuple[float, float],
    cuts: Floats,
) -> None:
    """Fills `cuts`, 2**n - 1 of them, with the halvings of the cell [low, high) that holds these rows."""
    if not len(cuts):
        return
    (first, last), (low, high) = rows, ends
    if first == last:
        cut, parted = _middle(attribute, low, high), first
    elif first + 1 == last:
        alone = at[first]
        cut, parted = (alone, first) if low < alone else (min(_next(attribute, alone), high), last)
    else:
        half = (total[first] + total[last]) / 2
        parted = int(np.searchsorted(total[first : last + 1], half)) + first
        parted = min(max(parted, first + 1), last - 1)
        if parted - 1 > first and half - total[parted - 1] < total[parted] - half:
            parted -= 1
        cut = at[parted]
    middle = len(cuts) // 2
    cuts[middle] = cut
    _halve(attribute, at, total, (first, parted), (low, cut), cuts[:middle])
    _halve(attribute, at, total, (parted, last), (cut, high), cuts[middle + 1 :])


def _middle(attribute: Attribute, low: float, high: float) -> float:
    middle = low + (high - low) / 2
    return float(np.ceil(middle)) if _whole(attribute) else middle


def _next(attribute: Attribute, position: float) -> float:
    return position + 1 if _whole(attribute) else float(np.nextafter(position, np.inf))


def _whole(attribute: Attribute) -> bool:
    return isinstance(attribute, Enumeration) or attribute.integer


Histograms: TypeAlias = Sequence[tuple[Floats, Floats]]
"""By attribute: positions in order, and the workload at each."""


def adaptive(
    schema: Schema,
    bits: int,
    attributes: Sequence[int],
    histograms: Histograms,
    epoch: int = 0,
) -> ContentIndex:
    """One cluster, the attributes in turn, cuts at equal workload."""
    order = round_robin(schema, attributes, bits, MAX_EXPLICIT_BITS)
    cuts = tuple(
        workload_cuts(attribute, order.count(a), *histograms[a])
        for a, attribute in enumerate(schema.attributes)
    )
    return ContentIndex(schema, (Cluster(WHOLE, everywhere(schema), order, cuts),), epoch)


def weighed(points: Floats, weights: Floats) -> list[tuple[Floats, Floats]]:
    """For each attribute the positions that occur, in order, and the weight of the events there."""
    found = []
    for column in points.T:
        positions, place = np.unique(column, return_inverse=True)
        found.append((positions, np.bincount(place, weights, len(positions)).astype(np.float64)))
    return found


def adaptive_tree(
    schema: Schema,
    bits: int,
    attributes: Sequence[int],
    points: Floats,
    weights: Floats,
    clusters: int,
    epoch: int = 0,
) -> ContentIndex:
    """The first halvings part the space into up to `clusters` tiles, each with quantiles of its own."""
    tiles = [(WHOLE, everywhere(schema), np.arange(len(points)))]
    for level in range(min(bits, clusters.bit_length() - 1)):
        a = attributes[level % len(attributes)]
        tiles = [half for tile in tiles for half in _halved(schema.attributes[a], a, tile, points, weights)]
    return ContentIndex(
        schema, tuple(_tile(schema, bits, attributes, tile, points, weights) for tile in tiles), epoch
    )


_Tile: TypeAlias = tuple[Dz, Box, npt.NDArray[np.int64]]


def _halved(attribute: Attribute, a: int, tile: _Tile, points: Floats, weights: Floats) -> list[_Tile]:
    """Both halves, or the tile itself where its events cannot be parted along the attribute."""
    id, box, rows = tile
    positions, mass = weighed(points[rows, a : a + 1], weights[rows])[0]
    cuts = workload_cuts(attribute, 1, positions, mass, (box.lows[a], box.highs[a])).at
    if cuts is None or not max(box.lows[a], attribute.start) < cuts[0] < min(box.highs[a], attribute.end):
        return [tile]
    cut = cuts[0]
    lower = Box(box.lows, (*box.highs[:a], cut, *box.highs[a + 1 :]))
    upper = Box((*box.lows[:a], cut, *box.lows[a + 1 :]), box.highs)
    above = points[rows, a] >= cut
    return [(id.child(0), lower, rows[~above]), (id.child(1), upper, rows[above])]


def _tile(
    schema: Schema, bits: int, attributes: Sequence[int], tile: _Tile, points: Floats, weights: Floats
) -> Cluster:
    id, box, rows = tile
    turn = id.length % len(attributes)
    order = round_robin(schema, [*attributes[turn:], *attributes[:turn]], bits - id.length, MAX_EXPLICIT_BITS)
    here = weighed(points[rows], weights[rows])
    cuts = tuple(
        workload_cuts(attribute, order.count(a), *here[a], (box.lows[a], box.highs[a]))
        for a, attribute in enumerate(schema.attributes)
    )
    return Cluster(id, box, order, cuts)


def bin_positions(attribute: Attribute, axis: Cuts) -> Floats:
    """Where the bins of equal cuts begin, up to rounding: what a histogram's counts stand for."""
    share = np.arange(axis.cells) / axis.cells
    positions: Floats = axis.low + share * (axis.end - axis.low)
    if isinstance(attribute, Number) and attribute.scale == "log":
        low, end = pattern(axis.low), pattern(axis.end)
        positions = (low + (share * (end - low)).astype(np.int64)).view(np.float64)
    return np.ceil(positions) if _whole(attribute) else positions
