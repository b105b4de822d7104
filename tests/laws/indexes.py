"""Hypothesis strategies for schemas, points, boxes, filters and content indexes, shared by the laws.

Ranges are small and values fall on ends and cuts on purpose: that is where an index goes wrong.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from plerion.content.box import Box, bounds
from plerion.content.event import Event
from plerion.content.filter import (
    And,
    Between,
    Comparison,
    Expression,
    Filter,
    Membership,
    Not,
    Or,
    canonical,
)
from plerion.content.schema import MISSING, Attribute, Enumeration, Number, Schema
from plerion.index.content_index import Cluster, ContentIndex, everywhere
from plerion.index.cuts import Cuts, equal_cuts, explicit_cuts
from plerion.index.dz import MAX_LENGTH, WHOLE, Dz
from plerion.index.propose import regular
from plerion.index.tiles import tile_tree

Floats = npt.NDArray[np.float64]

law = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
costly_law = settings(law, max_examples=50)


@st.composite
def attributes(draw: st.DrawFn, name: str = "x") -> Attribute:
    kind = draw(st.sampled_from(["integer", "real", "log", "log integer", "enumerated", "extreme"]))
    if kind == "integer":
        low = draw(st.integers(-5, 5))
        return Number(name, low, low + draw(st.integers(0, 20)), integer=True)
    if kind == "log integer":
        low = draw(st.integers(1, 5))
        return Number(name, low, low + draw(st.integers(0, 40)), integer=True, scale="log")
    if kind == "enumerated":
        return Enumeration(name, tuple("abcdefghi"[: draw(st.integers(1, 9))]))
    if kind == "extreme":
        return replace(draw(st.sampled_from(EXTREME)), name=name)
    least, most = sorted((draw(st.floats(-10, 10)), draw(st.floats(-10, 10))))
    if kind == "real":
        return Number(name, least, most)
    return Number(name, 2.0**least, 2.0**most, scale="log")


EXTREME = [
    Number("x", -(2**53 - 1), 2**53 - 1, integer=True),
    Number("x", 1, 2**53 - 1, integer=True, scale="log"),
    Number("x", -8e307, 8e307),
    Number("x", 0.0, 1e-300),
    Number("x", 0.0, 5e-324),
    Number("x", 1e15, 1e15 + 1),
    Number("x", 5.0, math.nextafter(5.0, 9.0), scale="log"),
    Number("x", 5e-324, 1.7e308, scale="log"),
]


@st.composite
def schemas(draw: st.DrawFn, max_attributes: int = 4) -> Schema:
    return Schema(tuple(draw(attributes(f"x{i}")) for i in range(draw(st.integers(1, max_attributes)))))


def is_discrete(attribute: Attribute) -> bool:
    return isinstance(attribute, Enumeration) or attribute.integer


@st.composite
def positions(draw: st.DrawFn, attribute: Attribute, low: float = MISSING, high: float = math.inf) -> float:
    """A position that an event can have, of those in [low, high) if there is one; ends are likely."""
    first, end = max(low, attribute.start), min(high, attribute.end)
    if low == MISSING and draw(st.integers(0, 7)) == 0:
        return MISSING
    if first >= end:
        return MISSING
    if is_discrete(attribute):
        lowest, highest = math.ceil(first), math.ceil(end) - 1
        whole = st.sampled_from([lowest, highest]) | st.integers(lowest, max(lowest, highest))
        return float(draw(whole)) if lowest <= highest else MISSING
    last = math.nextafter(end, -math.inf)
    return draw(st.sampled_from([first, last]) | st.floats(first, last))


@st.composite
def intervals(draw: st.DrawFn, attribute: Attribute, fractions: bool = False) -> tuple[float, float]:
    """What a filter can ask of an attribute: anything, values, only MISSING, or a part of either.

    On attributes of whole numbers the ends are whole, unless `fractions` allows others.
    """
    start, end = attribute.start, attribute.end
    low, high = sorted((draw(positions(attribute, start)), draw(positions(attribute, start))))
    high = high + 1 if is_discrete(attribute) else math.nextafter(high, math.inf)
    if fractions and is_discrete(attribute):
        low, high = low - draw(st.sampled_from([0, 0.25])), high - draw(st.sampled_from([0, 0.5]))
    return draw(
        st.sampled_from([(low, high), (MISSING, math.inf), (start, end), (MISSING, start), (MISSING, high)])
    )


@st.composite
def boxes(draw: st.DrawFn, schema: Schema, inside: Box | None = None, fractions: bool = False) -> Box:
    """A box that is not empty; within another one it touches its sides often."""
    lows, highs = [], []
    for i, attribute in enumerate(schema.attributes):
        low, high = draw(intervals(attribute, fractions))
        if inside is not None:
            low, high = max(low, inside.lows[i]), min(high, inside.highs[i])
            low, high = (low, high) if low < high else (inside.lows[i], inside.highs[i])
        lows.append(low)
        highs.append(high)
    return Box(tuple(lows), tuple(highs))


@st.composite
def interests(draw: st.DrawFn, index: ContentIndex, min_boxes: int = 1) -> Floats:
    """Boxes (m, attributes, 2), which may overlap, that one cluster of the index encloses or that are anywhere
    in a tiling."""
    home = draw(st.sampled_from(index.clusters)).box if tile_tree(index) is None else None
    asked = draw(st.lists(boxes(index.schema, home), min_size=min_boxes, max_size=4))
    return bounds(asked, index.schema)


@st.composite
def points(draw: st.DrawFn, schema: Schema, near: Floats | None = None) -> Floats:
    """Up to a dozen events (n, attributes); with `near`, one or two of them in each of these boxes."""
    rows = []
    for box in near if near is not None else ():
        for _ in range(draw(st.integers(1, 2))):
            sides = zip(schema.attributes, box.tolist(), strict=True)
            rows.append([draw(positions(attribute, low, high)) for attribute, (low, high) in sides])
    for _ in range(draw(st.integers(0, 4))):
        rows.append([draw(positions(attribute)) for attribute in schema.attributes])
    return np.array(rows, np.float64).reshape(-1, len(schema.attributes))


@st.composite
def ids(draw: st.DrawFn, count: int) -> list[Dz]:
    """Ids of which none begins with another."""
    if count == 1:
        return [draw(st.sampled_from([WHOLE, Dz.parse("0"), Dz.parse("1"), Dz.parse("011")]))]
    found = [WHOLE]
    while len(found) < count:
        split = found.pop(draw(st.integers(0, len(found) - 1)))
        found += [split.child(0), split.child(1)]
    return draw(st.permutations(found))


@st.composite
def cuts(draw: st.DrawFn, attribute: Attribute, bits: int, box: tuple[float, float]) -> Cuts:
    """Equal parts of the axis or of the box's side, or explicit cuts, some of them on the same place."""
    low, end = max(box[0], attribute.start), min(box[1], attribute.end)
    kind = draw(st.sampled_from(["equal", "part", "explicit"]))
    if kind == "explicit" and bits <= 4:
        some = st.lists(
            positions(attribute, attribute.start), min_size=(1 << bits) - 1, max_size=(1 << bits) - 1
        )
        return explicit_cuts(attribute, sorted(draw(some)))
    return (
        equal_cuts(attribute, bits, low, end) if kind == "part" and low < end else equal_cuts(attribute, bits)
    )


@st.composite
def clusters(draw: st.DrawFn, schema: Schema, id: Dz, box: Box, max_bits: int) -> Cluster:
    """In turn over some attributes, or any order of bits."""
    every = range(len(schema.attributes))
    chosen = draw(st.lists(st.sampled_from(every), min_size=1, unique=True))
    room = min(max_bits, MAX_LENGTH - id.length, 48 * len(chosen))
    count = draw(st.integers(0, room))
    order = [chosen[i % len(chosen)] for i in range(count)]
    order = order if max_bits > 16 else draw(st.just(order) | st.permutations(order))
    parted = tuple(
        draw(cuts(attribute, order.count(i), (box.lows[i], box.highs[i])))
        for i, attribute in enumerate(schema.attributes)
    )
    return Cluster(id, box, tuple(order), parted, draw(st.none() | st.sampled_from((1e-9, 0.25, 1.0))))


@st.composite
def indexes(draw: st.DrawFn, max_bits: int = 10, max_attributes: int = 4) -> ContentIndex:
    """Regular indexes, tilings, and one to four overlapping clusters with or without one for the whole space."""
    schema = draw(schemas(max_attributes))
    epoch = draw(st.integers(0, 9))
    if draw(st.integers(0, 3)) == 0:
        some = draw(st.none() | st.lists(st.sampled_from(range(len(schema.attributes))), unique=True))
        return regular(schema, draw(st.integers(0, max_bits)), some, epoch)
    if draw(st.booleans()):
        return draw(tilings(schema, max_bits, epoch))
    count = draw(st.integers(1, 4))
    spaces = [draw(boxes(schema, fractions=True)) for _ in range(count)]
    if draw(st.booleans()):
        spaces[draw(st.integers(0, count - 1))] = everywhere(schema)
    named = zip(draw(ids(count)), spaces, strict=True)
    return ContentIndex(schema, tuple(draw(clusters(schema, i, b, max_bits)) for i, b in named), epoch)


@st.composite
def tilings(draw: st.DrawFn, schema: Schema, max_bits: int = 10, epoch: int = 0) -> ContentIndex:
    """Up to five clusters that part the space by cuts of any attribute, their ids following the cuts."""
    tiles = [(draw(st.sampled_from([WHOLE, Dz.parse("10")])), everywhere(schema))]
    for _ in range(draw(st.integers(0, 4))):
        id, box = tiles.pop(draw(st.integers(0, len(tiles) - 1)))
        at = draw(st.sampled_from(range(len(schema.attributes))))
        cut = draw(positions(schema.attributes[at], schema.attributes[at].start))
        if not box.lows[at] < cut < box.highs[at]:
            tiles.append((id, box))
            continue
        highs, lows = list(box.highs), list(box.lows)
        highs[at] = lows[at] = cut
        tiles += [(id.child(0), Box(box.lows, tuple(highs))), (id.child(1), Box(tuple(lows), box.highs))]
    made = tuple(draw(clusters(schema, id, box, max_bits)) for id, box in draw(st.permutations(tiles)))
    return ContentIndex(schema, made, epoch)


def any_indexes() -> st.SearchStrategy[ContentIndex]:
    """Mostly small ones; some with codes of up to 112 bits."""
    return indexes() | indexes(max_bits=MAX_LENGTH)


def dzs(max_length: int = MAX_LENGTH) -> st.SearchStrategy[Dz]:
    lengths = st.sampled_from([n for n in (0, 1, 2, 63, 64, 65, 111, 112) if n <= max_length])
    return (lengths | st.integers(0, max_length)).flatmap(
        lambda length: st.builds(Dz, st.integers(0, (1 << length) - 1), st.just(length))
    )


@st.composite
def filters(draw: st.DrawFn, schema: Schema) -> Filter:
    """Filters small enough that they always have boxes."""

    def leaves() -> st.SearchStrategy[Expression]:
        return st.sampled_from(range(len(schema.attributes))).flatmap(leaf)

    def leaf(at: int) -> st.SearchStrategy[Expression]:
        attribute = schema.attributes[at]
        if isinstance(attribute, Enumeration):
            texts = st.sampled_from(attribute.values)
            one = st.builds(Comparison, st.just(at), st.sampled_from(["=", "!="]), texts)
            return one | st.builds(
                Membership, st.just(at), st.lists(texts, min_size=1, max_size=3, unique=True).map(tuple)
            )
        values = positions(attribute, attribute.start)
        orders = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
        return st.builds(Comparison, st.just(at), orders, values) | st.builds(
            Between, st.just(at), values, values
        )

    def around(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        several = st.lists(inner, min_size=2, max_size=3).map(tuple)
        return st.builds(Not, inner) | st.builds(And, several) | st.builds(Or, several)

    expression = draw(st.recursive(leaves(), around, max_leaves=4))
    return Filter(canonical(expression, schema), expression, schema)


@st.composite
def events(draw: st.DrawFn, schema: Schema) -> Event:
    event: dict[str, Any] = {}
    for attribute in schema.attributes:
        position = draw(positions(attribute))
        if position != MISSING:
            text = isinstance(attribute, Enumeration)
            event[attribute.name] = attribute.values[int(position)] if text else position  # type: ignore[union-attr]  # text means it is an Enumeration
    return event
