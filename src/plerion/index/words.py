"""Arithmetic on left-aligned 128-bit keys in two words, and a heap: what several kernels share."""

import numpy as np
import numpy.typing as npt

from plerion.index.dzset import Lengths, Words
from plerion.kernel import Int, Word, kernel, lean

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@lean
def with_bit(high: Word, low: Word, place: Int) -> tuple[Word, Word]:
    """The words with the bit at `place` (0 is leftmost) set."""
    if place < 64:
        return high | (np.uint64(1) << np.uint64(63 - place)), low
    return high, low | (np.uint64(1) << np.uint64(127 - place))


@lean
def has_bit(high: Word, low: Word, place: Int) -> bool:
    """Whether the bit at `place` (0 is leftmost) is set."""
    word, shift = (high, 63 - place) if place < 64 else (low, 127 - place)
    return bool((word >> np.uint64(shift)) & np.uint64(1))


@lean
def common_length(high: Word, low: Word, other_high: Word, other_low: Word) -> Int:
    """How many bits two different keys have in common from the left."""
    differing, place = high ^ other_high, 0
    if differing == 0:
        differing, place = low ^ other_low, 64
    while not differing >> np.uint64(63):
        differing <<= np.uint64(1)
        place += 1
    return place


@lean
def after(high: Word, low: Word, length: Int) -> tuple[Word, Word]:
    """The first key past the cell; (0, 0) when the cell ends the space."""
    if length == 0:
        return np.uint64(0), np.uint64(0)
    if length <= 64:
        return high + (np.uint64(1) << np.uint64(64 - length)), np.uint64(0)
    after = low + (np.uint64(1) << np.uint64(128 - length))
    return (high + np.uint64(1) if after < low else high), after


@lean
def masked(high: Word, low: Word, length: Int) -> tuple[Word, Word]:
    """The key with all bits past `length` cleared."""
    if length == 0:
        return np.uint64(0), np.uint64(0)
    if length <= 64:
        return high >> np.uint64(64 - length) << np.uint64(64 - length), np.uint64(0)
    return high, low >> np.uint64(128 - length) << np.uint64(128 - length)


@lean
def canonical(high: Words, low: Words, length: Lengths) -> Int:
    """Joins, in place, halves that are both there; the cells are disjoint and in order. How many are left."""
    n = 0
    for i in range(len(high)):
        high[n], low[n], length[n] = high[i], low[i], length[i]
        n += 1
        while n > 1 and length[n - 1] == length[n - 2] and length[n - 1] > 0:
            upper_high, upper_low = with_bit(high[n - 2], low[n - 2], np.int64(length[n - 1]) - 1)
            if upper_high != high[n - 1] or upper_low != low[n - 1]:
                break
            length[n - 2] -= 1
            n -= 1
    return n


@lean
def push(heap: Ints, key: Floats, size: Int, item: Int) -> Int:
    place = size
    heap[place] = item
    while place > 0 and key[heap[(place - 1) >> 1]] < key[heap[place]]:
        above = (place - 1) >> 1
        heap[above], heap[place] = heap[place], heap[above]
        place = above
    return size + 1


@lean
def pop(heap: Ints, key: Floats, size: Int) -> Int:
    top = heap[0]
    heap[0] = heap[size - 1]
    place, last = 0, size - 1
    while 2 * place + 1 < last:
        below = 2 * place + 1
        if below + 1 < last and key[heap[below + 1]] > key[heap[below]]:
            below += 1
        if key[heap[below]] <= key[heap[place]]:
            break
        heap[below], heap[place] = heap[place], heap[below]
        place = below
    return int(top)


@kernel
def grown(array, room):  # type: ignore[no-untyped-def]  # any one-dimensional array, of the same type
    larger = np.empty(room, array.dtype)
    larger[: len(array)] = array
    return larger


@kernel
def grown2(array, room):  # type: ignore[no-untyped-def]  # the same with rows
    larger = np.zeros((room, array.shape[1]), array.dtype)
    larger[: len(array)] = array
    return larger


@kernel
def cut_keys(high: Words, low: Words, length: Lengths) -> tuple[Words, Words]:
    """The keys with all bits past each length cleared."""
    cut_high, cut_low = np.empty_like(high), np.empty_like(low)
    for i in range(len(high)):
        cut_high[i], cut_low[i] = masked(high[i], low[i], np.int64(length[i]))
    return cut_high, cut_low


_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_PLACE = np.zeros(64, np.int64)
for _i in range(64):
    _PLACE[(0x03F79D71B4CB0A89 << _i & 0xFFFFFFFFFFFFFFFF) >> 58] = _i


@lean
def lowest_bit(word: Word) -> Int:
    """The place (from the right) of the lowest bit that is set; the word is not 0."""
    place: Int = _PLACE[((word & (~word + np.uint64(1))) * _DE_BRUIJN) >> np.uint64(58)]
    return place


@lean
def ones(word: Word) -> Int:
    """How many bits are set."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))
