"""What `evaluate` counts is what a loop over all pairs of events and interests counts."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plerion.content.box import Box, bounds, boxes
from plerion.content.event import point
from plerion.content.filter import Filter
from plerion.content.schema import Number, Schema
from plerion.index.content_index import ContentIndex
from plerion.index.cover import Covers, cover, covers
from plerion.index.cuts import ContentIndexError
from plerion.index.dz import Dz
from plerion.index.dzset import DzColumns, DzSet
from plerion.index.encode import encode
from plerion.index.propose import regular
from plerion.matching.bitset import BitsetMatcher
from plerion.matching.evaluate import Evaluation, evaluate, runs
from tests.laws.indexes import Floats, any_indexes, costly_law, dzs, events, filters, law
from tests.laws.indexes import boxes as some_boxes

Ints = npt.NDArray[np.int64]
Interests = Sequence[tuple[Box, ...]]


@dataclass
class Tally:
    """The same counts, found pair by pair."""

    deliveries: list[int]
    wanted: list[int]
    hits: list[int]
    delivered_to: set[tuple[int, int]] = field(default_factory=set)  # (event, host)
    wanted_by: set[tuple[int, int]] = field(default_factory=set)

    def differs(self, found: Evaluation) -> list[str]:
        """What the evaluation counted otherwise."""
        deliveries, wanted, hits = sum(self.deliveries), sum(self.wanted), sum(self.hits)
        useless = len(self.delivered_to - self.wanted_by)
        hosts = range(len(found.host_hits))
        to_host = [[event for event, at in self.delivered_to if at == host] for host in hosts]
        host_hits = [sum(at == host for _, at in self.delivered_to & self.wanted_by) for host in hosts]
        compared = {
            "deliveries": (found.deliveries.tolist(), self.deliveries),
            "wanted": (found.wanted.tolist(), self.wanted),
            "hits": (found.hits.tolist(), self.hits),
            "host_hits": (found.host_hits.tolist(), host_hits),
            "host_deliveries": (found.host_deliveries.tolist(), [len(events) for events in to_host]),
            "false_positives": (found.false_positives, deliveries - hits),
            "false_negatives": (found.false_negatives, wanted - hits),
            "rate": (found.false_positive_rate, (deliveries - hits) / deliveries if deliveries else 0),
            "host_rate": (
                found.host_false_positive_rate,
                useless / len(self.delivered_to) if self.delivered_to else 0,
            ),
        }
        return [name for name, (one, other) in compared.items() if one != other]


def tally(
    index: ContentIndex, events: Floats, asked: Interests, covers: list[DzSet], hosts: list[int]
) -> Tally:
    count = Tally([0] * len(asked), [0] * len(asked), [0] * len(asked))
    for e, event in enumerate(events.tolist()):
        codes = index.codes(event)
        for i, host in enumerate(hosts):
            delivered = any(covers[i].covers(code) for code in codes)
            wanted = any(box.contains(event) for box in asked[i])
            count.deliveries[i] += delivered
            count.wanted[i] += wanted
            count.hits[i] += delivered and wanted
            if delivered:
                count.delivered_to.add((e, host))
            if wanted:
                count.wanted_by.add((e, host))
    return count


def evaluated(
    index: ContentIndex, events: Floats, asked: Interests, found: Covers, hosts: list[int]
) -> Evaluation:
    parts = [bounds(part, index.schema) for part in asked]
    offsets = np.cumsum([0, *map(len, parts)])
    matcher = BitsetMatcher.of(offsets, np.concatenate([np.empty((0, len(index.schema.names), 2)), *parts]))
    return evaluate(events, encode(index, events), matcher, found, np.array(hosts, np.int64))


def covers_of(sets: list[DzSet]) -> Covers:
    offsets = np.cumsum([0, *map(len, sets)]).astype(np.int64)
    return Covers(offsets, DzColumns.of([dz for cells in sets for dz in cells]))


@st.composite
def interests(draw: st.DrawFn, index: ContentIndex) -> tuple[Box, ...]:
    """Disjoint boxes that a cluster encloses: those of a filter, or a box within the cluster."""
    filter: Filter = draw(filters(index.schema))
    found = boxes(filter)
    try:
        index.home(bounds(found, index.schema))
    except ContentIndexError:
        return (draw(some_boxes(index.schema, draw(st.sampled_from(index.clusters)).box)),)
    return found


@st.composite
def workloads(draw: st.DrawFn, index: ContentIndex) -> tuple[Floats, Interests, list[int]]:
    """Events, interests and the host of each."""
    asked = draw(st.lists(interests(index), max_size=6))
    sent = draw(st.lists(events(index.schema), max_size=12))
    hosts = [draw(st.integers(0, 3)) for _ in asked]
    width = len(index.schema.names)
    return np.array([point(index.schema, e) for e in sent]).reshape(-1, width), asked, hosts


@costly_law
@given(any_indexes(), st.data(), st.integers(1, 16))
def test_an_evaluation_counts_what_a_double_loop_counts(
    index: ContentIndex, data: st.DataObject, budget: int
) -> None:
    events, asked, hosts = data.draw(workloads(index))
    sets = [cover(index, bounds(part, index.schema), budget) for part in asked]
    found = evaluated(index, events, asked, covers_of(sets), hosts)
    assert tally(index, events, asked, sets, hosts).differs(found) == []
    assert found.false_negatives == 0
    assert found.dz == sum(map(len, sets))


@costly_law
@given(any_indexes(), st.data())
def test_false_negatives_of_covers_that_lack_cells_are_counted(
    index: ContentIndex, data: st.DataObject
) -> None:
    events, asked, hosts = data.draw(workloads(index))
    sets = [cover(index, bounds(part, index.schema), 8) for part in asked]
    torn = [
        DzSet(tuple(data.draw(st.lists(st.sampled_from(c.cells), unique=True)))) if c else c for c in sets
    ]
    torn = [DzSet.of(cells) for cells in torn]
    found = evaluated(index, events, asked, covers_of(torn), hosts)
    assert tally(index, events, asked, torn, hosts).differs(found) == []


@costly_law
@given(st.integers(0, 2**32), st.integers(1, 20))
def test_large_workloads_are_counted_alike(seed: int, budget: int) -> None:
    random = np.random.default_rng(seed)
    schema = Schema((Number("x", 0, 31, integer=True), Number("y", 0, 31, integer=True)))
    index = regular(schema, 7)
    events = random.integers(0, 32, (80, 2)).astype(np.float64)
    low = random.integers(0, 28, (90, 2))
    high = low + random.integers(1, 5, (90, 2))
    asked = [(Box(tuple(map(float, a)), tuple(map(float, b))),) for a, b in zip(low, high, strict=True)]
    hosts = random.integers(0, 9, 90).tolist()
    found = covers(index, np.arange(91), np.stack((low, high), axis=-1).astype(np.float64), budget)
    assert (
        tally(index, events, asked, found.sets(), hosts).differs(
            evaluated(index, events, asked, found, hosts)
        )
        == []
    )


@law
@given(st.lists(dzs(), max_size=8), st.lists(st.integers(0, (1 << 112) - 1), max_size=12), st.data())
def test_a_run_has_exactly_the_codes_in_the_cell(
    cells: list[Dz], codes: list[int], data: st.DataObject
) -> None:
    inside = [data.draw(st.integers(dz.start, dz.end - 1)) for dz in cells]
    edges = [edge for dz in cells for edge in (dz.start, dz.end - 1)]
    listed = [Dz(code, 112) for code in sorted([*codes, *inside, *edges])]
    first, last = runs(DzColumns.of(listed), DzColumns.of(cells))
    for dz, begin, end in zip(cells, first, last, strict=True):
        assert listed[begin:end] == [code for code in listed if dz.covers(code)]


LINE = Schema((Number("x", 0, 7, integer=True),))
EVENTS = np.arange(8.0).reshape(-1, 1)
ASKED = [(Box((0.0,), (3.0,)),), (Box((2.0,), (4.0,)),), (Box((6.0,), (7.0,)),)]
HOSTS = [0, 0, 1]


def small() -> Evaluation:
    index = regular(LINE, 2)
    sets = [cover(index, bounds(part, LINE)) for part in ASKED]
    return evaluated(index, EVENTS, ASKED, covers_of(sets), HOSTS)


def test_a_small_workload_counted_by_hand() -> None:
    found = small()
    assert found.deliveries.tolist() == [4, 2, 2]
    assert found.wanted.tolist() == found.hits.tolist() == [3, 2, 1]
    assert found.host_deliveries.tolist() == [4, 2]
    assert found.host_hits.tolist() == [4, 1]
    assert found.to_json() == {
        "deliveries": 8,
        "wanted": 6,
        "false_positives": 2,
        "false_positive_rate": 0.25,
        "false_negatives": 0,
        "dz": 3,
        "host_false_positive_rate": pytest.approx(1 / 6),
    }


def test_nothing_delivered_is_no_false_positive() -> None:
    found = evaluated(regular(LINE, 2), EVENTS, [], covers_of([]), [])
    assert (found.false_positive_rate, found.host_false_positive_rate) == (0.0, 0.0)


def test_the_oracle_sees_every_count_that_is_wrong() -> None:
    index = regular(LINE, 2)
    sets = [cover(index, bounds(part, LINE)) for part in ASKED]
    right = tally(index, EVENTS, ASKED, sets, HOSTS)
    found = small()
    assert right.differs(found) == []
    one_more = np.array([1, 0, 0])
    assert "deliveries" in right.differs(replace(found, deliveries=found.deliveries + one_more))
    assert "wanted" in right.differs(replace(found, wanted=found.wanted + one_more))
    assert "hits" in right.differs(replace(found, hits=found.hits - one_more))
    assert "host_rate" in right.differs(replace(found, host_hits=found.host_hits - one_more[:2]))
    assert "host_deliveries" in right.differs(replace(found, host_deliveries=found.host_deliveries + 1))
