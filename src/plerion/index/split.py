"""Best-first splitting of cells on whole numbers: the kernel behind `cover`, which holds the theory."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plerion.index.dzset import Lengths, Words
from plerion.index.words import after, canonical, grown, grown2, pop, push, with_bit
from plerion.kernel import Int, Word, kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class EventSample(NamedTuple):
    """Sorted codes of events that were seen, by which covers weigh waste; empty if none were."""

    high: Words
    low: Words


class Grid(NamedTuple):
    """A cluster as the kernel sees it: which attribute each depth halves and how wide cells then are."""

    id_high: np.uint64
    id_low: np.uint64
    id_length: int
    order: Ints  # positions in the cell plan
    size: Ints  # (depth + 1, attributes with bits): cell numbers spanned at each depth


@kernel
def cover_many(
    grid: Grid, offsets: Ints, ranges: Ints, budget: Int, sample: EventSample
) -> tuple[Ints, Words, Words, Lengths]:
    count = np.zeros(len(offsets) - 1, np.int64)
    high, low = np.empty(1024, np.uint64), np.empty(1024, np.uint64)
    length = np.empty(1024, np.uint8)
    used = 0
    for i in range(len(count)):
        boxes = ranges[offsets[i] : offsets[i + 1]]
        if len(boxes) == 0:
            continue
        one_high, one_low, one_length = _cover_one(grid, boxes, budget, sample)
        n = canonical(one_high, one_low, one_length)
        while used + n > len(high):
            high = np.concatenate((high, high))
            low = np.concatenate((low, low))
            length = np.concatenate((length, length))
        high[used : used + n] = one_high[:n]
        low[used : used + n] = one_low[:n]
        length[used : used + n] = one_length[:n]
        used += n
        count[i] = n
    return count, high[:used].copy(), low[:used].copy(), length[:used].copy()


@kernel
def _cover_one(grid: Grid, boxes: Ints, budget: Int, sample: EventSample) -> tuple[Words, Words, Lengths]:
    """Best-first splitting; `heap` holds the cells that may still be split, most wasteful on top."""
    room = 64 if budget > 64 else budget
    start = np.zeros((room, boxes.shape[1]), np.int64)
    high, low = np.empty(room, np.uint64), np.empty(room, np.uint64)
    depth, waste = np.zeros(room, np.int64), np.zeros(room, np.float64)
    heap = np.empty(room, np.int64)
    high[0], low[0] = grid.id_high, grid.id_low
    waste[0] = _shrink(grid, boxes, sample, start, high, low, depth, 0)
    heap[0] = 0
    cells: Int = 1
    waiting: Int = 1 if waste[0] > 0 else 0
    while waiting > 0 and cells < budget:
        if cells == room:
            room = min(budget, 2 * room)
            start = grown2(start, room)
            high, low = grown(high, room), grown(low, room)
            depth, waste, heap = grown(depth, room), grown(waste, room), grown(heap, room)
        parent, other = pop(heap, waste, waiting), cells
        waiting -= 1
        d = depth[parent]
        j = grid.order[d]
        start[other] = start[parent]
        start[other, j] += grid.size[d + 1, j]
        high[other], low[other] = with_bit(high[parent], low[parent], grid.id_length + d)
        depth[parent] = depth[other] = d + 1
        cells += 1
        for cell in (parent, other):
            waste[cell] = _shrink(grid, boxes, sample, start, high, low, depth, cell)
            if waste[cell] > 0:
                waiting = push(heap, waste, waiting, cell)
    return high[:cells], low[:cells], (depth[:cells] + grid.id_length).astype(np.uint8)


@kernel
def _shrink(
    grid: Grid, boxes: Ints, sample: EventSample, start: Ints, high: Words, low: Words, depth: Ints, cell: Int
) -> float:
    """Follows the only half that meets a box as deep as there is one; what splitting could then save."""
    while True:
        d = depth[cell]
        size = grid.size[d]
        asked, inside = _overlap(boxes, start[cell], size)
        if inside or d == len(grid.order):
            return 0.0
        j = grid.order[d]
        middle = start[cell, j] + grid.size[d + 1, j]
        lower, upper = _halves_met(boxes, start[cell], size, j, middle)
        if lower and upper:
            return _wasted(grid, sample, asked, size, high[cell], low[cell], d)
        if upper:
            start[cell, j] = middle
            high[cell], low[cell] = with_bit(high[cell], low[cell], grid.id_length + d)
        depth[cell] = d + 1


@kernel
def _overlap(boxes: Ints, start: Ints, size: Ints) -> tuple[float, bool]:
    """How much of the cell the boxes ask for (adjacent boxes may count a cell twice), and if one asks for all."""
    asked, inside = 0.0, False
    for b in range(len(boxes)):
        common, all_of_it = 1.0, True
        for j in range(len(start)):
            first = max(boxes[b, j, 0], start[j])
            last = min(boxes[b, j, 1], start[j] + size[j] - 1)
            if first > last:
                common, all_of_it = 0.0, False
                break
            common *= last - first + 1
            all_of_it &= last - first + 1 == size[j]
        asked += common
        inside |= all_of_it
    return asked, inside


@kernel
def _halves_met(boxes: Ints, start: Ints, size: Ints, j: Int, middle: Int) -> tuple[bool, bool]:
    lower, upper = False, False
    for b in range(len(boxes)):
        meets = True
        for k in range(len(start)):
            if boxes[b, k, 0] >= start[k] + size[k] or boxes[b, k, 1] < start[k]:
                meets = False
                break
        if meets:
            lower |= boxes[b, j, 0] < middle
            upper |= boxes[b, j, 1] >= middle
    return lower, upper


@kernel
def _wasted(
    grid: Grid, sample: EventSample, asked: float, size: Ints, high: Word, low: Word, depth: Int
) -> float:
    volume, space = 1.0, 1.0
    for j in range(len(size)):
        volume *= size[j]
        space *= grid.size[0, j]
    share: float = max(1.0 - asked / volume, 1e-9)
    if len(sample.high) == 0:
        return share * volume
    first = _rank(sample, high, low)
    last_high, last_low = after(high, low, grid.id_length + depth)
    last = len(sample.high) if last_high == 0 and last_low == 0 else _rank(sample, last_high, last_low)
    events: float = last - first
    return share * (events + volume / space)


@kernel
def _rank(sample: EventSample, high: Word, low: Word) -> Int:
    first, last = 0, len(sample.high)
    while first < last:
        middle = (first + last) >> 1
        if sample.high[middle] < high or (sample.high[middle] == high and sample.low[middle] < low):
            first = middle + 1
        else:
            last = middle
    return first
