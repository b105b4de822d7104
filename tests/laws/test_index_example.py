"""From a code back to an event."""

from hypothesis import given, settings
from hypothesis import strategies as st

from plerion.content.event import point
from plerion.content.schema import MISSING
from plerion.index.content_index import everywhere
from plerion.index.dz import MAX_LENGTH, Dz
from plerion.index.example import example
from tests.laws.indexes import any_indexes, points


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_an_event_for_a_code_has_that_code(data: st.DataObject) -> None:
    index = data.draw(any_indexes())
    for event in data.draw(points(index.schema)).tolist():
        for code in index.codes(event):
            found = example(index, code)
            assert found is None or code in index.codes(point(index.schema, found))
            longer = Dz(code.bits << (MAX_LENGTH - code.length), MAX_LENGTH)
            assert example(index, longer) == found


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_a_code_of_an_index_without_clusters_of_its_own_can_be_published(data: st.DataObject) -> None:
    """Cells of whole numbers may be empty, but not those that an event with all its values lies in."""
    index = data.draw(
        any_indexes().filter(lambda found: [c.box for c in found.clusters] == [everywhere(found.schema)])
    )
    for event in data.draw(points(index.schema)).tolist():
        if MISSING not in event:
            assert example(index, index.codes(event)[0]) is not None
