"""Laws of differences: `apply(diff(a, b), a) == b`, with the fewest changes, and several come to one."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plerion.flow.diff import Diff, Kind, apply, coalesced, diff, no_change
from plerion.flow.entry import FlowEntry, Tables, no_tables
from plerion.flow.fabric import fabric
from plerion.index.dz import WHOLE
from plerion.topology import SwitchId, ring, star
from tests.laws.networks import BASES, cells, unwritten, written

RING = fabric(ring(3))
EXAMPLES = settings(max_examples=100, deadline=None)

tables = st.dictionaries(
    st.sampled_from(RING.topology.switches),
    st.dictionaries(
        st.sampled_from(BASES[:2]).flatmap(cells),
        st.frozensets(st.sampled_from((1, 2, 3)), min_size=1),
        max_size=5,
    ),
).map(lambda entries: unwritten(RING, entries))


def plain(old: Tables, new: Tables) -> set[tuple[SwitchId, Kind, FlowEntry]]:
    """The changes between two tables by comparing dictionaries."""
    found = set()
    before, after = written(old), written(new)
    for switch in RING.topology.switches:
        for dz in before[switch].keys() | after[switch].keys():
            had, has = before[switch].get(dz), after[switch].get(dz)
            if had != has:
                kind = Kind.ADD if had is None else Kind.DELETE if has is None else Kind.MODIFY
                found.add((switch, kind, FlowEntry(dz, has or frozenset())))
    return found


@EXAMPLES
@given(tables, tables)
def test_a_diff_is_what_two_dictionaries_differ_in(old: Tables, new: Tables) -> None:
    changes = [(change.switch, change.kind, change.entry) for change in diff(old, new)]
    assert len(changes) == len(set(changes))
    assert set(changes) == plain(old, new)


@EXAMPLES
@given(tables, tables)
def test_applying_a_diff_leads_to_the_new_tables(old: Tables, new: Tables) -> None:
    change = diff(old, new)
    assert apply(change, old) == new
    assert apply(change, apply(change, old)) == new
    assert len(diff(new, new)) == 0
    assert apply(no_change(RING), new) == new
    assert (old == new) == (len(change) == 0)


@EXAMPLES
@given(st.lists(tables, min_size=2, max_size=6))
def test_coalesced_diffs_do_what_they_did_one_after_the_other(states: list[Tables]) -> None:
    steps = [diff(a, b) for a, b in pairwise(states)]
    whole = coalesced(steps)
    assert apply(whole, states[0]) == states[-1]
    assert len(keys(whole)) == len(whole)
    assert keys(whole) >= keys(diff(states[0], states[-1]))


def keys(change: Diff) -> set[tuple[str, object]]:
    return {(one.switch, one.entry.dz) for one in change}


@EXAMPLES
@given(st.lists(tables, min_size=1, max_size=4))
def test_kinds_of_a_coalesced_diff_are_true_of_the_tables_it_starts_from(states: list[Tables]) -> None:
    """An added entry was not there, a modified or deleted one was: a strict switch would take it."""
    through = [no_tables(RING), *states, no_tables(RING), *states]
    steps = [diff(a, b) for a, b in pairwise(through)]
    there = written(through[0])
    for change in coalesced(steps):
        assert (change.kind == Kind.ADD) == (change.entry.dz not in there[change.switch])
    assert reduce(lambda at, step: apply(step, at), steps, through[0]) == through[-1]


@pytest.mark.parametrize("leaves", [62, 63, 64, 70])
def test_one_port_of_a_switch_with_many_is_a_difference(leaves: int) -> None:
    hub = fabric(star(leaves))
    switch = hub.topology.switches[0]
    every = frozenset(hub.topology.ports(switch))
    whole = unwritten(hub, {switch: {WHOLE: every}})
    for port in every:
        less = unwritten(hub, {switch: {WHOLE: every - {port}}})
        (change,) = diff(whole, less)
        assert (change.kind, change.entry.ports) == (Kind.MODIFY, every - {port})
        assert apply(diff(less, whole), less) == whole


@EXAMPLES
@given(tables, tables)
def test_dropping_one_change_would_be_noticed(old: Tables, new: Tables) -> None:
    change = diff(old, new)
    for row in range(len(change)):
        kept = [i for i in range(len(change)) if i != row]
        less = Diff(
            RING,
            change.switch[kept],
            change.dz[np.array(kept, np.int64)],
            change.kind[kept],
            change.ports[kept],
        )
        assert apply(less, old) != new
