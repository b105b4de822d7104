"""Every kernel on two-word keys equals its definition on Python's whole numbers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from plerion.index import words
from plerion.index.dz import Dz
from plerion.index.dzset import DzColumns, DzSet
from tests.laws.indexes import law

BITS = 128
ALL = (1 << BITS) - 1
edges = st.sampled_from([0, 1, 62, 63, 64, 65, 126, 127])
keys = st.integers(0, ALL) | st.sampled_from([0, ALL, 1 << 63, 1 << 64, (1 << 64) - 1, ALL - (1 << 64) + 1])


def split(key: int) -> tuple[np.uint64, np.uint64]:
    return np.uint64(key >> 64), np.uint64(key & (1 << 64) - 1)


def whole(pair: tuple[np.uint64, np.uint64]) -> int:
    return int(pair[0]) << 64 | int(pair[1])


@law
@given(keys, edges | st.integers(0, 127))
def test_with_bit_sets_one_bit_counted_from_the_left(key: int, place: int) -> None:
    assert whole(words.with_bit(*split(key), place)) == key | 1 << (BITS - 1 - place)


@law
@given(keys, edges | st.integers(0, 128))
def test_masked_clears_all_bits_past_the_length(key: int, length: int) -> None:
    assert whole(words.masked(*split(key), length)) == key >> (BITS - length) << (BITS - length)


@law
@given(keys, edges | st.integers(0, 128))
def test_after_is_the_first_key_past_the_cell_or_zero_at_the_end_of_the_space(key: int, length: int) -> None:
    first = key >> (BITS - length) << (BITS - length)
    assert whole(words.after(*split(first), length)) == (first + (1 << (BITS - length))) % (1 << BITS)


@law
@given(st.integers(1, (1 << 64) - 1) | st.integers(0, 63).map(lambda place: 1 << place))
def test_lowest_bit_is_the_lowest(word: int) -> None:
    assert words.lowest_bit(np.uint64(word)) == (word & -word).bit_length() - 1


@law
@given(st.lists(keys, max_size=5), st.data())
def test_cut_keys_clears_every_key_at_its_own_length(several: list[int], data: st.DataObject) -> None:
    lengths = [data.draw(edges | st.integers(0, 128)) for _ in several]
    high = np.array([key >> 64 for key in several], np.uint64)
    low = np.array([key & (1 << 64) - 1 for key in several], np.uint64)
    cut = words.cut_keys(high, low, np.array(lengths, np.uint8))
    found = [whole(pair) for pair in zip(*cut, strict=True)]
    assert found == [k >> (BITS - n) << (BITS - n) for k, n in zip(several, lengths, strict=True)]


@st.composite
def disjoint_cells(draw: st.DrawFn) -> list[Dz]:
    """Cells that come from splitting some, so that many are halves of one."""
    length = draw(st.sampled_from([0, 58, 62, 64, 66, 100]))
    found = [Dz(draw(st.integers(0, (1 << length) - 1)), length)]
    for _ in range(draw(st.integers(0, 12))):  # at most 12 bits longer, so never beyond 112
        at = draw(st.integers(0, len(found) - 1))
        dz = found.pop(at)
        found += [dz.child(0), dz.child(1)]
    kept = draw(st.lists(st.sampled_from(found), unique=True)) if draw(st.booleans()) else found
    return sorted(kept)


@law
@given(disjoint_cells())
def test_canonical_joins_as_a_dz_set_does(cells: list[Dz]) -> None:
    columns = DzColumns.of(cells)
    n = words.canonical(columns.high, columns.low, columns.length)
    assert tuple(columns[:n]) == DzSet.of(cells).cells


@law
@given(st.lists(st.floats(0, 9) | st.sampled_from([1.0, 2.0]), max_size=12), st.lists(st.booleans()))
def test_the_heap_gives_out_a_greatest_item_and_none_twice(keys: list[float], takes: list[bool]) -> None:
    key = np.array([*keys, 0.0])
    heap = np.full(len(keys) + 1, -1, np.int64)
    waiting: set[int] = set()
    size, item = 0, 0
    for take in [*takes[: len(keys)], *[False] * len(keys), *[True] * len(keys)]:
        if take and size > 0:
            top = words.pop(heap, key, size)
            assert key[top] == max(key[i] for i in waiting)
            waiting.remove(int(top))
            size -= 1
        elif not take and item < len(keys):
            size = words.push(heap, key, size, item)
            waiting.add(item)
            item += 1
        assert sorted(heap[:size]) == sorted(waiting)


def test_arrays_grow_without_a_change_to_what_they_hold() -> None:
    assert words.grown(np.array([3, 1]), 5)[:2].tolist() == [3, 1]
    larger = words.grown2(np.array([[3, 1], [2, 2]]), 4)
    assert larger.shape == (4, 2)
    assert larger[:2].tolist() == [[3, 1], [2, 2]]
