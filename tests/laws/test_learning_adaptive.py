"""Adaptive cuts halve the workload as evenly as its positions allow, and cost no wanted event."""

from itertools import pairwise
from math import inf, nextafter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plerion.content.schema import MISSING, Attribute, Number, Schema
from plerion.index.codec import from_json, to_json
from plerion.index.content_index import ContentIndex
from plerion.index.cuts import Cuts
from plerion.index.dz import WHOLE, Dz
from plerion.index.tiles import tile_tree
from plerion.learning.adaptive import adaptive, adaptive_tree, bin_positions, weighed, workload_cuts
from plerion.learning.summaries import workload_axes
from plerion.learning.workload import Floats, Workload
from plerion.matching.bitset import match_counts
from tests.laws.indexes import attributes, costly_law, is_discrete, law, positions
from tests.laws.test_learning_judge import LINE, faults, workloads

Histogram = list[tuple[float, float]]


@st.composite
def histograms(draw: st.DrawFn, attribute: Attribute) -> Histogram:
    """Positions in order, MISSING among them, each with a weight; some weigh nothing."""
    places = sorted(set(draw(st.lists(positions(attribute), max_size=12))))
    weight = st.sampled_from([0.0, 1.0, 1.0, 2.0, 7.0, 100.0])
    return [(place, draw(weight)) for place in places]


def columns(found: Histogram) -> tuple[Floats, Floats]:
    return np.array([p for p, _ in found], np.float64), np.array([w for _, w in found], np.float64)


def imbalance(inside: Histogram, cut: float) -> float:
    return abs(sum(w if p < cut else -w for p, w in inside))


def uneven(found: Histogram, cuts: tuple[float, ...], low: float, high: float) -> list[str]:
    """Halvings of [low, high) that leave the cell, or that another cut would make more even."""
    if not cuts:
        return []
    middle = len(cuts) // 2
    cut = cuts[middle]
    inside = [(p, w) for p, w in found if low <= p < high and w > 0]
    wrong = [] if low <= cut <= high else [f"{cut} is outside of {low} to {high}"]
    if len(inside) > 1:
        best = min(imbalance(inside, p) for p, _ in inside[1:])
        wrong += [f"{cut} is uneven"] if imbalance(inside, cut) > best else []
    wrong += uneven(found, cuts[:middle], low, cut)
    return wrong + uneven(found, cuts[middle + 1 :], cut, high)


@law
@given(attributes(), st.integers(0, 6), st.data())
def test_each_halving_is_as_even_as_the_positions_let_it_be(
    attribute: Attribute, bits: int, data: st.DataObject
) -> None:
    found = data.draw(histograms(attribute))
    cuts = workload_cuts(attribute, bits, *columns(found))
    assert cuts.bits == bits
    if cuts.at is not None:
        assert uneven(found, cuts.at, attribute.start, attribute.end) == []
    else:
        assert bits == 0 or not any(p > MISSING and w > 0 for p, w in found)


@law
@given(attributes(), st.integers(1, 5), st.data())
def test_cuts_inside_a_tile_are_even_there(attribute: Attribute, bits: int, data: st.DataObject) -> None:
    found = data.draw(histograms(attribute))
    low, high = sorted(data.draw(positions(attribute, attribute.start)) for _ in range(2))
    cuts = workload_cuts(attribute, bits, *columns(found), (low, high))
    if cuts.at is not None:
        assert uneven(found, cuts.at, low, high) == []


@law
@given(attributes(), st.integers(2, 6), st.data())
def test_a_position_with_all_the_weight_has_a_cell_to_itself(
    attribute: Attribute, bits: int, data: st.DataObject
) -> None:
    place = data.draw(positions(attribute, attribute.start))
    others = [(p, 0.0) for p in data.draw(st.sets(positions(attribute))) if p != place]
    cuts = workload_cuts(attribute, bits, *columns(sorted([*others, (place, 3.0)])))
    step = 1.0 if is_discrete(attribute) else 0.0
    before, after = (place - 1, place + 1) if step else (nextafter(place, -inf), nextafter(place, inf))
    assert before < attribute.start or cuts.cell(before) < cuts.cell(place)
    assert after >= attribute.end or cuts.cell(place) < cuts.cell(after)


def test_cells_of_even_positions_are_equally_full() -> None:
    line = Number("x", 0, 1023, integer=True)
    cuts = workload_cuts(line, 3, np.arange(1024.0), np.ones(1024))
    assert cuts.at == (128, 256, 384, 512, 640, 768, 896)
    crowded = workload_cuts(line, 2, np.array([3.0, 500.0, 501.0, 502.0]), np.ones(4))
    assert crowded.at == (500, 501, 502)


@law
@given(workloads())
def test_positions_are_weighed_once(load: Workload) -> None:
    weights = match_counts(load.bounds, load.points).astype(np.float64)
    for a, (places, mass) in enumerate(weighed(load.points, weights)):
        column = load.points[:, a].tolist()
        assert places.tolist() == sorted(set(column))
        assert mass.tolist() == [
            sum(w for p, w in zip(column, weights.tolist(), strict=True) if p == place) for place in places
        ]


@st.composite
def made(draw: st.DrawFn) -> tuple[Workload, list[int], int, int, Floats]:
    """A workload, attributes in any order, bits, a number of clusters, and the weight of each event."""
    load = draw(workloads())
    every = range(len(load.schema.attributes))
    chosen = draw(st.lists(st.sampled_from(every), min_size=1, unique=True))
    weights = match_counts(load.bounds, load.points).astype(np.float64)
    return load, chosen, draw(st.integers(0, 12)), draw(st.integers(1, 9)), weights


Made = tuple[Workload, list[int], int, int, Floats]


@costly_law
@given(made())
def test_an_adaptive_index_has_one_cluster_and_costs_no_wanted_event(drawn: Made) -> None:
    load, chosen, bits, _, weights = drawn
    index = adaptive(load.schema, bits, chosen, weighed(load.points, weights), 5)
    assert (len(index.clusters), index.epoch) == (1, 5)
    assert tile_tree(index) is not None
    assert_within(index, chosen, bits)
    assert faults(index, load) == []


@costly_law
@given(made())
def test_an_adaptive_tree_is_a_tiling_and_costs_no_wanted_event(drawn: Made) -> None:
    load, chosen, bits, clusters, weights = drawn
    index = adaptive_tree(load.schema, bits, chosen, load.points, weights, clusters, 5)
    assert 1 <= len(index.clusters) <= clusters
    assert index.epoch == 5
    assert tile_tree(index) is not None
    assert_within(index, chosen, bits)
    assert faults(index, load) == []


def assert_within(index: ContentIndex, chosen: list[int], bits: int) -> None:
    assert index.bits <= bits
    assert all(set(cluster.order) <= set(chosen) for cluster in index.clusters)
    for cluster in index.clusters:
        parted = zip(cluster.box.lows, cluster.box.highs, strict=True)
        assert {a for a, side in enumerate(parted) if side != (-inf, inf)} <= set(chosen)
    assert from_json(to_json(index)) == index


def halvings(index: ContentIndex) -> list[tuple[Dz, int, float, list[int]]]:
    """(id, attribute, cut, clusters below) of every inner node of the tiling, from the boxes alone."""
    found = []
    prefixes = {Dz.parse(str(c.id)[:n]) for c in index.clusters for n in range(c.id.length)}
    for prefix in sorted(prefixes):
        below = [i for i, c in enumerate(index.clusters) if prefix.covers(c.id)]
        upper = [index.clusters[i].box for i in below if prefix.child(1).covers(index.clusters[i].id)]
        lower = [index.clusters[i].box for i in below if prefix.child(0).covers(index.clusters[i].id)]
        ((a, cut),) = [
            (a, min(box.lows[a] for box in upper))
            for a in range(len(index.schema.attributes))
            if min(box.lows[a] for box in upper) != min(box.lows[a] for box in lower)
        ]
        found.append((prefix, a, cut, below))
    return found


@costly_law
@given(made())
def test_the_tiles_of_a_tree_have_even_workloads_and_so_have_the_cells_in_them(drawn: Made) -> None:
    load, chosen, bits, clusters, weights = drawn
    index = adaptive_tree(load.schema, bits, chosen, load.points, weights, clusters)
    home = [next(i for i, c in enumerate(index.clusters) if c.box.contains(p)) for p in load.points.tolist()]
    for _, a, cut, below in halvings(index):
        assert a in chosen
        rows = [e for e, i in enumerate(home) if i in below]
        found = histogram(load.points[rows, a], weights[rows])
        edges = [index.clusters[i].box for i in below]
        low, high = min(box.lows[a] for box in edges), max(box.highs[a] for box in edges)
        attribute = load.schema.attributes[a]
        assert uneven(found, (cut,), max(low, attribute.start), min(high, attribute.end)) == []
    for i, cluster in enumerate(index.clusters):
        rows = [e for e, j in enumerate(home) if i == j]
        for a, attribute in enumerate(load.schema.attributes):
            at = cluster.cuts[a].at or ()
            low, high = max(cluster.box.lows[a], attribute.start), min(cluster.box.highs[a], attribute.end)
            assert uneven(histogram(load.points[rows, a], weights[rows]), at, low, high) == []


def histogram(column: Floats, weights: Floats) -> Histogram:
    pairs = list(zip(column.tolist(), weights.tolist(), strict=True))
    return [(p, sum(w for q, w in pairs if q == p)) for p in sorted({p for p, _ in pairs})]


@pytest.mark.parametrize(("clusters", "ids"), [(1, 1), (3, 2), (4, 4), (16, 16), (17, 16)])
def test_a_tree_has_the_next_lower_power_of_two_of_tiles(clusters: int, ids: int) -> None:
    square = Schema((Number("x", 0, 255, integer=True), Number("y", 0, 255, integer=True)))
    points = np.random.default_rng(1).integers(0, 256, (500, 2)).astype(np.float64)
    index = adaptive_tree(square, 10, [0, 1], points, np.ones(500), clusters)
    assert len(index.clusters) == ids
    full = [sum(c.box.contains(p) for p in points.tolist()) for c in index.clusters]
    assert max(full) - min(full) <= 0.1 * 500 / ids + 8
    assert all(cluster.length == 10 for cluster in index.clusters)
    assert [cluster.order[:2] for cluster in index.clusters if cluster.id.length % 2] == [
        (1, 0) for cluster in index.clusters if cluster.id.length % 2
    ]


@law
@given(attributes())
def test_a_bin_stands_where_it_begins(attribute: Attribute) -> None:
    (axis,) = workload_axes(Schema((attribute,)))
    places = bin_positions(attribute, axis).tolist()
    assert len(places) == axis.cells
    assert all(one <= other for one, other in pairwise(places))
    assert places[0] == attribute.start
    if axis.factor < 1e300 and axis.cells <= attribute.end - attribute.start and not axis.log:
        assert all(abs(axis.cell(p) - b) <= 1 for b, p in enumerate(places))
    assert all(p == round(p) for p in places) or not is_discrete(attribute)


def test_logarithmic_bins_stand_where_they_begin() -> None:
    axis = Cuts(3, 1.0, 256.0, log=True)
    places = bin_positions(Number("x", 1.0, 255.0, scale="log"), axis).tolist()
    assert places == [1, 2, 4, 8, 16, 32, 64, 128]
    assert [axis.cell(p) for p in places] == list(range(8))


def test_the_oracle_sees_uneven_cuts() -> None:
    found = [(float(p), 1.0) for p in range(8)]
    assert uneven(found, (2.0, 4.0, 6.0), 0, 8) == []
    assert uneven(found, (2.0, 5.0, 6.0), 0, 8) != []
    assert uneven(found, (1.0, 4.0, 6.0), 0, 8) == ["1.0 is uneven"]
    assert uneven(found, (5.0, 4.0, 6.0), 0, 8) != []
    assert uneven([(0.0, 9.0), (1.0, 1.0), (2.0, 1.0)], (2.0,), 0, 8) == ["2.0 is uneven"]
    tree = adaptive_tree(LINE, 3, [0], np.arange(8.0).reshape(-1, 1), np.ones(8), 4)
    assert halvings(tree) == [
        (WHOLE, 0, 4.0, [0, 1, 2, 3]),
        (Dz.parse("0"), 0, 2.0, [0, 1]),
        (Dz.parse("1"), 0, 6.0, [2, 3]),
    ]
