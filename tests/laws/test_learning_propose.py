"""Whatever is asked of whatever workload: a proposal is a valid index that costs no wanted event."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plerion.content.schema import Number, Schema
from plerion.index.codec import from_json, to_json
from plerion.learning.judge import Judge
from plerion.learning.propose import METHODS, SELECTIONS, TREES, Proposal, Request, propose, summaries
from plerion.learning.workload import Workload
from tests.laws.indexes import costly_law
from tests.laws.test_learning_judge import faults, workloads

PLAIN = [method for method in METHODS if method != "best"]


@st.composite
def requests(draw: st.DrawFn) -> Request:
    return Request(
        bits=draw(st.integers(0, 10)),
        budget=draw(st.sampled_from([1, 8, 128])),
        method=draw(st.sampled_from(PLAIN)),
        select=draw(st.sampled_from(SELECTIONS)),
        dimensions=draw(st.none() | st.integers(1, 4)),
        clusters=draw(st.none() | st.integers(1, 9)),
    )


def proposed(load: Workload, request: Request) -> Proposal:
    return propose(load, summaries(load), request, epoch=4)


@settings(costly_law, max_examples=80)
@given(workloads(), requests())
def test_a_proposal_is_a_valid_index_that_respects_the_request(load: Workload, request: Request) -> None:
    found = proposed(load, request)
    width = len(load.schema.attributes)
    assert faults(found.index, load) == []
    assert found.index.bits <= request.bits
    assert found.index.epoch == 4
    assert from_json(to_json(found.index)) == found.index
    used = {a for cluster in found.index.clusters for a in cluster.order}
    assert used <= set(found.won.attributes) <= set(range(width))
    if request.dimensions is not None:
        assert len(found.won.attributes) == min(request.dimensions, width)
    if request.clusters is not None:
        assert len(found.index.clusters) <= request.clusters


@costly_law
@given(workloads(), requests())
def test_every_trial_is_listed_and_the_least_rate_wins(load: Workload, request: Request) -> None:
    found = proposed(load, request)
    sizes = (1,) if request.method == "regular" else TREES[request.method]
    sizes = sizes if request.clusters is None or request.method == "regular" else (request.clusters,)
    assert [trial.clusters for trial in found.tried] == list(sizes)
    assert {(trial.method, trial.select) for trial in found.tried} == {(request.method, request.select)}
    assert {trial.attributes for trial in found.tried} == {found.won.attributes}
    assert found.won.rate == min(trial.rate for trial in found.tried)
    assert found.won in found.tried
    assert (found.selection is None) == (request.select == "none")
    if found.selection is not None:
        assert found.selection.method == request.select
        assert found.selection.chosen == found.won.attributes


@costly_law
@given(workloads(), st.integers(0, 8))
def test_a_rate_is_measured_on_events_that_the_index_was_not_made_from(load: Workload, bits: int) -> None:
    """A regular index is made from no events, so the rate on the kept half can be found again."""
    kept = load.halves()[1] if len(load.points) > 1 else load
    found = proposed(load, Request(bits=bits, budget=16, method="regular"))
    assert found.won.rate == Judge.of(kept, 16).rate(found.index)


@costly_law
@given(workloads(), requests())
def test_the_same_request_gets_the_same_proposal(load: Workload, request: Request) -> None:
    one, other = proposed(load, request), proposed(load, request)
    assert one.index == other.index
    assert one.tried == other.tried


@pytest.mark.parametrize("select", SELECTIONS)
@pytest.mark.parametrize("method", PLAIN)
def test_every_method_goes_with_every_selection(method: str, select: str) -> None:
    load = small()
    found = proposed(load, Request(bits=8, budget=8, method=method, select=select, clusters=2))
    assert faults(found.index, load) == []
    assert 1 <= len(found.won.attributes) <= 3


def small() -> Workload:
    """Subscriptions to parts of the first of three attributes; the third is a copy, nobody asks for the second."""
    schema = Schema(tuple(Number(name, 0, 63, integer=True) for name in ("x", "noise", "copy")))
    random = np.random.default_rng(1)
    points = random.integers(0, 64, (60, 3)).astype(np.float64)
    points[:, 2] = points[:, 0]
    low = random.integers(0, 60, 12).astype(np.float64)
    boxes = np.empty((12, 3, 2))
    boxes[:] = (-np.inf, np.inf)
    boxes[:, 0] = boxes[:, 2] = np.stack((low, low + 4), axis=-1)
    return Workload.of_boxes(schema, points, boxes)
