"""What every southbound does, whatever stands behind it. Add yours to `SOUTHBOUNDS` and it has to pass all of this.

A southbound starts with empty tables on the given fabric. Nothing here looks behind the protocol. All scenes run on
one event loop, so that a southbound with switches behind it may keep them from one example to the next.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plerion.flow.admission import Admission, AdmissionChange
from plerion.flow.diff import Diff, Kind, apply, diff, no_change
from plerion.flow.entry import Tables, no_tables
from plerion.flow.fabric import Fabric, fabric
from plerion.index.dz import MAX_LENGTH, WHOLE, Dz
from plerion.southbound.protocol import Southbound
from plerion.southbound.simulated import SimulatedSouthbound
from plerion.topology import SwitchId, ring, star
from tests.conformance.real_switches import RealSwitches
from tests.laws.networks import BASES, cells, unwritten

Make = Callable[[Fabric], AbstractAsyncContextManager[Southbound]]


@asynccontextmanager
async def simulated(fabric: Fabric) -> AsyncIterator[Southbound]:
    yield SimulatedSouthbound(fabric)


@asynccontextmanager
async def openflow(fabric: Fabric) -> AsyncIterator[Southbound]:
    yield await REAL.southbound(fabric)


SOUTHBOUNDS: dict[str, tuple[Make, tuple[pytest.MarkDecorator, ...]]] = {
    "simulated": (simulated, ()),
    "openflow": (openflow, (pytest.mark.ovs,)),
}
RING = fabric(ring(3))
S1, S2, S3 = RING.topology.switches
REAL = RealSwitches()

every_southbound = pytest.mark.parametrize(
    "make", [pytest.param(make, id=name, marks=marks) for name, (make, marks) in SOUTHBOUNDS.items()]
)
EXAMPLES = settings(max_examples=60, deadline=None)


@pytest.fixture(autouse=True, scope="module")
def switches() -> Iterator[None]:
    yield
    REAL.close()


tables = st.dictionaries(
    st.sampled_from(RING.topology.switches),
    st.dictionaries(
        st.sampled_from(BASES).flatmap(cells),
        st.frozensets(st.sampled_from((1, 2, 3)), min_size=1),
        max_size=6,
    ),
).map(lambda entries: unwritten(RING, entries))


def run(scene: Coroutine[Any, Any, None]) -> None:
    REAL.runner.run(scene)


@every_southbound
def test_switches_start_with_empty_tables(make: Make) -> None:
    async def scene() -> None:
        async with make(RING) as southbound:
            assert await southbound.tables() == no_tables(RING)

    run(scene())


@every_southbound
@EXAMPLES
@given(states=st.lists(tables, min_size=1, max_size=4))
def test_what_was_applied_is_read_back(make: Make, states: list[Tables]) -> None:
    async def scene() -> None:
        held = no_tables(RING)
        async with make(RING) as southbound:
            for state in states:
                await southbound.apply(diff(held, state))
                held = await southbound.tables()
                assert held == state

    run(scene())


@every_southbound
@EXAMPLES
@given(old=tables, new=tables)
def test_applying_a_change_twice_or_no_change_does_no_harm(make: Make, old: Tables, new: Tables) -> None:
    async def scene() -> None:
        async with make(RING) as southbound:
            for change in (diff(no_tables(RING), old), diff(old, new), diff(old, new), no_change(RING)):
                await southbound.apply(change)
            assert await southbound.tables() == new

    run(scene())


@every_southbound
@EXAMPLES
@given(old=tables, new=tables, seed=st.randoms(use_true_random=False))
def test_the_order_of_changes_inside_a_diff_does_not_matter(
    make: Make, old: Tables, new: Tables, seed: Any
) -> None:
    async def scene() -> None:
        async with make(RING) as southbound:
            await southbound.apply(diff(no_tables(RING), old))
            await southbound.apply(shuffled(diff(old, new), seed))
            assert await southbound.tables() == new

    run(scene())


def shuffled(change: Diff, seed: Any) -> Diff:
    rows = np.array(seed.sample(range(len(change)), len(change)), np.int64)
    return Diff(change.fabric, change.switch[rows], change.dz[rows], change.kind[rows], change.ports[rows])


@every_southbound
def test_every_length_of_a_dz_is_kept_to_the_last_bit(make: Make) -> None:
    """Bits that no other entry has, beside entries without any: what a detour through floats would round."""
    odd = [Dz((1 << length) - 1, length) for length in range(MAX_LENGTH + 1)]
    lone = [Dz(1, length) for length in range(2, MAX_LENGTH + 1)]
    everything = unwritten(RING, {S2: dict.fromkeys([*odd, *lone], frozenset({1}))})

    async def scene() -> None:
        async with make(RING) as southbound:
            await southbound.apply(diff(no_tables(RING), everything))
            assert await southbound.tables() == everything

    run(scene())


@every_southbound
def test_a_change_of_one_switch_leaves_the_others_alone(make: Make) -> None:
    start = unwritten(RING, {s: {WHOLE: frozenset({1, 2})} for s in (S1, S2, S3)})
    goal = unwritten(RING, {S1: {WHOLE: frozenset({1, 2})}, S2: {WHOLE: frozenset({3})}})

    async def scene() -> None:
        async with make(RING) as southbound:
            await southbound.apply(diff(no_tables(RING), start))
            change = diff(start, goal)
            assert {one.kind for one in change} == {Kind.MODIFY, Kind.DELETE}
            await southbound.apply(change)
            assert await southbound.tables() == goal

    run(scene())


@every_southbound
def test_a_switch_with_more_ports_than_a_word_has_bits_keeps_them_all(
    make: Make,
) -> None:
    hub = fabric(star(70))
    ports = hub.topology.ports(SwitchId("s1"))
    sent = unwritten(
        hub,
        {
            SwitchId("s1"): {Dz(i, 7): frozenset(ports[i:]) for i in range(len(ports))},
            SwitchId("s2"): {WHOLE: frozenset(hub.topology.ports(SwitchId("s2")))},
        },
    )

    async def scene() -> None:
        async with make(hub) as southbound:
            await southbound.apply(diff(no_tables(hub), sent))
            assert await southbound.tables() == sent

    run(scene())


@every_southbound
@EXAMPLES
@given(
    old=st.frozensets(st.builds(Admission, st.just(S1), st.just(3), cells()), max_size=5),
    new=st.frozensets(st.builds(Admission, st.sampled_from((S1, S2)), st.just(3), cells()), max_size=5),
)
def test_what_was_admitted_is_read_back(
    make: Make, old: frozenset[Admission], new: frozenset[Admission]
) -> None:
    async def scene() -> None:
        async with make(RING) as southbound:
            await southbound.admit(AdmissionChange(added=old))
            assert await southbound.admissions() == old
            for _ in range(2):
                assert await southbound.admit(AdmissionChange(new - old, old - new)) == frozenset()
                assert await southbound.admissions() == new
            assert await southbound.tables() == no_tables(RING)

    run(scene())


class Forgetful(SimulatedSouthbound):
    """Loses the last change of every diff: the fault that this suite is there to find."""

    async def apply(self, change: Diff) -> frozenset[SwitchId]:
        kept = np.arange(len(change) - 1)
        return await super().apply(
            Diff(change.fabric, change.switch[kept], change.dz[kept], change.kind[kept], change.ports[kept])
        )


def test_a_southbound_that_loses_a_change_would_not_pass() -> None:
    goal = unwritten(RING, {S1: {WHOLE: frozenset({1})}})
    assert apply(diff(no_tables(RING), goal), no_tables(RING)) == goal

    async def scene() -> None:
        southbound = Forgetful(RING)
        await southbound.apply(diff(no_tables(RING), goal))
        assert await southbound.tables() != goal

    run(scene())
