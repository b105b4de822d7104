"""False pairs: an event and a box that share a cell although the event does not match, and which cuts part them.

Along one attribute only the ends of boxes are candidates for a cut: any other cut can be moved to the next end
without parting fewer boxes from events. So positions become *ranks*. Cut k lies at the k-th end; an event of rank x
lies above the cuts 0 to x - 1; a box begins at the end of rank `low` and stops at that of rank `high`. A pair whose
event lies below its box is parted by the cuts x to low, one whose event lies above by the cuts high to x - 1. What
each cut would save is therefore a sum of intervals: two additions a pair and a running sum, however many candidates.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plerion.kernel import Int, kernel, lean

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Ranks = npt.NDArray[np.int32]


class Ranked(NamedTuple):
    """Events and boxes by rank. `ends[first[a]:first[a + 1]]` are the candidates of attribute a, in order."""

    events: Ranks  # (event, attribute)
    low: Ranks  # (box, attribute); -1 where no candidate lies at or below the low end
    high: Ranks  # (box, attribute); the number of candidates where none lies at or above the high end
    first: Ints
    ends: Floats
    owner: Ints  # by box: its interest
    offsets: Ints  # by interest: its boxes

    def candidates(self, attribute: int) -> Floats:
        return self.ends[self.first[attribute] : self.first[attribute + 1]]


class Region(NamedTuple):
    """A cell and what matters in it. Its ranks x have `low[a] < x <= high[a]`; cuts lie strictly between the two."""

    low: Ints
    high: Ints
    events: Ints
    boxes: Ints  # those that have a part of the region, but not all of it


class Pairs(NamedTuple):
    event: Ranks
    box: Ranks


def ranked(points: Floats, offsets: Ints, bounds: Floats, attributes: Collection[int]) -> Ranked:
    """Candidates are ends of boxes along the given attributes (`_candidates`); the other attributes have none."""
    events = np.zeros(points.shape, np.int32)
    low, high = np.empty(bounds.shape[:2], np.int32), np.empty(bounds.shape[:2], np.int32)
    parts = []
    for a in range(bounds.shape[1]):
        parts.append(_candidates(points[:, a], bounds[:, a]) if a in attributes else np.empty(0))
        events[:, a] = np.searchsorted(parts[a], points[:, a], side="right")
        low[:, a] = np.searchsorted(parts[a], bounds[:, a, 0], side="right") - 1
        high[:, a] = np.searchsorted(parts[a], bounds[:, a, 1], side="left")
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    first = np.cumsum([0, *map(len, parts)])
    return Ranked(events, low, high, first, np.concatenate([np.empty(0), *parts]), owner, offsets)


def _candidates(column: Floats, sides: Floats) -> Floats:
    """The ends with events on both sides, and the nearest that part all events from the boxes above or below them.

    With these the ranks tell exactly which events a box has. Without events every end is a candidate.
    """
    ends = np.unique(sides[np.isfinite(sides)])
    if not len(column):
        return ends
    least, most = column.min(), column.max()
    below, above = sides[sides[:, 1] <= least, 1], sides[sides[:, 0] > most, 0]
    between = ends[(ends > least) & (ends <= most)]
    return np.concatenate((np.sort(below)[-1:], between, np.sort(above)[:1]))


@lean
def _in_box(load: Ranked, event: Int, box: Int) -> bool:
    for a in range(load.events.shape[1]):
        x = load.events[event, a]
        if x <= load.low[box, a] or x > load.high[box, a]:
            return False
    return True


@lean
def is_wanted(load: Ranked, event: Int, box: Int) -> bool:
    """Whether the interest that the box belongs to has the event, as far as the attributes with candidates tell."""
    if _in_box(load, event, box):
        return True
    i = load.owner[box]
    if load.offsets[i + 1] - load.offsets[i] > 1:
        for other in range(load.offsets[i], load.offsets[i + 1]):
            if _in_box(load, event, other):
                return True
    return False


@kernel
def false_pairs(load: Ranked, region: Region, most: Int, seed: Int) -> tuple[Pairs, float]:
    """False pairs of the region and their number: all of them if there are at most `most` pairs, else some, drawn."""
    events, boxes = np.uint64(len(region.events)), np.uint64(len(region.boxes))
    every = len(region.events) * len(region.boxes)
    looked = min(every, most)
    event, box = np.empty(looked, np.int32), np.empty(looked, np.int32)
    found, state = 0, np.uint64(2 * seed + 1)
    for k in range(looked):
        i, j = np.uint64(k) // max(boxes, np.uint64(1)), np.uint64(k) % max(boxes, np.uint64(1))
        if every > most:
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            i = (state >> np.uint64(33)) % events
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            j = (state >> np.uint64(33)) % boxes
        if not is_wanted(load, region.events[i], region.boxes[j]):
            event[found], box[found] = region.events[i], region.boxes[j]
            found += 1
    return Pairs(event[:found], box[:found]), found * (every / max(1, looked))


@kernel
def savings(load: Ranked, pairs: Pairs, a: Int, low: Int, high: Int) -> Ints:
    """For each cut `low + i` of attribute a, up to `high`, how many of the pairs it would part."""
    saved = np.zeros(high - low + 2, np.int64)
    for i in range(len(pairs.event)):
        x, b = load.events[pairs.event[i], a], pairs.box[i]
        if x <= load.low[b, a]:
            saved[x - low] += 1
            saved[load.low[b, a] + 1 - low] -= 1
        elif x > load.high[b, a]:
            saved[load.high[b, a] - low] += 1
            saved[x - low] -= 1
    for k in range(1, len(saved)):
        saved[k] += saved[k - 1]
    return saved


@kernel
def straddled(load: Ranked, region: Region, a: Int) -> Ints:
    """For each cut `region.low[a] + i` of attribute a how many boxes have parts on both sides."""
    low, high = region.low[a], region.high[a]
    count = np.zeros(high - low + 2, np.int64)
    for j in range(len(region.boxes)):
        b = region.boxes[j]
        first, last = max(load.low[b, a] + 1, low + 1), min(load.high[b, a], high)
        if first < last:
            count[first - low] += 1
            count[last - low] -= 1
    for k in range(1, len(count)):
        count[k] += count[k - 1]
    return count


@kernel
def best_cuts(saved: Ints, cuts: Ints) -> tuple[Ints, Int]:
    """One more cut in each cell between `cuts` (with both ends), where it saves most; and what they save together.

    A cell in which none saves is parted in the middle of its candidates; one without candidates gets an empty half.
    """
    fresh, total = np.empty(len(cuts) - 1, np.int64), 0
    for c in range(len(cuts) - 1):
        best, most = cuts[c] + (cuts[c + 1] - cuts[c]) // 2, 0
        for k in range(cuts[c] + 1, cuts[c + 1]):
            if saved[k - cuts[0]] > most:
                best, most = k, saved[k - cuts[0]]
        fresh[c] = best
        total += most
    return fresh, total


@kernel
def unparted(load: Ranked, pairs: Pairs, a: Int, cuts: Ints) -> Pairs:
    """The pairs that no cut of attribute a parts; `cuts` are in order, with both ends."""
    below = np.zeros(cuts[-1] - cuts[0] + 2, np.int32)  # by rank: how many cuts are less
    for c in range(1, len(cuts) - 1):
        below[cuts[c] + 1 - cuts[0]] += 1
    for k in range(1, len(below)):
        below[k] += below[k - 1]
    event, box, kept = np.empty_like(pairs.event), np.empty_like(pairs.box), 0
    for i in range(len(pairs.event)):
        e, b = pairs.event[i], pairs.box[i]
        cell = below[load.events[e, a] - cuts[0]]
        first = below[max(load.low[b, a] + 1 - cuts[0], 0)]
        last = below[min(max(load.high[b, a] - cuts[0], 0), len(below) - 1)]
        if first <= cell <= last:
            event[kept], box[kept] = e, b
            kept += 1
    return Pairs(event[:kept].copy(), box[:kept].copy())


@kernel
def halves(load: Ranked, region: Region, a: Int, k: Int) -> tuple[Region, Region]:
    """The region below cut k of attribute a, and the one above; boxes that have all of a half are left out."""
    below, above = np.empty(len(region.events), np.int64), np.empty(len(region.events), np.int64)
    lower = upper = 0
    for e in region.events:
        if load.events[e, a] > k:
            above[upper] = e
            upper += 1
        else:
            below[lower] = e
            lower += 1
    high, low = region.high.copy(), region.low.copy()
    high[a] = low[a] = k
    return (
        Region(region.low, high, below[:lower].copy(), _meeting(load, region.boxes, region.low, high)),
        Region(low, region.high, above[:upper].copy(), _meeting(load, region.boxes, low, region.high)),
    )


@kernel
def _meeting(load: Ranked, boxes: Ints, low: Ints, high: Ints) -> Ints:
    """The boxes that have a part of the region, but not all of it."""
    kept, found = np.empty(len(boxes), np.int64), 0
    for b in boxes:
        meets, inside = True, True
        for a in range(len(low)):
            meets &= load.low[b, a] < high[a] and load.high[b, a] > low[a]
            inside &= load.low[b, a] <= low[a] and load.high[b, a] >= high[a]
        if meets and not inside:
            kept[found] = b
            found += 1
    return kept[:found].copy()
