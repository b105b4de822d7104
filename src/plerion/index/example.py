"""From a code back to an event: what somebody could publish to try it."""

from __future__ import annotations

import struct
from math import ceil

from plerion.content.event import Event
from plerion.content.schema import Attribute, Enumeration, Number
from plerion.index.content_index import Cluster, ContentIndex
from plerion.index.cuts import Cuts, pattern
from plerion.index.dz import Dz


def example(index: ContentIndex, code: Dz) -> Event | None:
    """An event that has this code among its own; None when no event can have it.

    A longer code counts as its beginning. Whole numbers and values from a list may leave cells empty.
    """
    for cluster in index.clusters:
        if cluster.id.covers(code) and code.length >= cluster.length:
            wanted = Dz(code.bits >> (code.length - cluster.length), cluster.length)
            positions = [
                _position(cuts, cell)
                for cuts, cell in zip(cluster.cuts, _cells(cluster, wanted), strict=True)
            ]
            if wanted in index.codes(positions) and all(map(_is_value, index.schema.attributes, positions)):
                named = zip(index.schema.attributes, positions, strict=True)
                return {attribute.name: _value(attribute, position) for attribute, position in named}
    return None


def _cells(cluster: Cluster, code: Dz) -> list[int]:
    """The cell numbers whose bits, laid out in the cluster's order, are the code."""
    cells = [0] * len(cluster.cuts)
    for i, attribute in enumerate(cluster.order):
        bit = code.bits >> (len(cluster.order) - 1 - i) & 1
        cells[attribute] = cells[attribute] << 1 | bit
    return cells


def _position(cuts: Cuts, cell: int) -> float:
    """The least position from `low` that can lie in the cell; who calls checks that it does.

    By bisection over all doubles, because cells never decrease and to invert their rounding would be a guess.
    """
    first, end = _rank(cuts.low), _rank(cuts.end)
    while first < end:
        middle = (first + end) >> 1
        if cuts.cell(_at_rank(middle)) < cell:
            first = middle + 1
        else:
            end = middle
    position = _at_rank(first)
    return float(ceil(position)) if cuts.discrete else position


def _rank(position: float) -> int:
    """Where a double stands among all doubles, counted from 0.0."""
    distance = pattern(abs(position))  # the pattern of -0.0 is far from that of 0.0
    return distance if position >= 0 else -distance


def _at_rank(rank: int) -> float:
    position: float = struct.unpack("<d", struct.pack("<q", abs(rank)))[0]
    return position if rank >= 0 else -position


def _is_value(attribute: Attribute, position: float) -> bool:
    return attribute.start <= position < attribute.end


def _value(attribute: Attribute, position: float) -> float | int | str:
    if isinstance(attribute, Enumeration):
        return attribute.values[int(position)]
    return int(position) if isinstance(attribute, Number) and attribute.integer else position
