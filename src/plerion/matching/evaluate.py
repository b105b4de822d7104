"""How well an index filters a workload: covers against exact matches, pair by pair, counted exactly.

A *delivery* is an (event, interest) pair whose code lies in the interest's cover. Deliveries need no loop over pairs:
with the codes sorted, a cell of a cover holds a run of them. Wanted pairs come from the matcher; for each one it is
looked up whether the cover has it, so false negatives are measured, not assumed to be none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plerion.index.cover import Covers
from plerion.index.dzset import DzColumns, Lengths, Words
from plerion.index.encode import Codes
from plerion.index.words import lowest_bit, masked
from plerion.kernel import Int, kernel, lean
from plerion.matching.bitset import BitsetMatcher, OpenBoxes, open_at
from plerion.matching.matcher import Flags, Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Counts by interest, and by (event, host); rates are shares of what was delivered."""

    deliveries: Ints
    wanted: Ints
    hits: Ints  # wanted and delivered
    host_deliveries: Ints
    host_hits: Ints
    dz: int

    @property
    def false_positives(self) -> int:
        return int(self.deliveries.sum() - self.hits.sum())

    @property
    def false_negatives(self) -> int:
        return int(self.wanted.sum() - self.hits.sum())

    @property
    def false_positive_rate(self) -> float:
        return self.false_positives / max(1, int(self.deliveries.sum()))

    @property
    def host_false_positive_rate(self) -> float:
        delivered = int(self.host_deliveries.sum())
        return (delivered - int(self.host_hits.sum())) / max(1, delivered)

    def to_json(self) -> dict[str, int | float]:
        return {
            "deliveries": int(self.deliveries.sum()),
            "wanted": int(self.wanted.sum()),
            "false_positives": self.false_positives,
            "false_positive_rate": self.false_positive_rate,
            "false_negatives": self.false_negatives,
            "dz": self.dz,
            "host_false_positive_rate": self.host_false_positive_rate,
        }


def evaluate(points: Floats, codes: Codes, matcher: BitsetMatcher, covers: Covers, hosts: Ints) -> Evaluation:
    """Counts all pairs of these events and interests; `hosts[i]` is the number of interest i's host."""
    order = np.lexsort((codes.dz.low, codes.dz.high))
    first, last = runs(codes.dz[order], covers.dz)
    interest = np.repeat(np.arange(len(covers)), np.diff(covers.offsets))
    deliveries = np.bincount(interest, last - first, len(covers)).astype(np.int64)
    count = int(hosts.max(initial=-1)) + 1
    reached = _reached(len(points), codes.event[order], first, last, hosts[interest], count)
    first_code = np.searchsorted(codes.event, np.arange(len(points) + 1))
    wanted, hits, host_hits = _tally(
        matcher.open_boxes,
        np.ascontiguousarray(points),
        matcher.owner,
        hosts,
        first_code,
        (codes.dz.high, codes.dz.low),
        covers.offsets,
        (covers.dz.high, covers.dz.low),
        covers.dz.length,
        reached,
    )
    return Evaluation(deliveries, wanted, hits, reached.sum(axis=0), host_hits, len(covers.dz))


def runs(codes: DzColumns, cells: DzColumns) -> tuple[Ints, Ints]:
    """For each cell the run (first, one past the last) of the sorted codes that lie in it."""
    return _runs(codes.high, codes.low, cells.high, cells.low, cells.length)


@kernel
def _runs(
    high: Words, low: Words, cell_high: Words, cell_low: Words, cell_length: Lengths
) -> tuple[Ints, Ints]:
    first, last = np.empty(len(cell_high), np.int64), np.empty(len(cell_high), np.int64)
    for c in range(len(cell_high)):
        length = np.int64(cell_length[c])
        for end in (0, 1):
            begin, stop = np.int64(0), np.int64(len(high))
            while begin < stop:
                middle = (begin + stop) >> 1
                h, w = masked(high[middle], low[middle], length)
                less = h < cell_high[c] or (h == cell_high[c] and w < cell_low[c])
                if less or (end == 1 and h == cell_high[c] and w == cell_low[c]):
                    begin = middle + 1
                else:
                    stop = middle
            if end == 0:
                first[c] = begin
            else:
                last[c] = begin
    return first, last


@kernel
def _reached(events: Int, event: Ints, first: Ints, last: Ints, host: Ints, hosts: Int) -> Flags:
    """(events, hosts): whether a cover at the host has a code of the event."""
    open_runs = np.zeros((len(event) + 1, hosts), np.int32)
    for c in range(len(first)):
        open_runs[first[c], host[c]] += 1
        open_runs[last[c], host[c]] -= 1
    reached = np.zeros((events, hosts), np.bool_)
    for i in range(len(event)):
        if i > 0:
            open_runs[i] += open_runs[i - 1]
        for h in range(hosts):
            reached[event[i], h] |= open_runs[i, h] > 0
    return reached


@lean
def _has(
    cells: tuple[Words, Words],
    length: Lengths,
    offsets: Ints,
    i: Int,
    codes: tuple[Words, Words],
    first_code: Ints,
    event: Int,
) -> bool:
    """Whether a cell of interest i's cover has a code of the event."""
    for code in range(first_code[event], first_code[event + 1]):
        for c in range(offsets[i], offsets[i + 1]):
            high, low = masked(codes[0][code], codes[1][code], np.int64(length[c]))
            if high == cells[0][c] and low == cells[1][c]:
                return True
    return False


@kernel
def _tally(
    plan: OpenBoxes,
    points: Floats,
    owner: Ints,
    hosts: Ints,
    first_code: Ints,
    codes: tuple[Words, Words],
    offsets: Ints,
    cells: tuple[Words, Words],
    length: Lengths,
    reached: npt.NDArray[np.bool_],
) -> tuple[Ints, Ints, Ints]:
    """Wanted pairs by interest, those that are delivered, and (event, host) pairs that are both, by host."""
    wanted, hits = np.zeros(len(offsets) - 1, np.int64), np.zeros(len(offsets) - 1, np.int64)
    host_hits, seen = np.zeros(reached.shape[1], np.int64), np.full(reached.shape[1], -1, np.int64)
    words = plan.checkpoints.shape[2]
    found, scratch = np.empty(words, np.uint64), np.empty(words, np.uint64)
    for event in range(len(points)):
        open_at(plan, points[event], found, scratch)
        for w in range(words):
            left = found[w]
            while left != 0:
                i = owner[(w << 6) + lowest_bit(left)]
                left &= left - np.uint64(1)
                wanted[i] += 1
                hits[i] += _has(cells, length, offsets, i, codes, first_code, event)
                if reached[event, hosts[i]] and seen[hosts[i]] != event:
                    seen[hosts[i]] = event
                    host_hits[hosts[i]] += 1
    return wanted, hits, host_hits
