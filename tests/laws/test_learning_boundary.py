"""Boundary indexes tile the space, cut only where subscriptions end, and cost no wanted event."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plerion.content.box import Box
from plerion.content.schema import Number, Schema
from plerion.experiments.synthetic import PRESETS
from plerion.experiments.synthetic import workload as synthetic
from plerion.index.codec import from_json, to_json
from plerion.index.content_index import ContentIndex
from plerion.index.cuts import ContentIndexError, explicit_cuts
from plerion.index.propose import regular
from plerion.index.tiles import tile_tree
from plerion.learning.boundary import best_cut, boundary
from plerion.learning.judge import Judge
from plerion.learning.pairs import false_pairs
from plerion.learning.propose import Request, propose, summaries
from plerion.learning.workload import Workload
from tests.laws.indexes import costly_law, law
from tests.laws.test_learning_judge import LINE, faults, interest, line, wanted_pairs, workloads
from tests.laws.test_learning_pairs import Raw, all_false, candidates, parts, raws, whole


@st.composite
def requests(draw: st.DrawFn) -> tuple[Workload, int, frozenset[int], int]:
    load = draw(workloads())
    every = range(len(load.schema.attributes))
    chosen = draw(st.just(set(every)) | st.sets(st.sampled_from(every)))
    bits = draw(st.sampled_from([2, 1, 0, 3, 5, 12, 23]))
    return load, bits, frozenset(chosen), draw(st.integers(1, 8))


def strangers(index: ContentIndex, load: Workload, chosen: frozenset[int]) -> list[str]:
    """Cuts and sides of tiles that are no end of a subscription, or lie on an attribute that was not chosen."""
    found = []
    for cluster in index.clusters:
        for a, cuts in enumerate(cluster.cuts):
            ends = set(load.bounds[:, a].ravel().tolist()) if a in chosen else set()
            placed = [*(cuts.at or ()), cluster.box.lows[a], cluster.box.highs[a]]
            found += [f"{p} on {a}" for p in placed if p not in ends | {-inf, inf}]
            found += (
                [f"{cuts.bits} bits on {a}"] if cuts.bits and (a not in chosen or cuts.at is None) else []
            )
    return found


@costly_law
@given(requests())
def test_a_boundary_index_is_a_tiling_within_its_bounds(
    asked: tuple[Workload, int, frozenset[int], int],
) -> None:
    load, bits, chosen, clusters = asked
    index = boundary(load, bits, chosen, clusters, epoch=3)
    assert tile_tree(index) is not None
    assert 1 <= len(index.clusters) <= clusters
    assert index.bits <= bits
    assert index.epoch == 3
    assert strangers(index, load, chosen) == []
    assert boundary(load, bits, chosen, clusters, epoch=3) == index
    assert from_json(to_json(index)) == index


@costly_law
@given(requests())
def test_a_boundary_index_costs_no_wanted_event(asked: tuple[Workload, int, frozenset[int], int]) -> None:
    load, bits, chosen, clusters = asked
    assert faults(boundary(load, bits, chosen, clusters), load) == []


def exact_deliveries(load: Workload, bits: int, clusters: int = 1) -> int:
    """With covers of as many cells as there are."""
    return Judge.of(load, 1 << 10).deliveries(boundary(load, bits, clusters=clusters))


@costly_law
@given(workloads(), st.integers(0, 6))
def test_one_more_bit_never_wastes_more(load: Workload, bits: int) -> None:
    assert exact_deliveries(load, bits + 1) <= exact_deliveries(load, bits)


@costly_law
@given(workloads(), st.integers(1, 8))
def test_enough_bits_leave_no_false_pair(load: Workload, clusters: int) -> None:
    """Each bit saves what it can, so bits end only when every seen event is parted from all it does not match."""
    wide = boundary(load, 23, clusters=clusters)
    if wide.bits < 23:
        assert Judge.of(load, 1 << 12).rate(wide) == 0.0


@law
@given(raws())
def test_the_best_cut_saves_most_and_then_straddles_fewest(raw: Raw) -> None:
    load = raw.ranked()
    region = whole(load)
    pairs, _ = false_pairs(load, region, 1_000, 1)
    found = best_cut(load, region, pairs)
    some = all_false(raw, region)
    scores = {
        (a, k): (
            sum(parts(raw, e, b, a, cut) for e, b in some),
            -sum(box[a][0] < cut < box[a][1] for box in raw.boxes),
        )
        for a in range(len(region.low))
        for k, cut in enumerate(candidates(raw, a))
    }
    useful = {place: score for place, score in scores.items() if score[0] > 0}
    if useful:
        assert useful[found] == max(useful.values())
        assert found == min(place for place, score in useful.items() if score == max(useful.values()))
    else:
        assert found == (-1, -1)


PLANE = Schema((Number("x", 0, 99, integer=True), Number("y", 0, 99, integer=True)))
Side = tuple[float, float]
ANY: Side = (-inf, inf)


def plane(points: list[list[float]], *asked: list[tuple[Side, Side]]) -> Workload:
    """Subscriptions to boxes of two attributes."""
    offsets = np.cumsum([0, *map(len, asked)])
    boxes = np.array([box for some in asked for box in some], np.float64).reshape(-1, 2, 2)
    return Workload(PLANE, np.array(points, np.float64).reshape(-1, 2), offsets, boxes, np.arange(len(asked)))


def scattered(count: int, seed: int) -> list[list[float]]:
    points: list[list[float]] = np.random.default_rng(seed).integers(0, 100, (count, 2)).tolist()
    return points


def test_a_subscription_beside_all_events_is_sent_none() -> None:
    for side in ([7.0, 8.0], [0.0, 3.0]):
        load = line([4.0, 5.0, 6.0], [side])
        assert Judge.of(load, 8).rate(boundary(load, 4)) == 0.0
        assert Judge.of(load, 8).rate(regular(LINE, 0)) == 1.0


def test_bits_are_not_spent_between_boxes_of_one_subscription() -> None:
    avoiding: list[list[tuple[Side, Side]]] = [[(ANY, (0, k)), (ANY, (k + 1, 100))] for k in range(10, 90, 4)]
    narrow: list[list[tuple[Side, Side]]] = [[((k, k + 5), ANY)] for k in range(0, 95, 5)]
    index = boundary(plane(scattered(200, 1), *avoiding, *narrow), 4, clusters=1)
    assert index.clusters[0].order == (0, 0, 0, 0)


def test_without_events_subscriptions_are_still_told_apart() -> None:
    index = boundary(plane([], [((10, 20), ANY)], [((30, 40), ANY)]), 8)
    assert len({index.codes((x, 50.0)) for x in (5.0, 15.0, 35.0)}) == 3


def test_a_region_with_subscriptions_of_its_own_kind_has_cuts_of_its_own() -> None:
    left: list[list[tuple[Side, Side]]] = [[((0, 50), (k, k + 5))] for k in range(0, 100, 5)]
    right: list[list[tuple[Side, Side]]] = [[((k, k + 5), (0, 100))] for k in range(50, 100, 5)]
    load = plane(scattered(400, 2), *left, *right)
    judge = Judge.of(load, 128)
    assert judge.rate(boundary(load, 6, clusters=8)) < 0.5 * judge.rate(boundary(load, 6, clusters=1))


def false_in(load: Workload, tile: Box) -> int:
    """Pairs of an event in the tile and a box that has a part of it whose interest does not want the event."""
    inside = [e for e, point in enumerate(load.points.tolist()) if tile.contains(point)]
    wanted = wanted_pairs(load)
    return sum(
        (e, i) not in wanted
        for i in range(load.interests)
        for box in interest(load, i)
        if all(
            max(a, c) < min(b, d)
            for a, b, c, d in zip(box.lows, box.highs, tile.lows, tile.highs, strict=True)
        )
        for e in inside
    )


@costly_law
@given(workloads(), st.integers(1, 6))
def test_the_tile_with_most_false_pairs_is_cut_next(load: Workload, clusters: int) -> None:
    tiles = {cluster.box for cluster in boundary(load, 23, clusters=clusters).clusters}
    further = {cluster.box for cluster in boundary(load, 23, clusters=clusters + 1).clusters}
    most = max(false_in(load, tile) for tile in tiles)
    parted = tiles - further
    assert [false_in(load, tile) for tile in parted] == ([most] if most else [])
    assert len(further) == len(tiles) + len(parted)


def test_of_two_cuts_that_save_alike_the_one_that_straddles_fewer_boxes_is_made() -> None:
    """A cut at 10 and one at 20 save two pairs each; across 10 lie two boxes, across 20 lies one."""
    low, high, below = [(10.0, 60.0)], [(20.0, 60.0)], [(-inf, 20.0)]
    both = [[(-5.0, 12.0)], [(50.0, 51.0)]]  # one interest, which wants both events
    raw = Raw([[0.0], [50.0]], [low, high, below, *both], [0, 1, 2, 3, 5], frozenset({0}))
    load = raw.ranked()
    pairs, _ = false_pairs(load, whole(load), 100, 1)
    _, k = best_cut(load, whole(load), pairs)
    assert load.candidates(0)[k] == 20.0


@pytest.mark.parametrize("bits", [-1, 113])
def test_bits_out_of_bounds_are_refused(bits: int) -> None:
    with pytest.raises(ContentIndexError, match=f"not {bits}"):
        boundary(line([1.0], [[0, 1]]), bits)


def test_the_oracle_sees_cuts_that_are_no_ends() -> None:
    load = line([0.0, 2.0, 3.0], [[2, 3]])
    index = boundary(load, 2, clusters=1)
    assert strangers(index, load, frozenset({0})) == []
    assert strangers(index, load, frozenset()) != []
    (cluster,) = index.clusters
    moved = replace(cluster, cuts=(explicit_cuts(LINE.attributes[0], [1.0, 2.0, 3.0]),))
    assert strangers(replace(index, clusters=(moved,)), load, frozenset({0})) == ["1.0 on 0"]
    shrunk = replace(cluster, box=Box((1.0,), (inf,)))
    assert strangers(replace(index, clusters=(shrunk,)), load, frozenset({0})) == ["1.0 on 0"]
    assert strangers(regular(LINE, 2), load, frozenset({0})) == ["2 bits on 0"]
    assert exact_deliveries(load, 0) > exact_deliveries(load, 2)


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["redundant-2", "redundant-3", "random-selectivity"])
def test_boundary_filters_better_than_the_published_methods(preset: str) -> None:
    """On events that no candidate has seen, against each method with each selection of attributes."""
    load = synthetic(replace(PRESETS[preset], subscriptions=100, events=4_000))
    choosing, judging = load.halves()
    known, judge = summaries(choosing), Judge.of(judging, 128)
    rates = {
        (method, select): judge.rate(propose(choosing, known, Request(method=method, select=select)).index)
        for method in ("regular", "adaptive", "selective")
        for select in ("none", "greedy", "cs")
    }
    found = judge.rate(propose(choosing, known, Request(method="boundary")).index)
    assert found < min(rates.values())
