"""The code of a point: one definition, a compiled twin, and the papers' recursive halving for regular indexes."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from plerion.content.schema import MISSING, Attribute, Number, Schema
from plerion.index.content_index import ContentIndex
from plerion.index.cuts import Cuts, equal_cuts
from plerion.index.dz import Dz
from plerion.index.encode import encode
from plerion.index.propose import regular
from tests.laws.indexes import (
    Floats,
    any_indexes,
    attributes,
    cuts,
    interests,
    law,
    points,
    positions,
)


def rows(index: ContentIndex, events: Floats) -> list[tuple[int, Dz]]:
    """(event, code) of every code of every event, by the definition."""
    return [(i, code) for i, point in enumerate(events.tolist()) for code in index.codes(point)]


def encoded(index: ContentIndex, events: Floats) -> list[tuple[int, Dz]]:
    codes = encode(index, events)
    return list(zip(codes.event.tolist(), codes.dz, strict=True))


def halved(schema: Schema, order: tuple[int, ...], point: list[float]) -> Dz:
    """The textbook definition: each bit halves the current range of its attribute, exactly."""
    low = [Fraction(a.start) for a in schema.attributes]
    high = [Fraction(a.end) for a in schema.attributes]
    code = ""
    for at in order:
        middle = (low[at] + high[at]) / 2
        upper = point[at] != MISSING and Fraction(point[at]) >= middle
        (low if upper else high)[at] = middle
        code += "01"[upper]
    return Dz.parse(code)


@law
@given(any_indexes(), st.data())
def test_codes_of_many_events_are_those_of_each(index: ContentIndex, data: st.DataObject) -> None:
    events = data.draw(points(index.schema, data.draw(interests(index))))
    assert encoded(index, events) == rows(index, events)


@law
@given(any_indexes(), st.data(), st.integers(0, 600))
def test_codes_do_not_depend_on_the_place_of_an_event_in_a_batch(
    index: ContentIndex, data: st.DataObject, before: int
) -> None:
    events = data.draw(points(index.schema, data.draw(interests(index))))
    batch = np.concatenate((np.resize(events[:1], (before, events.shape[1])), events))
    codes = encoded(index, batch)
    assert [(event - before, code) for event, code in codes if event >= before] == rows(index, events)


@law
@given(any_indexes(), st.data())
def test_an_event_has_a_code_for_each_cluster_that_it_lies_in(
    index: ContentIndex, data: st.DataObject
) -> None:
    events = data.draw(points(index.schema, data.draw(interests(index))))
    for point in events.tolist():
        inside = [
            cluster
            for cluster in index.clusters
            if all(a <= p < b for a, p, b in zip(cluster.box.lows, point, cluster.box.highs, strict=True))
        ]
        codes = index.codes(point)
        assert len(codes) == len(inside)
        assert all(
            c.id.covers(code) and c.length == code.length for c, code in zip(inside, codes, strict=True)
        )


# Ranges that floating point halves exactly: the definition by fractions and the cells then agree to the last bit.
DYADIC = Schema(
    (
        Number("n", -8, 7, integer=True),
        Number("m", 0, (1 << 40) - 1, integer=True),
        Number("k", 3, 4098, integer=True),
    )
)


@law
@given(st.integers(0, 112), st.data())
def test_a_regular_index_is_recursive_halving(bits: int, data: st.DataObject) -> None:
    index = regular(DYADIC, bits)
    for point in data.draw(points(DYADIC)).tolist():
        assert index.codes(point) == (halved(DYADIC, index.clusters[0].order, point),)


@law
@given(attributes(), st.integers(0, 20), st.data())
def test_equal_cuts_halve_the_range_up_to_rounding(
    attribute: Attribute, bits: int, data: st.DataObject
) -> None:
    parted = equal_cuts(attribute, bits)
    position = data.draw(positions(attribute, attribute.start))
    if parted.log or parted.factor > 1e300:
        return
    share = (Fraction(position) - Fraction(parted.low)) / (Fraction(parted.end) - Fraction(parted.low))
    assert abs(parted.cell(position) - share * parted.cells) <= 1 + Fraction(parted.cells, 1 << 50)


@law
@given(st.data(), attributes(), st.integers(0, 48))
def test_cells_never_decrease_as_positions_grow(data: st.DataObject, attribute: Attribute, bits: int) -> None:
    parted = data.draw(cuts(attribute, bits, (attribute.start, attribute.end)))
    several = sorted(
        data.draw(st.lists(positions(attribute) | st.floats(allow_nan=False), min_size=2, max_size=9))
    )
    cells = [parted.cell(position) for position in [MISSING, *several]]
    assert cells == sorted(cells)
    assert all(0 <= cell < parted.cells for cell in cells)
    assert cells[0] == 0


@law
@given(st.data(), attributes(), st.integers(0, 48))
def test_the_compiled_cell_is_the_defined_one_at_every_position(
    data: st.DataObject, attribute: Attribute, bits: int
) -> None:
    """Positions of no event too: bounds lie outside of the axis."""
    schema = Schema((attribute,))
    parted = data.draw(cuts(attribute, bits, (attribute.start, attribute.end)))
    cluster = regular(schema, 0).clusters[0]
    index = ContentIndex(schema, (replace(cluster, order=(0,) * bits, cuts=(parted,)),))
    anywhere = positions(attribute) | st.floats(allow_nan=False, max_value=1e308)
    events = np.array(data.draw(st.lists(anywhere, min_size=1, max_size=9))).reshape(-1, 1)
    codes = [code.bits for _, code in encoded(index, events)]
    assert codes == [parted.cell(position) for position in events[:, 0].tolist()]


@law
@given(st.integers(1, 20), st.floats(1e-300, 1e300), st.floats(1.5, 1e6))
def test_a_log_scale_gives_equal_ratios_about_equal_shares(bits: int, low: float, ratio: float) -> None:
    parted = Cuts(bits, low, low * ratio, log=True)
    uneven = 0.18 / math.log2(ratio)  # a logarithm made of straight pieces, each an octave
    for share in (0.25, 0.5, 0.75):
        cell = parted.cell(low * ratio**share)
        assert abs(cell / parted.cells - share) < uneven + 1 / parted.cells
    assert parted.cell(low) == 0
    assert parted.cell(math.nextafter(low * ratio, 0)) == parted.cells - 1


def test_codes_reach_112_bits() -> None:
    schema = Schema((Number("x", 0, 1), Number("y", 0, 1), Number("z", 0, 1)))
    index = regular(schema, 112)
    events = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [MISSING, 1.0, 0.5]])
    codes = encode(index, events).dz.texts()
    assert [len(code) for code in codes] == [112] * 3
    assert codes[0] == "0" * 112
    assert codes[2][:6] == "01" + "0" + "01" + "1"  # z = 0.5 is below the middle of [0, 1]'s half-open range
    assert encoded(index, events) == rows(index, events)


def test_the_oracle_sees_a_code_with_two_bits_in_the_wrong_order() -> None:
    index = regular(DYADIC, 6)
    swapped = replace(index.clusters[0], order=(1, 0, 2, 0, 1, 2))
    wrong = replace(index, clusters=(swapped,))
    event = [[7.0, 0.0, 3.0]]
    assert rows(wrong, np.array(event)) != rows(index, np.array(event))
    assert wrong.codes(event[0]) != (halved(DYADIC, index.clusters[0].order, event[0]),)
