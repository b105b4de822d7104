"""Tables that fit: a limit on entries is met by coarser cells, never by dropping a wanted event (design §4.2).

A table over its limit is cut at a length: all entries with longer dz under one prefix of that length become one entry
with all their ports. The length is the greatest that fits, so the table is as fine as its room allows; what it
sends too much is dropped by the next switch or counted as a false positive by a host.

One thing a cut must not do is to join cells of two trees: their ports together could close a loop. So an entry is cut
no shorter than the shortest prefix around it that meets no other tree (`safe_lengths`). With a single tree there is no
such bound, and one entry always suffices; with several, a table may need fewer trees before it fits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plerion.flow.entry import Ints, Masks, Tables
from plerion.index.dz import MAX_LENGTH, Dz
from plerion.index.dzset import DzColumns, DzSet, Lengths, Words
from plerion.index.words import cut_keys, masked
from plerion.kernel import kernel


class TreesDoNotFit(ValueError):  # noqa: N818 - a state of affairs, not a mistake
    """No cut meets the limit with this many trees; `switch` is the number of the first such switch."""

    def __init__(self, switch: int, limit: int) -> None:
        super().__init__(f"{limit} entries are too few for the trees that cross switch {switch}: merge trees")
        self.switch = switch


def safe_lengths(trees: Sequence[DzSet]) -> list[tuple[Dz, int]]:
    """For each cell of each tree, in order, how short a prefix of it meets no other tree."""
    cells = sorted((dz, t) for t, tree in enumerate(trees) for dz in tree)
    forward, backward = _nearest_other(cells), _nearest_other(cells[::-1])[::-1]
    return [(dz, max(pair)) for (dz, _), *pair in zip(cells, forward, backward, strict=True)]


def _nearest_other(cells: Sequence[tuple[Dz, int]]) -> list[int]:
    """One more than the bits that each cell shares with the nearest cell of another tree before it; 0 without one."""
    bounds = [0] * len(cells)
    for i in range(1, len(cells)):
        (before, tree_before), (dz, tree) = cells[i - 1], cells[i]
        beyond = MAX_LENGTH - (before.start ^ dz.start).bit_length() + 1
        bounds[i] = beyond if tree != tree_before else min(bounds[i - 1], beyond)
    return bounds


def fit(tables: Tables, limits: Ints, safe: Sequence[tuple[Dz, int]]) -> Tables:
    """The tables with every switch x within `limits[x]` entries (negative: no limit)."""
    shortest = _shortest(tables, safe)
    parts = [_fit_one(tables, x, int(limits[x]), shortest) for x in range(tables.fabric.switches)]
    first = np.cumsum([0, *(len(dz) for dz, _ in parts)]).astype(np.int64)
    return Tables(
        tables.fabric,
        first,
        DzColumns.joined([dz for dz, _ in parts]),
        np.concatenate([ports for _, ports in parts]),
    )


def _shortest(tables: Tables, safe: Sequence[tuple[Dz, int]]) -> Lengths:
    """For each entry how far it may be cut: the bound of the tree cell that it lies in."""
    starts = np.array([dz.start >> (MAX_LENGTH - 64) for dz, _ in safe], np.uint64)
    bounds = np.array([length for _, length in safe], np.uint8)
    if len(np.unique(starts)) == len(starts):
        return bounds[np.searchsorted(starts, tables.dz.high, side="right") - 1]
    keys = [dz.start for dz, _ in safe]  # cells that differ past the 64th bit: rare, so plainly
    at = np.searchsorted(
        np.array(keys, object), np.array([dz.start for dz in tables.dz], object), side="right"
    )
    return bounds[at.astype(np.int64) - 1]


def _fit_one(tables: Tables, x: int, limit: int, shortest: Lengths) -> tuple[DzColumns, Masks]:
    rows = slice(int(tables.first[x]), int(tables.first[x + 1]))
    dz, ports = tables.dz[rows], tables.ports[rows]
    if limit < 0 or len(dz) <= limit:
        return dz, ports
    fits, too_long = -1, MAX_LENGTH
    while too_long - fits > 1:  # `fits` is a length known to fit, or -1
        middle = (fits + too_long) // 2
        if len(_cut(dz, ports, np.maximum(shortest[rows], middle))[0]) <= limit:
            fits = middle
        else:
            too_long = middle
    if fits < 0:
        raise TreesDoNotFit(x, limit)
    return _cut(dz, ports, np.maximum(shortest[rows], fits))


def _cut(dz: DzColumns, ports: Masks, longest: Lengths) -> tuple[DzColumns, Masks]:
    """Entries no longer than `longest` (by row), those that fall together joined, repetitions left out."""
    length = np.minimum(dz.length, longest)
    high, low = cut_keys(dz.high, dz.low, length)
    order = np.lexsort((length, low, high))
    high, low, length = high[order], low[order], length[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1]) | (length[1:] != length[:-1])
    united = np.bitwise_or.reduceat(ports[order], np.flatnonzero(fresh), axis=0)
    cells = DzColumns(high[fresh], low[fresh], length[fresh])
    kept = _tells(cells.high, cells.low, cells.length, united)
    return cells[kept], united[kept]


@kernel
def _tells(high: Words, low: Words, length: Lengths, ports: Masks) -> np.ndarray:
    """Which entries say something else than their nearest shorter one."""
    kept = np.ones(len(high), np.bool_)
    above = np.empty(130, np.int64)
    depth = 0
    for i in range(len(high)):
        while depth > 0:
            top = above[depth - 1]
            prefix_high, prefix_low = masked(high[i], low[i], np.int64(length[top]))
            covers = prefix_high == high[top] and prefix_low == low[top]
            if covers:
                break
            depth -= 1
        if depth > 0:
            kept[i] = (ports[i] != ports[above[depth - 1]]).any()
        elif not (ports[i] != 0).any():
            kept[i] = False
        above[depth] = i
        depth += 1
    return kept
