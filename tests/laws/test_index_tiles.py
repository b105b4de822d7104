"""A tree of tiles is found exactly where one exists, and leads every point to the cluster that holds it."""

from dataclasses import replace
from math import inf

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from plerion.content.box import Box
from plerion.content.schema import Number, Schema
from plerion.index.content_index import Cluster, ContentIndex
from plerion.index.cuts import equal_cuts
from plerion.index.dz import Dz
from plerion.index.propose import regular
from plerion.index.tiles import TileTree, tile_tree, tiles_of
from tests.laws.indexes import Floats, any_indexes, law, points, schemas, tilings


def holding(index: ContentIndex, point: list[float]) -> list[int]:
    return [c for c, cluster in enumerate(index.clusters) if cluster.box.contains(point)]


@st.composite
def tiled(draw: st.DrawFn) -> tuple[ContentIndex, Floats]:
    """A tiling, with points on and just below the sides of its tiles."""
    index = draw(schemas(3).flatmap(lambda schema: tilings(schema, 4)))
    sides = [
        [(*c.box.lows, *c.box.highs)[a :: len(c.cuts)] for c in index.clusters]
        for a in range(len(index.clusters[0].cuts))
    ]
    pools = [sorted({end for side in some for end in side if end < inf}) for some in sides]
    rows = [
        [draw(st.sampled_from([*pool, *np.nextafter(pool[1:], -inf)])) for pool in pools] for _ in range(5)
    ]
    return index, np.concatenate((draw(points(index.schema)), np.array(rows)))


@law
@given(tiled())
def test_every_point_is_led_to_the_only_cluster_that_holds_it(drawn: tuple[ContentIndex, Floats]) -> None:
    index, events = drawn
    tree = tile_tree(index)
    assert tree is not None
    assert [[c] for c in tiles_of(tree, events).tolist()] == [holding(index, p) for p in events.tolist()]


@law
@given(any_indexes(), st.data())
def test_an_index_with_a_tree_gives_every_point_one_code(index: ContentIndex, data: st.DataObject) -> None:
    tree = tile_tree(index)
    if tree is not None:
        assert len(tree.cut) == len(index.clusters) - 1
        assert all(len(index.codes(p)) == 1 for p in data.draw(points(index.schema)).tolist())


PLANE = Schema((Number("x", 0, 7, integer=True), Number("y", 0, 7, integer=True)))


def boxed(**boxes: tuple[tuple[float, float], tuple[float, float]]) -> ContentIndex:
    """Clusters by id, as 'z01' for 01, each with a side on x and one on y."""
    none = tuple(equal_cuts(a, 0) for a in PLANE.attributes)
    made = [
        Cluster(Dz.parse(id[1:]), Box((x[0], y[0]), (x[1], y[1])), (), none) for id, (x, y) in boxes.items()
    ]
    return ContentIndex(PLANE, tuple(made))


ALL = (-inf, inf)
LOW, HIGH = (-inf, 4.0), (4.0, inf)


def test_clusters_that_do_not_part_the_space_have_no_tree() -> None:
    assert tile_tree(boxed(z0=(LOW, ALL), z1=(HIGH, ALL))) is not None
    assert tile_tree(boxed(z0=(HIGH, ALL), z1=(LOW, ALL))) is None  # ids do not follow the cut
    assert tile_tree(boxed(z0=(LOW, ALL), z1=((5.0, inf), ALL))) is None  # a gap
    assert tile_tree(boxed(z0=((-inf, 5.0), ALL), z1=(HIGH, ALL))) is None  # they overlap
    assert tile_tree(boxed(z0=(ALL, ALL), z1=(ALL, ALL))) is None
    assert tile_tree(boxed(z0=(LOW, ALL), z1=(HIGH, LOW))) is None  # a corner is nobody's
    assert tile_tree(boxed(z0=(LOW, LOW), z1=(HIGH, HIGH))) is None
    assert tile_tree(boxed(z=(LOW, ALL))) is None
    assert tile_tree(boxed(z=(ALL, ALL))) is not None


def test_tiles_must_follow_the_ids_at_every_bit() -> None:
    quarters = {"z00": (LOW, LOW), "z01": (LOW, HIGH), "z10": (HIGH, LOW), "z11": (HIGH, HIGH)}
    assert tile_tree(boxed(**quarters)) is not None
    crossed = {**quarters, "z00": quarters["z11"], "z11": quarters["z00"]}
    assert tile_tree(boxed(**crossed)) is None
    hollow = {**quarters, "z11": (HIGH, (5.0, inf))}
    assert tile_tree(boxed(**hollow)) is None
    pinwheel = {
        "z00": ((-inf, 3.0), (-inf, 5.0)),
        "z01": ((3.0, inf), (-inf, 3.0)),
        "z10": ((5.0, inf), (3.0, inf)),
        "z110": ((-inf, 5.0), (5.0, inf)),
        "z111": ((3.0, 5.0), (3.0, 5.0)),
    }
    assert tile_tree(boxed(**pinwheel)) is None  # it tiles, but no cut parts it


def test_bits_that_all_ids_share_part_nothing() -> None:
    index = boxed(z100=(LOW, ALL), z101=(HIGH, ALL))
    tree = tile_tree(index)
    assert tree is not None
    assert tiles_of(tree, np.array([[3.9, 0.0], [4.0, 0.0], [-inf, 0.0]])).tolist() == [0, 1, 0]


def test_the_oracle_sees_a_point_that_is_led_astray() -> None:
    index = boxed(z0=(LOW, ALL), z1=(HIGH, ALL))
    tree = tile_tree(index)
    assert tree is not None
    moved = TileTree(tree.attribute, tree.cut + 1, tree.lower, tree.upper)
    at = np.array([[4.0, 0.0]])
    assert tiles_of(tree, at).tolist() == holding(index, [4.0, 0.0]) == [1]
    assert tiles_of(moved, at).tolist() == [0]
    half = replace(index, clusters=index.clusters[:1])
    assert [holding(half, [x, 0.0]) for x in (3.0, 4.0)] == [[0], []]
    assert holding(regular(PLANE, 3), [0.0, 0.0]) == [0]
