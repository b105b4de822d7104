"""Covers are canonical, keep to their budget, shrink as it grows, and end exact at the index's resolution."""

import time
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plerion.content.box import Box
from plerion.content.box import bounds as bounds_of
from plerion.content.schema import Number, Schema
from plerion.index.content_index import Cluster, ContentIndex, everywhere
from plerion.index.cover import (
    DEFAULT_BUDGET,
    MAX_BUDGET,
    NO_SAMPLE,
    advertised,
    cells_between,
    cover,
    covers,
    sample_of,
)
from plerion.index.cuts import ContentIndexError, Cuts, equal_cuts, explicit_cuts
from plerion.index.dz import WHOLE, Dz
from plerion.index.dzset import DzSet
from plerion.index.encode import cell_plan, encode
from plerion.index.nodes import EventSample
from plerion.index.propose import regular
from plerion.index.tiles import tile_tree
from tests.laws.indexes import (
    Floats,
    any_indexes,
    boxes,
    costly_law,
    indexes,
    interests,
    intervals,
    law,
    points,
    positions,
    schemas,
)

budgets = st.integers(1, 64)


def cells_met(cuts: Cuts, low: float, high: float) -> range:
    """The cells between those of the first and the last position in [low, high), by the definition."""
    if not cuts.discrete or not np.isfinite(high):
        return range(cuts.cell(low), cuts.cell(float(np.nextafter(high, -np.inf))) + 1)
    last = max(n for n in (np.floor(high) - 1, np.floor(high), np.ceil(high) - 1) if n < high)
    return range(cuts.cell(low), cuts.cell(float(last)) + 1)


def codes_met(cluster: Cluster, bounds: Floats) -> set[Dz]:
    """Every full-length code of the cluster whose cell meets a box, by trying all of them."""
    found = set()
    for box in bounds.tolist():
        met = [cells_met(cuts, low, high) for cuts, (low, high) in zip(cluster.cuts, box, strict=True)]
        for suffix in product("01", repeat=len(cluster.order)):
            cell = [0] * len(cluster.cuts)
            for attribute, bit in zip(cluster.order, suffix, strict=True):
                cell[attribute] = cell[attribute] << 1 | int(bit)
            if all(number in numbers for number, numbers in zip(cell, met, strict=True)):
                found.add(cluster.id.append(Dz.parse("".join(suffix))))
    return found


def all_codes_met(index: ContentIndex, bounds: Floats) -> set[Dz]:
    """In the interest's home or, where the clusters tile the space, in each of them."""
    if tile_tree(index) is None:
        return codes_met(index.home(bounds), bounds)
    return set().union(*(codes_met(cluster, within(bounds, cluster.box)) for cluster in index.clusters))


def within(bounds: Floats, box: Box) -> Floats:
    """The parts of the boxes that lie in another one."""
    lows, highs = np.maximum(bounds[:, :, 0], box.lows), np.minimum(bounds[:, :, 1], box.highs)
    return np.stack((lows, highs), axis=-1)[(lows < highs).all(axis=1)]


def useless(cover: DzSet, met: set[Dz]) -> list[Dz]:
    """Cells of the cover in which no box has a part."""
    return [dz for dz in cover if not any(dz.covers(code) for code in met)]


def common_prefix(codes: set[Dz]) -> Dz:
    texts = sorted(str(code) for code in codes)
    same = next((i for i, (a, b) in enumerate(zip(texts[0], texts[-1], strict=True)) if a != b), None)
    return Dz.parse(texts[0][:same])


def volume(cover: DzSet) -> int:
    return sum(dz.end - dz.start for dz in cover)


@st.composite
def samples(draw: st.DrawFn, index: ContentIndex, near: Floats) -> EventSample:
    return sample_of(encode(index, draw(points(index.schema, near)))) if draw(st.booleans()) else NO_SAMPLE


@law
@given(any_indexes(), st.data(), budgets)
def test_covers_are_canonical_and_keep_to_their_budget(
    index: ContentIndex, data: st.DataObject, budget: int
) -> None:
    bounds = data.draw(interests(index))
    found = cover(index, bounds, budget, data.draw(samples(index, bounds)))
    assert found == DzSet.of(found)
    assert 1 <= len(found) <= budget
    assert all(not a.overlaps(b) for a in found for b in found if a is not b)


@costly_law
@given(indexes(max_bits=8), st.data())
def test_a_cover_is_exact_when_the_budget_suffices(index: ContentIndex, data: st.DataObject) -> None:
    bounds = data.draw(interests(index))
    met = all_codes_met(index, bounds)
    assert cover(index, bounds, 1 << 9, data.draw(samples(index, bounds))) == DzSet.of(met)


@costly_law
@given(indexes(max_bits=8), st.data())
def test_one_box_needs_no_more_budget_than_its_exact_cover_has_cells(
    index: ContentIndex, data: st.DataObject
) -> None:
    bounds = data.draw(interests(index))[:1]
    exact = DzSet.of(all_codes_met(index, bounds))
    assert cover(index, bounds, len(exact), data.draw(samples(index, bounds))) == exact


@costly_law
@given(indexes(max_bits=8), st.data(), budgets)
def test_a_cover_has_every_code_of_the_boxes_and_no_cell_without_one(
    index: ContentIndex, data: st.DataObject, budget: int
) -> None:
    bounds = data.draw(interests(index))
    found = cover(index, bounds, budget, data.draw(samples(index, bounds)))
    met = all_codes_met(index, bounds)
    assert all(found.covers(code) for code in met)
    assert useless(found, met) == []


@costly_law
@given(indexes(max_bits=8), st.data())
def test_a_cover_of_one_cell_is_the_smallest_cell_around_all_boxes(
    index: ContentIndex, data: st.DataObject
) -> None:
    bounds = data.draw(interests(index))
    met = all_codes_met(index, bounds)
    assert cover(index, bounds, 1) == DzSet((common_prefix(met),))


@law
@given(any_indexes(), st.data(), budgets)
def test_a_cover_with_any_budget_lies_inside_the_one_cell_around_it(
    index: ContentIndex, data: st.DataObject, budget: int
) -> None:
    bounds = data.draw(interests(index))
    found = cover(index, bounds, budget, data.draw(samples(index, bounds)))
    assert found - cover(index, bounds, 1) == DzSet()


@pytest.mark.parametrize(("budget", "by_splitting_alone"), [(4, 8.92), (8, 3.75), (32, 1.27), (128, 0.796)])
def test_a_cover_wastes_less_than_splitting_alone(budget: int, by_splitting_alone: float) -> None:
    random = np.random.default_rng(1)
    lows = random.integers(0, 192, (200, 3)).astype(float)
    bounds = np.stack((lows, lows + random.integers(8, 64, (200, 3))), axis=-1)
    cells = covers(regular(BYTES, 18), np.arange(201), bounds, budget).dz
    assert (0.5 ** cells.length.astype(float)).sum() < by_splitting_alone


@law
@given(any_indexes(), st.data(), budgets)
def test_covers_of_many_interests_are_those_of_each(
    index: ContentIndex, data: st.DataObject, budget: int
) -> None:
    several = data.draw(st.lists(interests(index, min_boxes=0), max_size=4))
    sample = data.draw(samples(index, np.concatenate([*several, np.empty((0, len(index.schema.names), 2))])))
    offsets = np.cumsum([0, *map(len, several)])
    bounds = np.concatenate([np.empty((0, len(index.schema.names), 2)), *several])
    found = covers(index, offsets, bounds, budget, sample)
    assert found.sets() == [cover(index, each, budget, sample) for each in several]
    assert found.sets() == covers(index, offsets, bounds, budget, sample).sets()
    assert [bool(cells) for cells in found.sets()] == [len(each) > 0 for each in several]


@law
@given(schemas(), st.data())
def test_the_cells_of_an_interval_are_those_of_its_positions(schema: Schema, data: st.DataObject) -> None:
    attribute = schema.attributes[0]
    index = regular(schema, data.draw(st.integers(0, 60)))
    low, high = data.draw(intervals(attribute, fractions=True))
    cuts = index.clusters[0].cuts[0]
    first, last = cuts.cells_of(low, high)
    assert first <= cuts.cell(data.draw(positions(attribute, low, high))) <= last
    assert range(first, last + 1) == cells_met(cuts, low, high)


@law
@given(any_indexes(), st.data())
def test_the_compiled_cells_of_a_box_are_the_defined_ones(index: ContentIndex, data: st.DataObject) -> None:
    asked = data.draw(st.lists(boxes(index.schema, fractions=True), max_size=9))
    for cluster in index.clusters:
        plan = cell_plan(cluster)
        expected = [
            [cluster.cuts[a].cells_of(box.lows[a], box.highs[a]) for a in plan.attribute.tolist()]
            for box in asked
        ]
        found = [
            [cells_between(plan, j, box.lows[a], box.highs[a]) for j, a in enumerate(plan.attribute.tolist())]
            for box in asked
        ]
        assert found == expected


@costly_law
@given(indexes(max_bits=7), st.data())
def test_what_is_advertised_is_exact_when_the_budget_suffices(
    index: ContentIndex, data: st.DataObject
) -> None:
    asked = data.draw(st.lists(boxes(index.schema), max_size=3))
    bounds = bounds_of(asked, index.schema)
    met = set().union(*(codes_met(cluster, within(bounds, cluster.box)) for cluster in index.clusters))
    assert advertised(index, bounds, 1 << 8) == DzSet.of(met)


@law
@given(any_indexes(), st.data())
def test_a_sample_is_the_codes_of_its_events_in_order(index: ContentIndex, data: st.DataObject) -> None:
    events = data.draw(points(index.schema, data.draw(interests(index))))
    sample = sample_of(encode(index, events))
    codes = sorted(code.key() for point in events.tolist() for code in index.codes(point))
    assert list(zip(sample.high.tolist(), sample.low.tolist(), strict=True)) == codes


# How much work, and where it goes.

BYTES = Schema(tuple(Number(name, 0, 255, integer=True) for name in "xyz"))
SHORT_OF_THE_BORDER = np.array([[[1.0, 255.0]] * 3])


def cells_short_of_the_border(bits: int, attributes: int) -> int:
    """How many dz the box one unit short of every border needs, counted by halving."""

    @cache
    def needed(depth: int, touching: tuple[frozenset[str], ...]) -> int:
        if not any(touching) or depth == bits * attributes:
            return int(not any(touching))
        at = depth % attributes
        halves = [(*touching[:at], touching[at] & {side}, *touching[at + 1 :]) for side in ("lower", "upper")]
        return sum(needed(depth + 1, half) for half in halves)

    return needed(0, (frozenset({"lower", "upper"}),) * attributes)


def test_the_box_one_unit_short_of_the_border_needs_very_many_cells() -> None:
    assert cells_short_of_the_border(8, 3) == 296_840
    small = Schema(tuple(Number(name, 0, 15, integer=True) for name in "xyz"))
    exact = cover(regular(small, 12), np.array([[[1.0, 15.0]] * 3]), MAX_BUDGET)
    assert len(exact) == cells_short_of_the_border(4, 3)


@pytest.mark.parametrize("budget", [8, 1000, MAX_BUDGET])
def test_work_is_bounded_by_the_budget_and_not_by_the_box(budget: int) -> None:
    index = regular(BYTES, 24)
    cover(index, SHORT_OF_THE_BORDER, 2)  # compiles
    began = time.process_time()
    found = cover(index, SHORT_OF_THE_BORDER, budget)
    assert time.process_time() - began < 1.0
    assert len(found) <= budget
    assert found == DzSet.of(found)
    assert all(found.covers(*index.codes((x, y, 254.0))) for x in (1.0, 254.0) for y in (1.0, 128.0))


def test_more_budget_removes_the_largest_waste_first() -> None:
    line = regular(Schema((Number("x", 0, 255, integer=True),)), 8)
    two = np.array([[[0.0, 65.0]], [[192.0, 194.0]]])  # a quarter and one more; two cells of the last quarter
    assert cover(line, two, 1) == DzSet((WHOLE,))
    assert cover(line, two, 2) == DzSet.parse("0", "1100000")
    assert cover(line, two, 3) == DzSet.parse("00", "01000000", "1100000")


def test_of_two_cells_alike_the_one_that_is_asked_for_less_is_split_first() -> None:
    line = regular(Schema((Number("x", 0, 255, integer=True),)), 8)
    full, empty = [[[0.0, 120.0]]], [[[128.0, 129.0]], [[255.0, 256.0]]]
    assert cover(line, np.array(full + empty), 3) == DzSet.parse("0", "10000000", "11111111")
    full, empty = [[[128.0, 250.0]]], [[[0.0, 1.0]], [[127.0, 128.0]]]
    assert cover(line, np.array(full + empty), 3) == DzSet.parse("1", "00000000", "01111111")


def test_no_budget_goes_to_a_cell_that_is_asked_for_whole_even_where_it_is_one_cell_wide() -> None:
    schema = Schema(tuple(Number(name, 0, 7, integer=True) for name in "xy"))
    cuts = tuple(equal_cuts(attribute, 3) for attribute in schema.attributes)
    index = ContentIndex(schema, (Cluster(WHOLE, everywhere(schema), (0, 0, 0, 1, 1, 1), cuts),))
    assert cover(index, np.array([[[3.0, 4.0], [0.0, 7.0]]]), 3) == DzSet.parse("0110", "01110", "011110")


def test_where_events_are_known_they_take_the_place_of_volume() -> None:
    line = regular(Schema((Number("x", 0, 255, integer=True),)), 8)
    two = np.array([[[0.0, 1.0]], [[100.0, 101.0]], [[192.0, 193.0]], [[224.0, 225.0]]])
    busy = sample_of(encode(line, np.full((50, 1), 200.0)))
    assert cover(line, two, 2) == DzSet.parse("0", "11")
    assert cover(line, two, 3) == DzSet.parse("00000000", "01100100", "11")
    assert cover(line, two, 3, busy) == DzSet.parse("0", "11000000", "11100000")


def halves_with(lower: float | None, upper: float | None) -> ContentIndex:
    """The line in two tiles that know their shares of the events, or do not."""
    x = Number("x", 0, 255, integer=True)
    tiles = (("0", -np.inf, 128.0, 0, lower), ("1", 128.0, np.inf, 128, upper))
    return ContentIndex(
        Schema((x,)),
        tuple(
            Cluster(
                Dz.parse(id), Box((low,), (high,)), (0,) * 7, (equal_cuts(x, 7, begin, begin + 128),), share
            )
            for id, low, high, begin, share in tiles
        ),
    )


def test_a_cluster_that_knows_its_share_of_the_events_has_that_for_volume() -> None:
    four = np.array([[[low, low + 1.0]] for low in (0.0, 100.0, 192.0, 224.0)])
    even, busy_above = halves_with(None, None), halves_with(0.001, 0.999)
    assert cover(even, four, 3) == cover(halves_with(0.5, 0.5), four, 3)
    assert cover(even, four, 3) == DzSet.parse("00000000", "01100100", "11")
    assert cover(busy_above, four, 3) == DzSet.parse("0", "11000000", "11100000")


def test_events_in_the_last_cell_of_the_space_count_too() -> None:
    line = regular(Schema((Number("x", 0, 255, integer=True),)), 8)
    four = np.array([[[low, low + 1.0]] for low in (0.0, 100.0, 192.0, 255.0)])
    busy = sample_of(encode(line, np.full((50, 1), 254.0)))
    assert cover(line, four, 3) == DzSet.parse("00000000", "01100100", "11")
    assert cover(line, four, 3, busy) == DzSet.parse("0", "11000000", "11111111")


def test_boxes_that_meet_are_covered_as_one() -> None:
    line = regular(Schema((Number("x", 0, 255, integer=True),)), 8)
    assert cover(line, np.array([[[0.0, 100.0]], [[100.0, 256.0]]]), DEFAULT_BUDGET) == DzSet((WHOLE,))


def test_cells_of_cuts_on_the_same_place_are_empty_but_do_no_harm() -> None:
    schema = Schema((Number("x", 0, 7, integer=True),))
    index = regular(schema, 2)
    same = explicit_cuts(schema.attributes[0], [4.0, 4.0, 4.0])
    index = replace(index, clusters=(replace(index.clusters[0], cuts=(same,)),))
    assert [str(*index.codes((x,))) for x in (3.0, 4.0)] == ["00", "11"]
    assert cover(index, np.array([[[0.0, 4.0]]])) == DzSet.parse("00")


@pytest.mark.parametrize("budget", [0, -1, MAX_BUDGET + 1])
def test_a_budget_out_of_bounds_is_refused(budget: int) -> None:
    for find in (cover, advertised):
        with pytest.raises(ContentIndexError, match=f"not {budget}"):
            find(regular(BYTES, 24), SHORT_OF_THE_BORDER, budget)


def test_a_cell_without_need_is_found() -> None:
    index = regular(BYTES, 6)
    met = codes_met(index.clusters[0], np.array([[[0.0, 1.0]] * 3]))
    assert useless(DzSet.parse("000000"), met) == []
    assert useless(DzSet.parse("000000", "1"), met) == [Dz.parse("1")]


@law
@given(schemas(), st.data())
def test_nothing_is_asked_by_no_boxes_and_all_by_the_whole_space(schema: Schema, data: st.DataObject) -> None:
    index = regular(schema, data.draw(st.integers(0, 30)))
    width = len(schema.attributes)
    assert cover(index, np.empty((0, width, 2))) == DzSet()
    assert advertised(index, np.empty((0, width, 2))) == DzSet()
    assert cover(index, np.array([[[-np.inf, np.inf]] * width])) == DzSet((WHOLE,))
    box = data.draw(boxes(schema))
    bounds = np.array([list(zip(box.lows, box.highs, strict=True))])
    assert advertised(index, bounds) == cover(index, bounds)
