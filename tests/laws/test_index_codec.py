"""A content index survives its document to the last bit, and a damaged document is refused and nothing worse."""

import json
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plerion.content.box import bounds
from plerion.content.schema import MISSING, Number, Schema
from plerion.index.codec import from_json, to_json
from plerion.index.content_index import ContentIndex
from plerion.index.cover import cover
from plerion.index.cuts import ContentIndexError
from plerion.index.encode import encode
from plerion.index.propose import regular
from tests.laws.indexes import any_indexes, indexes, law

numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=3) | st.sampled_from(["x0", "", "0", "01"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)


def floats_of(index: ContentIndex) -> list[bytes]:
    """The exact bits of every number in the clusters, which `==` alone would not tell (0.0 == -0.0)."""
    found = []
    for cluster in index.clusters:
        found += [*cluster.box.lows, *cluster.box.highs]
        for cuts in cluster.cuts:
            found += [cuts.low, cuts.end, *(cuts.at or ())]
    return [struct.pack("<d", number) for number in found]


@law
@given(any_indexes())
def test_a_document_gives_an_equal_index_back_to_the_last_bit(index: ContentIndex) -> None:
    document = to_json(index)
    again = from_json(document)
    assert again == index
    assert floats_of(again) == floats_of(index)
    assert to_json(again) == document
    assert from_json(document.decode()) == index
    assert b"\n" not in document


def test_the_oracle_sees_a_number_that_is_off_by_one_bit() -> None:
    text = (
        '{"format":"plerion-index","version":1,"epoch":0,"schema":{"attributes":[{"name":"x","low":0,"high":1}]},'
        '"clusters":[{"id":"","order":["x"],"cuts":{"x":{"low":0,"end":2,"at":[%s]}}}]}'
    )
    one, other, minus = (from_json(text % at) for at in ("0.5", "0.5000000000000001", "-0.0"))
    assert one != other
    assert floats_of(minus) != floats_of(from_json(text % "0.0"))


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value in the document."""
    inner = document.items() if isinstance(document, dict) else enumerate(document)
    found = []
    for key, value in inner:
        found.append((*path, key))
        if isinstance(value, dict | list):
            found += places(value, (*path, key))
    return found


def at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


@st.composite
def damaged(draw: st.DrawFn, index: ContentIndex) -> bytes:
    """One to three values replaced, removed, doubled or added."""
    document = json.loads(to_json(index))
    for _ in range(draw(st.integers(1, 3))):
        listed = places(document)
        if not listed:
            break
        *path, key = draw(st.sampled_from(listed))
        around = at(document, tuple(path))
        match draw(st.sampled_from(["replace", "remove", "double", "add", "near"])):
            case "replace":
                around[key] = draw(values)
            case "remove":
                del around[key]
            case "double" if isinstance(around, list):
                around.append(around[key])
            case "near" if isinstance(around[key], int | float):
                around[key] = draw(st.sampled_from([0, -1, 1, 113, 5e-324, 1.7e308, -1.7e308, 2**63, 2**200]))
            case _ if isinstance(around, dict):
                around[draw(st.text(max_size=3))] = draw(values)
    return json.dumps(document).encode()


def survives(text: bytes) -> bool:
    """Whether the document is read; one that is read must encode, cover and be written without an error."""
    try:
        index = from_json(text)
    except ContentIndexError:
        return False
    width = len(index.schema.attributes)
    events = np.array([index.schema.starts, index.schema.ends, [MISSING] * width, [0.0] * width])
    codes = encode(index, events)
    for event, code in zip(codes.event.tolist(), codes.dz, strict=True):
        assert code in index.codes(events[event].tolist())
    box = index.clusters[0].box
    if all(low < high for low, high in zip(box.lows, box.highs, strict=True)):
        cover(index, bounds([box], index.schema), 8)
    assert from_json(to_json(index)) == index
    return True


@law
@given(indexes(max_attributes=3), st.data())
def test_a_damaged_document_is_refused_or_is_an_index_that_works(
    index: ContentIndex, data: st.DataObject
) -> None:
    survives(data.draw(damaged(index)))


@law
@given(indexes(max_attributes=2), st.data())
def test_damaged_bytes_are_refused_or_are_an_index_that_works(
    index: ContentIndex, data: st.DataObject
) -> None:
    text = bytearray(to_json(index))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text) - 1))
        text[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
        text = text or bytearray(b"{")
    survives(bytes(text))


def test_the_fuzz_reads_what_is_whole_and_refuses_what_is_not() -> None:
    whole = to_json(regular(Schema((Number("x", 0, 1),)), 4))
    assert survives(whole)
    assert not survives(whole[:-1])


@law
@given(st.binary(max_size=40) | st.text(max_size=40).map(lambda text: text.encode()))
def test_what_is_no_document_at_all_is_refused(text: bytes) -> None:
    with pytest.raises(ContentIndexError):
        from_json(text)
