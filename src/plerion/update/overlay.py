"""Two tables laid over each other: at every switch every event gets the ports of both, or only those that both give."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from plerion.flow.entry import Ints, Masks, Tables
from plerion.index.dzset import DzColumns, Lengths, Words
from plerion.index.words import masked
from plerion.kernel import Int, kernel, lean

Flags = npt.NDArray[np.bool_]


def overlay(old: Tables, new: Tables, kind: Literal["union", "intersection"]) -> Tables:
    """Tables with which an event leaves by the ports of either (both): at most as many entries as the two together.

    An entry that says the same as its nearest shorter one is left out. With an intersection entries may have no ports.
    """
    fabric, words = old.fabric, old.fabric.port_words
    switch, dz, ports, of_old = _merged(old, new)
    result = np.zeros((len(switch), words), np.uint64)
    kept = np.zeros(len(switch), np.bool_)
    _lay(switch, dz.high, dz.low, dz.length, ports, of_old, kind == "union", result, kept)
    first = np.searchsorted(switch[kept], np.arange(fabric.switches + 1)).astype(np.int64)
    return Tables(fabric, first, dz[kept], result[kept])


def _merged(old: Tables, new: Tables) -> tuple[Ints, DzColumns, Masks, Flags]:
    """All rows of both in the order of switch and dz; where both have one, the old comes first."""
    both = (old, new)
    switch = np.concatenate([np.repeat(np.arange(t.fabric.switches), np.diff(t.first)) for t in both])
    dz = DzColumns.joined([t.dz for t in both])
    ports = np.concatenate([t.ports for t in both])
    of_old = np.arange(len(switch)) < len(old)
    order = np.lexsort((dz.length, dz.low, dz.high, switch))  # stable
    return switch[order], dz[order], ports[order], of_old[order]


@lean
def _around(high: Words, low: Words, length: Lengths, j: Int, i: Int) -> bool:
    """Whether the dz of row j covers that of row i."""
    if length[j] > length[i]:
        return False
    cut_high, cut_low = masked(high[i], low[i], np.int64(length[j]))
    return bool(cut_high == high[j] and cut_low == low[j])


@kernel
def _lay(
    switch: Ints, high: Words, low: Words, length: Lengths, ports: Masks, of_old: Flags, union: bool, result: Masks,
    kept: Flags,
) -> None:  # fmt: skip
    """Rows come parents first; the stack holds those around the present one, with what either side says there."""
    stack = np.empty(130, np.int64)
    said = np.zeros((130, 2, ports.shape[1]), np.uint64)
    nothing = np.zeros(ports.shape[1], np.uint64)
    depth = 0
    for i in range(len(switch)):
        while depth > 0:
            j = stack[depth - 1]
            if switch[j] == switch[i] and _around(high, low, length, j, i):
                break
            depth -= 1
        if depth > 0 and length[stack[depth - 1]] == length[i]:  # the other side has an entry here, too
            kept[stack[depth - 1]] = False
        else:
            said[depth] = 0
            if depth > 0:
                said[depth] = said[depth - 1]
            depth += 1
        stack[depth - 1] = i
        said[depth - 1, 0 if of_old[i] else 1] = ports[i]
        one, other = said[depth - 1]
        result[i] = (one | other) if union else (one & other)
        above = result[stack[depth - 2]] if depth > 1 else nothing
        kept[i] = (result[i] != above).any()
