"""Codes of many events at once: the compiled twin of `Cluster.code`.

A cell number is cut into chunks of six bits; a small table per chunk says where these bits go in the code,
so an event costs two look-ups an attribute instead of a loop over bits. Tables are made once an index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plerion.index.content_index import Cluster, ContentIndex
from plerion.index.cuts import Cuts
from plerion.index.dz import Dz
from plerion.index.dzset import DzColumns, Words
from plerion.index.tiles import TileTree, tile_tree, tiles_of
from plerion.kernel import Int, kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CHUNK = 6
_BLOCK = 256
_EQUAL, _LOG, _EXPLICIT = 0, 1, 2


class CellPlan(NamedTuple):
    """`Cuts` of the attributes that have bits, column-wise, for kernels."""

    attribute: Ints
    kind: Ints
    low: Floats
    factor: Floats
    cells: Ints
    discrete: npt.NDArray[np.bool_]
    cuts: Floats  # all explicit cuts, one attribute after the other
    first_cut: Ints


class BitPlan(NamedTuple):
    """Where each chunk of each attribute's cell number goes in the code."""

    id_high: np.uint64
    id_low: np.uint64
    first_chunk: Ints
    shift: Ints
    high: Words  # (chunks, 64), flat
    low: Words


@dataclass(frozen=True, slots=True, eq=False)
class Codes:
    """Codes of many events: row i says that event `event[i]` has the code `dz` row i."""

    event: Ints
    dz: DzColumns

    def __len__(self) -> int:
        return len(self.event)


def encode(index: ContentIndex, points: Floats) -> Codes:
    """All codes of all points (n, attributes), by event and then by cluster; equal to `index.codes`."""
    points = np.ascontiguousarray(points, dtype=np.float64)
    tree = tile_tree(index)
    if tree is not None:
        return _encode_tiles(index, tree, points)
    parts = [_encode_inside(cluster, points) for cluster in index.clusters]
    event = np.concatenate([part.event for part in parts])
    order = np.argsort(event, kind="stable")
    return Codes(event[order], DzColumns.joined([part.dz for part in parts])[order])


def _encode_tiles(index: ContentIndex, tree: TileTree, points: Floats) -> Codes:
    """Every point has one code: that of the only cluster it lies in."""
    event = np.arange(len(points))
    if len(index.clusters) == 1:
        return Codes(event, _encode_rows(index.clusters[0], points))
    tile = tiles_of(tree, points)
    order = np.argsort(tile, kind="stable")
    ends = np.searchsorted(tile[order], np.arange(len(index.clusters) + 1))
    parts = [
        _encode_rows(cluster, points[order[ends[c] : ends[c + 1]]])
        for c, cluster in enumerate(index.clusters)
        if ends[c] < ends[c + 1]
    ]
    place = np.empty_like(order)
    place[order] = event
    return Codes(event, DzColumns.joined(parts)[place])


def _encode_inside(cluster: Cluster, points: Floats) -> Codes:
    lows, highs = np.array(cluster.box.lows), np.array(cluster.box.highs)
    event = np.flatnonzero(((points >= lows) & (points < highs)).all(axis=1))
    return Codes(event, _encode_rows(cluster, points[event]))


def _encode_rows(cluster: Cluster, points: Floats) -> DzColumns:
    high, low = np.empty(len(points), np.uint64), np.empty(len(points), np.uint64)
    encode_rows(points, cell_plan(cluster), bit_plan(cluster), high, low)
    return DzColumns(high, low, np.full(len(points), cluster.length, np.uint8))


@lru_cache(maxsize=512)
def cell_plan(cluster: Cluster) -> CellPlan:
    return joint_plan([cluster])


def joint_plan(clusters: Sequence[Cluster]) -> CellPlan:
    """The plans of several clusters, one after the other."""
    parted = [(a, cuts) for cluster in clusters for a, cuts in enumerate(cluster.cuts) if cuts.bits]
    active, cuts = [a for a, _ in parted], [cuts for _, cuts in parted]
    explicit = [np.array(c.at if c.at is not None else (), np.float64) for c in cuts]
    return CellPlan(
        attribute=np.array(active, np.int64),
        kind=np.array([_kind(c) for c in cuts], np.int64),
        low=np.array([c.low for c in cuts], np.float64),
        factor=np.array([c.factor for c in cuts], np.float64),
        cells=np.array([c.cells for c in cuts], np.int64),
        discrete=np.array([c.discrete for c in cuts], np.bool_),
        cuts=np.concatenate(explicit) if explicit else np.empty(0),
        first_cut=np.cumsum([0, *map(len, explicit)]).astype(np.int64),
    )


def _kind(cuts: Cuts) -> int:
    if cuts.at is not None:
        return _EXPLICIT
    return _LOG if cuts.log else _EQUAL


@lru_cache(maxsize=512)
def bit_plan(cluster: Cluster) -> BitPlan:
    first, shifts = [0], []
    high: list[int] = []
    low: list[int] = []
    for attribute, cuts in enumerate(cluster.cuts):
        if not cuts.bits:
            continue
        places = [cluster.id.length + i for i, a in enumerate(cluster.order) if a == attribute][::-1]
        for shift in range(0, cuts.bits, CHUNK):
            shifts.append(shift)
            for value in range(1 << CHUNK):
                chunk = [p for b, p in enumerate(places[shift : shift + CHUNK]) if value >> b & 1]
                word_high, word_low = Dz(
                    sum(1 << (cluster.length - 1 - p) for p in chunk), cluster.length
                ).key()
                high.append(word_high)
                low.append(word_low)
        first.append(len(shifts))
    id_high, id_low = cluster.id.key()
    return BitPlan(
        np.uint64(id_high),
        np.uint64(id_low),
        np.array(first, np.int64),
        np.array(shifts, np.int64),
        np.array(high, np.uint64),
        np.array(low, np.uint64),
    )


@kernel
def fill_cells(plan: CellPlan, j: Int, positions: Floats, out: Ints) -> None:
    """The cell of every position on the plan's j-th attribute; `Cuts.cell` is the definition."""
    if plan.kind[j] == _EXPLICIT:
        cuts = plan.cuts[plan.first_cut[j] : plan.first_cut[j + 1]]
        for i in range(len(positions)):
            out[i] = np.searchsorted(cuts, positions[i], side="right")
        return
    low, factor, top = plan.low[j], plan.factor[j], np.float64(plan.cells[j] - 1)
    if plan.kind[j] == _EQUAL:
        for i in range(len(positions)):
            out[i] = np.int64(min(max((positions[i] - low) * factor, 0.0), top))
        return
    memory = np.empty(1, np.float64)
    pattern = memory.view(np.int64)
    memory[0] = low
    origin = pattern[0]
    for i in range(len(positions)):
        memory[0] = max(positions[i], low)
        scaled: Int = min(float(pattern[0] - origin) * factor, top)
        out[i] = np.int64(scaled)


@kernel
def cell_at(plan: CellPlan, j: Int, position: float) -> Int:
    """The cell of one position: what `fill_cells` gives for it."""
    if plan.kind[j] == _EXPLICIT:
        return np.searchsorted(plan.cuts[plan.first_cut[j] : plan.first_cut[j + 1]], position, side="right")
    low, factor, top = plan.low[j], plan.factor[j], np.float64(plan.cells[j] - 1)
    if plan.kind[j] == _EQUAL:
        scaled: Int = min(max((position - low) * factor, 0.0), top)
        return np.int64(scaled)
    memory = np.array([low, max(position, low)])
    pattern = memory.view(np.int64)
    scaled = min(float(pattern[1] - pattern[0]) * factor, top)
    return np.int64(scaled)


@kernel
def encode_rows(points: Floats, cells: CellPlan, bits: BitPlan, high: Words, low: Words) -> None:
    """Fills `high` and `low` with the codes of the rows of `points`, a block that fits the cache at a time."""
    block = np.empty(_BLOCK, np.int64)
    code_high, code_low = np.empty(_BLOCK, np.uint64), np.empty(_BLOCK, np.uint64)
    for begin in range(0, len(points), _BLOCK):
        end = min(begin + _BLOCK, len(points))
        code_high[:] = bits.id_high
        code_low[:] = bits.id_low
        for j in range(len(cells.attribute)):
            fill_cells(cells, j, points[begin:end, cells.attribute[j]], block)
            for c in range(bits.first_chunk[j], bits.first_chunk[j + 1]):
                shift, table = bits.shift[c], c << CHUNK
                for i in range(end - begin):
                    slot = table | ((block[i] >> shift) & 63)
                    code_high[i] |= bits.high[slot]
                    code_low[i] |= bits.low[slot]
        high[begin:end] = code_high[: end - begin]
        low[begin:end] = code_low[: end - begin]
