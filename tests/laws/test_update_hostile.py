"""Promises hold on any network: one switch, parallel links, parts that are cut off, many hosts a switch or none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plerion.simnet.check import check
from plerion.simnet.scene import Change, Scene, scene
from plerion.simnet.trial import KINDS, conditions, known, options
from plerion.topology import Topology
from plerion.update.plan import same
from plerion.update.state import NotApplicable
from plerion.update.strategies import MOVES, STRATEGIES
from tests.laws.topologies import topologies

SAFE = [name for name, one in {**STRATEGIES, **MOVES}.items() if one.promise.safe]


@st.composite
def networks(draw: st.DrawFn) -> Topology:
    """Any network; now and then cables between switches are gone, and parts of it with them."""
    whole = draw(topologies(5))
    timed = [replace(link, latency=draw(st.sampled_from((None, 0.0003, 0.002)))) for link in whole.links]
    cables = [link for link in timed if not {link.a, link.b} & set(whole.hosts)]
    gone = draw(st.lists(st.sampled_from(cables), max_size=2)) if cables else []
    return Topology(whole.switches, whole.hosts, tuple(link for link in timed if link not in gone))


@st.composite
def scenes(draw: st.DrawFn, strategy: str) -> tuple[int, Scene]:
    seed = draw(st.integers(0, 1 << 32))
    kind: Change = draw(st.sampled_from(sorted(set(KINDS[strategy]))))
    return seed, scene(seed, kind, on=draw(networks()))


@pytest.mark.slow
@pytest.mark.parametrize("strategy", SAFE)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_event_is_lost_or_doubled_on_any_network(strategy: str, data: st.DataObject) -> None:
    seed, found = data.draw(scenes(strategy))
    try:
        plan = known(strategy).make(found.old, found.new, found.topology, options(seed))
    except NotApplicable:
        return
    assert same(plan.outcome(), plan.after())
    report = check(plan, found.samples, [seed], conditions(seed))
    assert report.keeps(known(strategy).promise), report.examples


@pytest.mark.slow
@pytest.mark.parametrize("strategy", SAFE)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_change_that_changes_nothing_is_as_safe(strategy: str, data: st.DataObject) -> None:
    seed, found = data.draw(scenes(strategy))
    samples = [replace(sample, new=sample.old) for sample in found.samples]
    plan = known(strategy).make(found.old, found.old, found.topology, options(seed))
    report = check(plan, samples, [seed], conditions(seed))
    assert report.keeps(known(strategy).promise), report.examples
