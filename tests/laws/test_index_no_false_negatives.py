"""Law 2: for every index and every budget, a matching event's code lies in the interest's cover."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from plerion.content.box import Box
from plerion.content.schema import Number, Schema
from plerion.index.content_index import Cluster, ContentIndex, everywhere, volume
from plerion.index.cover import NO_SAMPLE, advertised, cover, sample_of
from plerion.index.cuts import ContentIndexError, equal_cuts
from plerion.index.dz import WHOLE, Dz
from plerion.index.dzset import DzSet
from plerion.index.encode import encode
from plerion.index.nodes import EventSample
from plerion.index.propose import regular
from plerion.index.tiles import tile_tree
from tests.laws.indexes import Floats, any_indexes, boxes, interests, law, points

budgets = st.integers(1, 64)


def wanted(bounds: Floats, point: list[float]) -> bool:
    return any(box.contains(point) for box in _boxes(bounds))


def _boxes(bounds: Floats) -> list[Box]:
    return [Box(tuple(box[:, 0]), tuple(box[:, 1])) for box in bounds]


def misses(index: ContentIndex, bounds: Floats, cover: DzSet, events: Floats) -> list[list[float]]:
    """The events that the interest wants and that have no code in the cover."""
    asked = [point for point in events.tolist() if wanted(bounds, point)]
    return [point for point in asked if not any(cover.covers(code) for code in index.codes(point))]


def doubles(cover: DzSet, index: ContentIndex, events: Floats) -> list[list[float]]:
    """The events that would reach the interest more than once."""
    return [point for point in events.tolist() if sum(map(cover.covers, index.codes(point))) > 1]


def unadvertised(index: ContentIndex, bounds: Floats, cells: DzSet, events: Floats) -> list[Dz]:
    """Codes of events in the boxes that the cells leave out."""
    asked = [point for point in events.tolist() if wanted(bounds, point)]
    return [code for point in asked for code in index.codes(point) if not cells.covers(code)]


def samples(index: ContentIndex, events: Floats, known: bool) -> EventSample:
    return sample_of(encode(index, events)) if known else NO_SAMPLE


@law
@given(any_indexes(), st.data(), budgets, st.booleans())
def test_every_matching_event_has_exactly_one_code_in_the_cover(
    index: ContentIndex, data: st.DataObject, budget: int, known: bool
) -> None:
    bounds = data.draw(interests(index))
    events = data.draw(points(index.schema, bounds))
    found = cover(index, bounds, budget, samples(index, events, known))
    assert misses(index, bounds, found, events) == []
    assert doubles(found, index, events) == []


@law
@given(any_indexes(), st.data(), budgets, st.booleans())
def test_a_cover_lies_in_the_smallest_cluster_that_encloses_the_interest(
    index: ContentIndex, data: st.DataObject, budget: int, known: bool
) -> None:
    assume(tile_tree(index) is None)
    bounds = data.draw(interests(index))
    home = index.home(bounds)
    found = cover(index, bounds, budget, samples(index, data.draw(points(index.schema)), known))
    assert all(home.id.covers(dz) and dz.length <= home.length for dz in found)
    enclosing = [c for c in index.clusters if all(_inside(box, c.box) for box in _boxes(bounds))]
    assert home == min(enclosing, key=lambda cluster: volume(cluster.box, index.schema))


@law
@given(any_indexes(), st.data(), budgets, st.booleans())
def test_what_is_advertised_covers_every_code_of_every_event_in_the_boxes(
    index: ContentIndex, data: st.DataObject, budget: int, known: bool
) -> None:
    asked = data.draw(st.lists(boxes(index.schema, fractions=True), min_size=1, max_size=3))
    bounds = np.array([list(zip(box.lows, box.highs, strict=True)) for box in asked])
    near = [bounds]
    for cluster in index.clusters:
        sides = np.array(list(zip(cluster.box.lows, cluster.box.highs, strict=True)))
        lows, highs = np.maximum(bounds[..., 0], sides[:, 0]), np.minimum(bounds[..., 1], sides[:, 1])
        near.append(np.stack((lows, highs), axis=-1)[(lows < highs).all(axis=1)])
    events = data.draw(points(index.schema, np.concatenate(near)))
    cells = advertised(index, bounds, budget, samples(index, events, known))
    assert unadvertised(index, bounds, cells, events) == []
    assert cells == DzSet.of(cells)
    assert len(cells) <= budget * len(index.clusters)


@law
@given(any_indexes(), st.data())
def test_an_interest_that_no_cluster_encloses_is_refused(index: ContentIndex, data: st.DataObject) -> None:
    box = data.draw(boxes(index.schema))
    bounds = np.array([list(zip(box.lows, box.highs, strict=True))])
    if tile_tree(index) or any(_inside(box, cluster.box) for cluster in index.clusters):
        assert len(cover(index, bounds)) >= 1
    else:
        with pytest.raises(ContentIndexError, match="outside every cluster"):
            cover(index, bounds)


def _inside(box: Box, other: Box) -> bool:
    lows = zip(box.lows, other.lows, strict=True)
    highs = zip(box.highs, other.highs, strict=True)
    return all(a >= b for a, b in lows) and all(a <= b for a, b in highs)


@law
@given(any_indexes())
def test_an_index_of_the_whole_space_takes_every_interest(index: ContentIndex) -> None:
    everything = np.array([[[-np.inf, np.inf]] * len(index.schema.attributes)])
    if tile_tree(index) or everywhere(index.schema) in [cluster.box for cluster in index.clusters]:
        assert len(cover(index, everything)) >= 1
    else:
        with pytest.raises(ContentIndexError, match="outside every cluster"):
            cover(index, everything)


# The oracles can fail.

GRID = Schema((Number("x", 0, 7, integer=True), Number("y", 0, 7, integer=True)))
EVERY_EVENT = np.array([[float(x), float(y)] for x in range(8) for y in range(8)])
SOME = np.array([[[1.0, 6.0], [2.0, 7.0]]])


@pytest.mark.parametrize("budget", [1, 4, 16])
def test_a_cover_that_lost_a_cell_is_found_to_miss_events(budget: int) -> None:
    index = regular(GRID, 6)
    whole = cover(index, SOME, budget)
    assert misses(index, SOME, whole, EVERY_EVENT) == []
    for lost in whole:
        assert misses(index, SOME, whole - DzSet((lost,)), EVERY_EVENT) != []
    assert unadvertised(index, SOME, DzSet(whole.cells[1:]), EVERY_EVENT) != []


def test_a_cover_made_with_another_index_is_found_to_miss_events() -> None:
    index = regular(GRID, 6)
    shifted = tuple(equal_cuts(a, 3, 1.0, 9.0) for a in GRID.attributes)
    other = replace(index, clusters=(replace(index.clusters[0], cuts=shifted),))
    assert misses(index, SOME, cover(other, SOME, 64), EVERY_EVENT) != []


def test_a_cover_in_two_clusters_is_found_to_deliver_twice() -> None:
    both = tuple(replace(regular(GRID, 6).clusters[0], id=Dz.parse(id)) for id in "01")
    index = ContentIndex(GRID, both)
    twice = cover(replace(index, clusters=both[:1]), SOME) | cover(replace(index, clusters=both[1:]), SOME)
    assert doubles(cover(index, SOME), index, EVERY_EVENT) == []
    assert doubles(twice, index, EVERY_EVENT) != []


def test_a_cluster_whose_side_is_no_whole_number_is_advertised_to_its_last_event() -> None:
    cuts = equal_cuts(GRID.attributes[0], 3), equal_cuts(GRID.attributes[1], 0)
    half = Cluster(WHOLE, Box((0.0, 0.0), (3.5, 8.0)), (0, 0, 0), cuts)
    index = ContentIndex(GRID, (half,))
    everything = np.array([[[0.0, 8.0], [0.0, 8.0]]])
    assert advertised(index, everything) == DzSet.parse("0")
    assert unadvertised(index, everything, advertised(index, everything), EVERY_EVENT) == []
