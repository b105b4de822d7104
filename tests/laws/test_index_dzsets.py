"""DzSets are sets of points: every operation is checked against plain Python sets on small spaces."""

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plerion.index.dz import MAX_LENGTH, WHOLE, Dz, DzError
from plerion.index.dzset import EVERYTHING, DzColumns, DzSet
from tests.laws.indexes import dzs, law

DEPTH = 5
#: The small space lies under one of these, so that bits beyond 64 and at the very end are tried too.
roots = st.sampled_from([WHOLE, Dz(1, 1), Dz((1 << 61) - 2, 61), Dz(1 << 106 | 1, MAX_LENGTH - DEPTH)])


@st.composite
def cells(draw: st.DrawFn, root: Dz) -> list[Dz]:
    return draw(st.lists(dzs(DEPTH).map(root.append), max_size=8))


def region(root: Dz, cells: Iterable[Dz]) -> set[str]:
    """The points, written out with DEPTH bits below the root, that begin with one of the cells."""
    leaves = [f"{root}{number:0{DEPTH}b}" for number in range(1 << DEPTH)]
    return {leaf for leaf in leaves if any(leaf.startswith(str(dz)) for dz in cells)}


def is_canonical(cells: DzSet) -> bool:
    """In order, disjoint, and no two that could be written as one."""
    texts = [str(dz) for dz in cells]
    disjoint = not any(a != b and b.startswith(a) for a in texts for b in texts)
    halves = any(t and t[:-1] + "01"[t[-1] == "0"] in texts for t in texts)
    return texts == sorted(set(texts)) and disjoint and not halves


@law
@given(roots, st.data())
def test_of_keeps_the_points_and_is_canonical(root: Dz, data: st.DataObject) -> None:
    listed = data.draw(cells(root))
    made = DzSet.of(listed)
    assert region(root, made) == region(root, listed)
    assert is_canonical(made)
    assert bool(made) == bool(listed)


@law
@given(roots, st.data())
def test_sets_are_equal_exactly_when_their_points_are(root: Dz, data: st.DataObject) -> None:
    one, other = data.draw(cells(root)), data.draw(cells(root))
    assert (DzSet.of(one) == DzSet.of(other)) == (region(root, one) == region(root, other))
    leaves = [Dz.parse(text) for text in data.draw(st.permutations(sorted(region(root, one))))]
    assert DzSet.of(leaves) == DzSet.of(one)


@law
@given(roots, st.data())
def test_union_intersection_and_difference_are_those_of_the_points(root: Dz, data: st.DataObject) -> None:
    a, b = DzSet.of(data.draw(cells(root))), DzSet.of(data.draw(cells(root)))
    points_a, points_b = region(root, a), region(root, b)
    for made, points in (
        (a | b, points_a | points_b),
        (a & b, points_a & points_b),
        (a - b, points_a - points_b),
    ):
        assert region(root, made) == points
        assert is_canonical(made)
    assert a.overlaps(b) == bool(points_a & points_b)


@law
@given(roots, st.data())
def test_a_set_covers_a_cell_exactly_when_it_has_all_its_points(root: Dz, data: st.DataObject) -> None:
    made = DzSet.of(data.draw(cells(root)))
    dz = data.draw(dzs(DEPTH).map(root.append))
    assert made.covers(dz) == (region(root, [dz]) <= region(root, made))


@law
@given(dzs(), dzs())
def test_cells_are_sorted_as_they_lie_and_one_before_those_inside_it(a: Dz, b: Dz) -> None:
    assert (a < b) == (str(a) < str(b))
    assert (a == b) == (str(a) == str(b))
    assert a.overlaps(b) == (a.start < b.end and b.start < a.end)
    assert a.covers(b) == (a.start <= b.start and b.end <= a.end)


@law
@given(dzs())
def test_text_and_key_give_a_dz_back(dz: Dz) -> None:
    assert Dz.parse(str(dz)) == dz
    high, low = dz.key()
    assert f"{high:064b}{low:064b}" == str(dz).ljust(128, "0")
    assert Dz.from_key(high, low, dz.length) == dz
    if dz.length < MAX_LENGTH:
        assert [str(dz.child(bit)) for bit in (0, 1)] == [f"{dz}0", f"{dz}1"]


@law
@given(st.lists(dzs(), max_size=6), st.data())
def test_columns_hold_cells_in_order(listed: list[Dz], data: st.DataObject) -> None:
    columns = DzColumns.of(listed)
    assert list(columns) == listed == [columns.dz(row) for row in range(len(columns))]
    assert columns.texts() == [str(dz) for dz in listed]
    rows = np.array(data.draw(st.permutations(range(len(listed)))), np.int64)
    assert list(columns[rows]) == [listed[row] for row in rows]
    assert list(columns[1:3]) == listed[1:3]


def test_the_oracle_sees_a_set_that_is_not_canonical() -> None:
    assert is_canonical(DzSet.parse("00", "011"))
    for bad in (["00", "01"], ["0", "01"], ["1", "00"], ["1", "1"]):
        assert not is_canonical(DzSet(tuple(map(Dz.parse, bad))))
    assert region(WHOLE, [Dz.parse("0000")]) == {"00000", "00001"}


def test_the_whole_space_and_nothing_are_written_as_such() -> None:
    assert (str(EVERYTHING), str(DzSet())) == ("{ε}", "{}")
    assert str(DzSet.parse("10", "0")) == "{0, 10}"
    assert DzSet.parse("0", "10", "11") == EVERYTHING
    assert DzSet() == EVERYTHING - EVERYTHING


@pytest.mark.parametrize("text", ["2", "0 1", " 01", "01\n", "0b1", "-1", "٠١", "0" * 113])
def test_text_that_names_no_cell_is_refused(text: str) -> None:
    with pytest.raises(DzError, match="up to 112 digits 0 and 1"):
        Dz.parse(text)


@pytest.mark.parametrize(("bits", "length"), [(2, 1), (-1, 3), (1, 0), (0, -1), (0, 113)])
def test_numbers_that_name_no_cell_are_refused(bits: int, length: int) -> None:
    with pytest.raises(DzError, match=r"does not fit|has 0 to 112 bits"):
        Dz(bits, length)
