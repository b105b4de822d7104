"""What `misses` counts is what a loop over all pairs and attributes counts, and no false positive hides from it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from plerion.content.box import Box, bounds
from plerion.content.schema import MISSING, Number, Schema
from plerion.index.content_index import ContentIndex
from plerion.index.cover import covers
from plerion.index.encode import encode
from plerion.index.propose import regular
from plerion.matching.blame import misses
from tests.laws.indexes import Floats, any_indexes, costly_law, interests, points


def counted(index: ContentIndex, events: Floats, asked: list[Floats], budget: int) -> list[int]:
    """Every event, every interest whose cover has it, every attribute: is the event outside all boxes there?"""
    found = [0] * len(index.schema.names)
    for boxes in asked:
        cover = covers(index, np.array([0, len(boxes)]), boxes, budget).sets()[0]
        for event in events.tolist():
            if not any(cover.covers(code) for code in index.codes(event)):
                continue
            for a, position in enumerate(event):
                found[a] += not any(low <= position < high for low, high in boxes[:, a].tolist())
    return found


def missed(index: ContentIndex, events: Floats, asked: list[Floats], budget: int) -> list[int]:
    offsets = np.cumsum([0, *map(len, asked)]).astype(np.int64)
    stacked = np.concatenate([np.empty((0, len(index.schema.names), 2)), *asked])
    found = covers(index, offsets, stacked, budget)
    return [int(count) for count in misses(events, encode(index, events), found, offsets, stacked)]


@costly_law
@given(any_indexes(), st.data(), st.integers(1, 16))
def test_misses_are_those_of_a_loop_over_all_pairs(
    index: ContentIndex, data: st.DataObject, budget: int
) -> None:
    asked = data.draw(st.lists(interests(index), max_size=5))
    events = data.draw(
        points(index.schema, np.concatenate([np.empty((0, len(index.schema.names), 2)), *asked]))
    )
    assert missed(index, events, asked, budget) == counted(index, events, asked, budget)


PLANE = Schema((Number("x", 0, 7, integer=True), Number("y", 0, 7, integer=True)))


def test_a_small_workload_counted_by_hand() -> None:
    index = regular(PLANE, 2)  # quarters
    asked = [bounds([Box((0.0, 0.0), (2.0, 4.0))], PLANE)]
    events = np.array([[1, 1], [3, 1], [3, 3], [5, 1], [MISSING, 1]])
    assert missed(index, events, asked, 8) == [
        3,
        0,
    ]  # two lie beyond x = 2, one has no x; [5, 1] is not delivered


def test_the_loop_sees_another_cover() -> None:
    asked = [bounds([Box((0.0, 0.0), (2.0, 4.0))], PLANE)]
    events = np.array([[1.0, 1.0], [3.0, 1.0], [5.0, 1.0]])
    assert missed(regular(PLANE, 2), events, asked, 8) != counted(regular(PLANE, 4), events, asked, 8)
