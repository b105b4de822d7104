"""Indexes made from a schema alone: whose turn it is, who is passed over, and what is refused."""

from dataclasses import replace
from math import isfinite

import numpy as np
import pytest

from plerion.content.box import Box
from plerion.content.schema import Enumeration, Number, Schema, SchemaError
from plerion.index.content_index import Cluster, ContentIndex, everywhere, volume
from plerion.index.cover import cover
from plerion.index.cuts import MAX_EQUAL_BITS, ContentIndexError, Cuts, equal_cuts, explicit_cuts, useful_bits
from plerion.index.dz import WHOLE, Dz
from plerion.index.dzset import DzSet
from plerion.index.propose import regular, round_robin
from plerion.index.selection import by_names

INF = float("inf")
SCHEMA = Schema(
    (
        Number("t", 0, 100),
        Enumeration("city", ("oslo", "rome", "bonn")),  # two bits
        Number("one", 5, 5, integer=True),  # no bit
        Number("n", 0, 7, integer=True),  # three bits
    )
)


def test_bits_go_to_the_attributes_in_turn() -> None:
    assert regular(SCHEMA, 3).clusters[0].order == (0, 1, 3)
    assert regular(SCHEMA, 4).clusters[0].order == (0, 1, 3, 0)


def test_attributes_that_no_bit_can_part_further_are_passed_over() -> None:
    assert regular(SCHEMA, 12).clusters[0].order == (0, 1, 3, 0, 1, 3, 0, 3, 0, 0, 0, 0)


def test_codes_are_shorter_when_fewer_bits_already_tell_all_values_apart() -> None:
    small = Schema(SCHEMA.attributes[1:])
    assert regular(small, 112).bits == 5
    points = [(float(city), 5.0, float(n)) for city in range(3) for n in range(8)]
    assert len({regular(small, 112).codes(point) for point in points}) == 24
    assert regular(SCHEMA, 112).bits == MAX_EQUAL_BITS + 5


def test_only_the_selected_attributes_get_bits_in_the_order_of_the_list() -> None:
    assert regular(SCHEMA, 5, by_names(SCHEMA, ["n", "t"])).clusters[0].order == (3, 0, 3, 0, 3)
    assert regular(SCHEMA, 9, [1]).clusters[0].order == (1, 1)
    assert round_robin(SCHEMA, [], 9) == ()
    assert regular(SCHEMA, 9, []).codes((1.0, 1.0, 5.0, 1.0)) == (WHOLE,)


def test_a_selection_by_names_has_each_attribute_once_and_all_without_names() -> None:
    assert by_names(SCHEMA, ["n", "t", "n"]) == (3, 0)
    assert by_names(SCHEMA, []) == (0, 1, 2, 3)
    with pytest.raises(SchemaError, match="did you mean 'city'"):
        by_names(SCHEMA, ["cyty"])


def test_a_regular_index_is_one_cluster_for_the_whole_space() -> None:
    index = regular(SCHEMA, 8, epoch=3)
    assert (index.epoch, index.bits) == (3, 8)
    assert [(c.id, c.box) for c in index.clusters] == [(WHOLE, everywhere(SCHEMA))]


@pytest.mark.parametrize("bits", [-1, 113])
def test_bits_out_of_bounds_are_refused(bits: int) -> None:
    with pytest.raises(ContentIndexError, match=f"0 to 112 bits, not {bits}"):
        regular(SCHEMA, bits)


@pytest.mark.parametrize(
    ("attribute", "bits"),
    [
        (Number("x", 0.0, 1.0), 48),
        (Number("x", 1.0, 1.0), 0),
        (Number("x", 0, 0, integer=True), 0),
        (Number("x", 0, 1, integer=True), 1),
        (Number("x", 0, 2, integer=True), 2),
        (Number("x", 0, 3, integer=True), 2),
        (Number("x", 0, 4, integer=True), 3),
        (Number("x", -(2**53 - 1), 2**53 - 1, integer=True), 48),
        (Number("x", 1, 1, integer=True, scale="log"), 0),
        (Number("x", 1, 2**53 - 1, integer=True, scale="log"), 48),
        (Enumeration("x", ("a",)), 0),
        (Enumeration("x", ("a", "b")), 1),
        (Enumeration("x", tuple("abcde")), 3),
    ],
)
def test_useful_bits_are_as_many_as_tell_the_values_apart(attribute: Number | Enumeration, bits: int) -> None:
    assert useful_bits(attribute) == bits
    assert regular(Schema((attribute,)), 112).bits == bits


@pytest.mark.parametrize(("low", "high"), [(1, 2), (1, 3), (3, 5), (7, 9), (1, 1000), (500, 1024), (1, 4096)])
@pytest.mark.parametrize("scale", ["linear", "log"])
def test_useful_bits_part_all_whole_numbers_on_both_scales(low: int, high: int, scale: str) -> None:
    attribute = Number("n", low, high, integer=True, scale="log" if scale == "log" else "linear")
    parted = equal_cuts(attribute, useful_bits(attribute))
    assert len({parted.cell(float(n)) for n in range(low, high + 1)}) == high - low + 1


def test_explicit_cuts_say_where_the_next_cell_begins() -> None:
    parted = explicit_cuts(SCHEMA.attributes[0], np.array([1.0, 5.0, 5.0]))
    assert [parted.cell(x) for x in (-INF, 0.0, 0.99, 1.0, 4.99, 5.0, 100.0)] == [0, 0, 0, 1, 1, 3, 3]
    assert parted.cells_of(0.0, 1.0) == (0, 0)
    assert parted.cells_of(0.0, 5.0) == (0, 1)
    assert parted.cells_of(1.0, INF) == (1, 3)


def test_the_last_position_of_whole_numbers_is_whole() -> None:
    parted = equal_cuts(SCHEMA.attributes[3], 3)
    assert parted.cells_of(2.0, 3.0) == (2, 2)
    assert parted.cells_of(2.0, 3.5) == (2, 3)
    assert parted.cells_of(-INF, INF) == (0, 7)
    real = Cuts(3, 0.0, 8.0)
    assert real.cells_of(2.0, 3.0) == (2, 2)
    assert real.cells_of(2.0, 3.5) == (2, 3)


@pytest.mark.parametrize("end", [5e-324, 1e-323, 1e-300])
def test_a_range_too_short_for_its_bits_still_has_cells(end: float) -> None:
    """An infinite factor would put the low end, 0 * inf, in no cell."""
    parted = Cuts(48, 0.0, end)
    assert isfinite(parted.factor)
    assert parted.cells_of(0.0, 5e-324) == (0, 0)
    index = ContentIndex(
        Schema((Number("x", 0.0, 1.0),)), (Cluster(WHOLE, Box((-INF,), (INF,)), (0,) * 48, (parted,)),)
    )
    many = np.tile([0.0, 5e-324], (9, 1, 1))
    assert cover(index, many) == DzSet((Dz(0, 48),))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Cuts(-1, 0, 1), "0 to 48 bits here, not -1"),
        (lambda: Cuts(49, 0, 1), "0 to 48 bits here, not 49"),
        (lambda: Cuts(17, 0, 1, at=(0.0,)), "0 to 16 bits here, not 17"),
        (lambda: Cuts(1, 1, 1), "low < end"),
        (lambda: Cuts(1, float("nan"), 1), "low < end"),
        (lambda: Cuts(1, 0, 1, log=True), "low > 0 on a log scale"),
        (lambda: Cuts(1, -1.5e308, 1.5e308), "finite"),
        (lambda: Cuts(1, 0, INF), "finite"),
        (lambda: Cuts(1, 0, 1, at=()), "1 bits need 1 cuts, not 0"),
        (lambda: Cuts(1, 0, 1, at=(float("nan"),)), "finite"),
        (lambda: Cuts(1, 0, 1, at=(INF,)), "finite"),
        (lambda: Cuts(2, 0, 1, at=(0.5, 0.4, 0.6)), "must not decrease"),
        (lambda: explicit_cuts(SCHEMA.attributes[0], [1.0, 2.0]), "2 bits need 3 cuts, not 2"),
        (
            lambda: Cluster(WHOLE, everywhere(SCHEMA), (), (Cuts(0, 0, 1),), 0.0),
            "a share above 0",
        ),
        (
            lambda: Cluster(WHOLE, everywhere(SCHEMA), (0,), (Cuts(2, 0, 1),)),
            "has 2 bits of cuts but stands 1",
        ),
        (lambda: Cluster(WHOLE, everywhere(SCHEMA), (1,), (Cuts(0, 0, 1),)), "the schema does not have"),
        (lambda: Cluster(WHOLE, everywhere(SCHEMA), (-1,), (Cuts(0, 0, 1),)), "the schema does not have"),
        (
            lambda: Cluster(Dz(0, 112), everywhere(SCHEMA), (0,), (Cuts(1, 0, 1),)),
            "at most 112 bits, not 113",
        ),
        (lambda: ContentIndex(SCHEMA, ()), "at least one cluster"),
        (lambda: regular(SCHEMA, 4, epoch=-1), "epochs count from 0"),
        (lambda: regular(SCHEMA, 4, epoch=1 << 63), "epochs count from 0"),
        (lambda: ContentIndex(Schema(SCHEMA.attributes[:2]), regular(SCHEMA, 4).clusters), "2 attributes"),
    ],
)
def test_an_index_that_contradicts_itself_is_refused(make: object, reason: str) -> None:
    assert callable(make)
    with pytest.raises(ContentIndexError, match=reason):
        make()


def test_cuts_for_another_kind_of_attribute_are_refused() -> None:
    """Cuts that take real numbers for whole ones would lose the last of them from a cover."""
    index = regular(SCHEMA, 4)
    cluster = index.clusters[0]
    for at, attribute in ((0, SCHEMA.attributes[3]), (3, SCHEMA.attributes[0])):
        wrong = list(cluster.cuts)
        wrong[at] = equal_cuts(attribute, cluster.cuts[at].bits)
        with pytest.raises(ContentIndexError, match="another kind of attribute"):
            replace(index, clusters=(replace(cluster, cuts=tuple(wrong)),))


def test_cluster_ids_that_begin_with_each_other_are_refused_wherever_they_stand() -> None:
    cluster = regular(SCHEMA, 4).clusters[0]
    for ids in (["0", "01"], ["01", "1", "0"], ["0", "0"], ["", "1"]):
        with pytest.raises(ContentIndexError, match="begins with cluster id"):
            ContentIndex(SCHEMA, tuple(replace(cluster, id=Dz.parse(id)) for id in ids))


def test_the_volume_of_a_box_is_its_share_of_the_values() -> None:
    assert volume(everywhere(SCHEMA), SCHEMA) == 1.0
    assert volume(Box((0.0, 0.0, -INF, 2.0), (50.0, 3.0, INF, 4.0)), SCHEMA) == pytest.approx(0.5 * 0.25)
    assert volume(Box((-INF, 0.0, 5.0, 0.0), (0.0, 3.0, 6.0, 8.0)), SCHEMA) == 0.0
