"""Matching many interests at once with bit sets.

On one attribute, walk along the axis: a box becomes open at its low end and closes at its high end. So the set of open
boxes at a position is the set at some earlier checkpoint with the ends between the two toggled. A checkpoint stands
every `STRIDE` ends; a look-up is a binary search, at most `STRIDE` toggles and one pass over the words. An event
matches the boxes that are open on every attribute: one AND an attribute, 64 boxes at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from plerion.index.dzset import Words
from plerion.index.words import lowest_bit, ones
from plerion.kernel import kernel
from plerion.matching.matcher import Flags, Floats, Ints

STRIDE = 256


class OpenBoxes(NamedTuple):
    """For each attribute the sorted ends of all boxes, whose they are, and the checkpoints."""

    ends: Floats  # (attributes, ends)
    box: Ints  # (attributes, ends)
    checkpoints: Words  # (attributes, checkpoints, words)


@dataclass(frozen=True, slots=True, eq=False)
class BitsetMatcher:
    """The fast matcher; memory is about boxes² / 1024 bytes an attribute."""

    interests: int
    owner: Ints  # by box
    open_boxes: OpenBoxes

    @classmethod
    def of(cls, offsets: Ints, bounds: Floats) -> BitsetMatcher:
        owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        return cls(len(offsets) - 1, owner, open_boxes(bounds))

    def matches(self, points: Floats) -> Flags:
        found = np.zeros((len(points), self.interests), np.bool_)
        _match_all(self.open_boxes, np.ascontiguousarray(points), self.owner, found)
        return found


def match_counts(bounds: Floats, points: Floats) -> Ints:
    """How many interests match each event: their boxes are disjoint, so boxes may be counted."""
    return _count_all(open_boxes(bounds), np.ascontiguousarray(points))


def open_boxes(bounds: Floats) -> OpenBoxes:
    """Sorts the ends of all boxes (m, attributes, 2) and lays the checkpoints."""
    boxes, attributes = bounds.shape[:2]
    ends = np.ascontiguousarray(np.concatenate((bounds[:, :, 0], bounds[:, :, 1])).T)
    order = np.argsort(ends, axis=1, kind="stable")
    words = max(1, -(-boxes // 64))
    checkpoints = np.zeros((attributes, 2 * boxes // STRIDE + 1, words), np.uint64)
    box = order % max(1, boxes)
    _lay_checkpoints(box, checkpoints)
    return OpenBoxes(np.take_along_axis(ends, order, axis=1), box, checkpoints)


@kernel
def _lay_checkpoints(box: Ints, checkpoints: Words) -> None:
    for a in range(len(checkpoints)):
        current = np.zeros(checkpoints.shape[2], np.uint64)
        for i in range(box.shape[1]):
            if i % STRIDE == 0:
                checkpoints[a, i // STRIDE] = current
            current[box[a, i] >> 6] ^= np.uint64(1) << np.uint64(box[a, i] & 63)
        if box.shape[1] % STRIDE == 0:
            checkpoints[a, box.shape[1] // STRIDE] = current


@kernel
def open_at(plan: OpenBoxes, point: Floats, found: Words, scratch: Words) -> None:
    """Fills `found` with the boxes that contain the point."""
    for a in range(len(plan.ends)):
        passed = np.searchsorted(plan.ends[a], point[a], side="right")
        last = passed // STRIDE
        scratch[:] = plan.checkpoints[a, last]
        for i in range(last * STRIDE, passed):
            b = plan.box[a, i]
            scratch[b >> 6] ^= np.uint64(1) << np.uint64(b & 63)
        if a == 0:
            found[:] = scratch
        else:
            for w in range(len(found)):
                found[w] &= scratch[w]


@kernel
def _match_all(plan: OpenBoxes, points: Floats, owner: Ints, matched: Flags) -> None:
    words = plan.checkpoints.shape[2]
    found, scratch = np.empty(words, np.uint64), np.empty(words, np.uint64)
    for event in range(len(points)):
        open_at(plan, points[event], found, scratch)
        for w in range(words):
            left = found[w]
            while left != 0:
                matched[event, owner[(w << 6) + lowest_bit(left)]] = True
                left &= left - np.uint64(1)


@kernel
def _count_all(plan: OpenBoxes, points: Floats) -> Ints:
    words = plan.checkpoints.shape[2]
    found, scratch = np.empty(words, np.uint64), np.empty(words, np.uint64)
    counts = np.zeros(len(points), np.int64)
    for event in range(len(points)):
        open_at(plan, points[event], found, scratch)
        for w in range(words):
            counts[event] += ones(found[w])
    return counts
