"""What every southbound does with plans, whatever stands behind it: told round by round, a plan leaves its outcome.

A site is a southbound whose switches can be lost, connected again and given little room. Nothing here looks behind the
protocol. The plans are those of every strategy on small random networks.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import reduce
from random import Random
from typing import Any, Protocol

import numpy as np
import pytest

from plerion.flow.admission import AdmissionChange, admissions
from plerion.flow.diff import diff
from plerion.flow.entry import FlowEntry, no_tables, tables_of
from plerion.flow.fabric import Fabric, fabric
from plerion.index.address import AddressPlan
from plerion.index.dz import Dz
from plerion.index.dzset import DzSet
from plerion.simnet.trial import planned
from plerion.southbound.protocol import EntriesRefused, Updatable
from plerion.southbound.simulated import SimulatedSouthbound
from plerion.topology import SwitchId, Topology, ring
from plerion.update.canonical import canonical
from plerion.update.entries import Changes, Entries, Side, added, applied, changes, joined
from plerion.update.plan import Plan, same, standing, undone
from plerion.update.state import NetworkState, NotApplicable, Stamp, forwarding
from plerion.update.strategies import MOVES, STRATEGIES
from tests.conformance.real_switches import RealSwitches
from tests.laws.updates import some_entries

EPOCH_BITS = 1  # of the addresses in all scenes


class Site(Protocol):
    """Switches without entries, and what may happen to them."""

    @property
    def southbound(self) -> Updatable: ...

    async def lose(self, *switches: SwitchId) -> None:
        """They cannot be told any more, when it returns; what they hold stays."""
        ...

    async def connect(self, *switches: SwitchId) -> None:
        """They can be told again, when it returns."""
        ...

    async def give_room(self, switch: SwitchId, entries: int | None) -> None:
        """The switch takes so many entries for forwarding and no more."""
        ...


class SimulatedSite:
    def __init__(self, fabric: Fabric) -> None:
        self.southbound = SimulatedSouthbound(fabric)

    async def lose(self, *switches: SwitchId) -> None:
        for switch in switches:
            self.southbound.lose(switch)

    async def connect(self, *switches: SwitchId) -> None:
        self.southbound.connect(*switches)

    async def give_room(self, switch: SwitchId, entries: int | None) -> None:
        self.southbound.room.pop(switch, None)
        if entries is not None:
            self.southbound.room[switch] = entries


@dataclass(frozen=True)
class Kind:
    """How to make sites of one kind, and with how many plans of a strategy to try them."""

    make: Callable[[Topology], AbstractAsyncContextManager[Site]]
    plans: int


@asynccontextmanager
async def simulated(topology: Topology) -> AsyncIterator[Site]:
    yield SimulatedSite(fabric(topology))


@asynccontextmanager
async def openflow(topology: Topology) -> AsyncIterator[Site]:
    yield await REAL.site(topology)


REAL = RealSwitches(AddressPlan(epoch_bits=EPOCH_BITS))
SITES: dict[str, tuple[Kind, tuple[pytest.MarkDecorator, ...]]] = {
    "simulated": (Kind(simulated, 12), ()),
    "openflow": (Kind(openflow, 4), (pytest.mark.ovs,)),
}

every_site = pytest.mark.parametrize(
    "kind", [pytest.param(kind, id=name, marks=marks) for name, (kind, marks) in SITES.items()]
)
every_strategy = pytest.mark.parametrize("strategy", [*STRATEGIES, *MOVES])
RING = ring(3)


def run(scene: Coroutine[Any, Any, None]) -> None:
    REAL.runner.run(scene)


@pytest.fixture(autouse=True, scope="module")
def switches() -> Iterator[None]:
    yield
    REAL.close()


def some_plans(strategy: str, count: int) -> Iterator[tuple[Topology, Plan]]:
    """The first plans that the strategy makes."""
    for seed in range(20 * count):
        try:
            _, found, plan = planned(seed, strategy)
        except NotApplicable:
            continue
        yield found.topology, plan
        count -= 1
        if not count:
            return


@asynccontextmanager
async def updating(kind: Kind, topology: Topology, plan: Plan) -> AsyncIterator[Site]:
    """A site in the old state of the plan, whose update has begun."""
    async with kind.make(topology) as site:
        site.southbound.speak(plan.old.stamp)
        site.southbound.begin()
        assert await site.southbound.overwrite(plan.before(), topology.switches) == frozenset()
        yield site


async def check_holds(site: Site, wanted: Entries) -> None:
    assert same(await site.southbound.entries(), canonical(wanted))


async def check_rests(site: Site, state: NetworkState) -> None:
    """The state's own tables and admissions, and nothing else, when the update is over."""
    southbound, fabric = site.southbound, state.tables.fabric
    southbound.speak(state.stamp)
    assert await southbound.end() == frozenset()
    assert await southbound.tables() == state.tables
    assert await southbound.admissions() == admissions(fabric.topology, state.sent)
    await check_holds(site, standing(state, Side.BETWEEN))


@every_site
@every_strategy
def test_a_plan_told_round_by_round_leaves_its_outcome(kind: Kind, strategy: str) -> None:
    async def scene(topology: Topology, plan: Plan) -> None:
        async with updating(kind, topology, plan) as site:
            model = plan.before()
            for one in plan.rounds:
                model = applied(one.changes, model)
                for _ in range(2):  # telling twice does no harm
                    assert await site.southbound.tell(one.changes) == frozenset()
                    await check_holds(site, model)
            await check_holds(site, plan.outcome())
            await check_rests(site, plan.new)

    for topology, plan in some_plans(strategy, kind.plans):
        run(scene(topology, plan))


@every_site
@every_strategy
def test_rounds_that_lead_back_lead_back_to_exactly_the_old_state(kind: Kind, strategy: str) -> None:
    async def scene(topology: Topology, plan: Plan, last: int, told: bool) -> None:
        async with updating(kind, topology, plan) as site:
            for one in plan.rounds[: last + told]:
                await site.southbound.tell(one.changes)
            for one in undone(plan, last):
                await site.southbound.tell(one.changes)
            await check_rests(site, plan.old)

    for number, (topology, plan) in enumerate(some_plans(strategy, kind.plans)):
        last = Random(number).randrange(len(plan.rounds))
        run(scene(topology, plan, last, told=number % 2 == 0))


@every_site
@every_strategy
def test_a_switch_that_comes_back_in_the_middle_keeps_what_it_holds_and_can_be_brought_up_to_date(
    kind: Kind, strategy: str
) -> None:
    async def scene(topology: Topology, plan: Plan, middle: int, switch: SwitchId) -> None:
        async with updating(kind, topology, plan) as site:
            for one in plan.rounds[:middle]:
                await site.southbound.tell(one.changes)
            held = await site.southbound.entries()
            await site.lose(switch)
            missed = plan.rounds[middle].changes
            told = {topology.switches[x] for x in missed.switches().tolist()}
            assert await site.southbound.tell(missed) == {switch} & told
            await site.connect(switch)
            number = topology.switches.index(switch)
            after = await site.southbound.entries()
            assert same(after[after.switch == number], held[held.switch == number])
            model = reduce(
                lambda entries, one: applied(one.changes, entries), plan.rounds[: middle + 1], plan.before()
            )
            assert await site.southbound.overwrite(model, [switch]) == frozenset()
            await check_holds(site, model)

    for number, (topology, plan) in enumerate(some_plans(strategy, kind.plans)):
        chance = Random(number)
        run(scene(topology, plan, chance.randrange(len(plan.rounds)), chance.choice(topology.switches)))


@every_site
def test_overwriting_leaves_exactly_what_was_asked_and_other_switches_alone(kind: Kind) -> None:
    async def scene(chance: Random) -> None:
        async with kind.make(RING) as site:
            site.southbound.begin()
            for _ in range(3):
                wanted = some_entries(chance, fabric(RING), EPOCH_BITS)
                before = await site.southbound.entries()
                chosen = chance.sample(RING.switches, chance.randint(0, 3))
                for _ in range(2):
                    await site.southbound.overwrite(wanted, chosen)
                    here = np.array([RING.switches.index(switch) for switch in chosen], np.int64)
                    kept = before[~np.isin(before.switch, here)]
                    await check_holds(site, joined([kept, wanted[np.isin(wanted.switch, here)]]))

    for seed in range(5 * kind.plans):
        run(scene(Random(seed)))


@every_site
def test_any_changes_lead_from_any_entries_to_any_others_and_back(kind: Kind) -> None:
    async def scene(chance: Random) -> None:
        async with kind.make(RING) as site:
            site.southbound.begin()
            states = [some_entries(chance, fabric(RING), EPOCH_BITS) for _ in range(2)]
            await site.southbound.overwrite(states[0], RING.switches)
            change = changes(*states)
            for told, wanted in ((change, states[1]), (change, states[1]), (change.inverse(), states[0])):
                await site.southbound.tell(told)
                await check_holds(site, wanted)

    for seed in range(5 * kind.plans):
        run(scene(Random(seed)))


@every_site
def test_a_full_switch_refuses_its_part_whole_and_the_others_take_theirs(kind: Kind) -> None:
    cells = [Dz(i, 6) for i in range(12)]
    whole = fabric(RING)
    before, wide = (
        tables_of(whole, {s: [FlowEntry(dz, frozenset({1})) for dz in some] for s in RING.switches})
        for some in (cells[:5], cells)
    )
    old, new = (forwarding(tables, Side.BETWEEN, Stamp(epoch=0)) for tables in (before, wide))

    async def scene() -> None:
        async with kind.make(RING) as site:
            s1 = RING.switches[0]
            site.southbound.begin()
            await site.southbound.tell(added(old))
            await site.give_room(s1, 11)
            for change in (
                site.southbound.tell(changes(old, new)),
                site.southbound.overwrite(new, RING.switches),
            ):
                with pytest.raises(EntriesRefused, match="full") as refused:
                    await change
                assert refused.value.switch == s1
                await check_holds(site, joined([old[old.switch == 0], new[new.switch != 0]]))
            # What goes makes room for what comes.
            moved = forwarding(
                tables_of(whole, {s1: [FlowEntry(dz.append(Dz(1, 1)), frozenset({2})) for dz in cells[:11]]}),
                Side.BETWEEN,
                Stamp(epoch=0),
            )
            await site.southbound.tell(changes(old[old.switch == 0], moved))
            await check_holds(site, joined([moved, new[new.switch != 0]]))
            await site.give_room(s1, None)

    run(scene())


@every_site
def test_what_has_another_stamp_stays_while_an_update_is_under_way_and_goes_at_its_end(kind: Kind) -> None:
    now, then = Stamp(epoch=1), Stamp(epoch=1, vlan=7, lifted=True)
    whole = fabric(RING)
    tables = tables_of(whole, {s: [FlowEntry(Dz(1, 2), frozenset({1, 3}))] for s in RING.switches})
    states = [NetworkState(tables, {RING.hosts[0]: DzSet.parse("01")}, stamp) for stamp in (now, then)]
    ours, theirs = (standing(state, Side.BETWEEN) for state in states)
    s1 = RING.switches[0]

    async def scene() -> None:
        async with kind.make(RING) as site:
            site.southbound.speak(now)
            site.southbound.begin()
            await site.southbound.tell(added(joined([ours, theirs])))
            await site.lose(s1)
            await site.connect(s1)
            await check_holds(site, joined([ours, theirs]))
            await site.lose(s1)
            site.southbound.speak(then)
            assert await site.southbound.tables() == tables
            assert await site.southbound.end() == {s1}
            await site.connect(s1)
            await check_holds(site, theirs)

    run(scene())


@every_site
def test_tables_and_admissions_are_read_and_written_with_the_stamp_that_is_spoken(kind: Kind) -> None:
    tables = tables_of(fabric(RING), {s: [FlowEntry(Dz(1, 2), frozenset({1, 3}))] for s in RING.switches})
    admitted = admissions(RING, {RING.hosts[0]: DzSet.parse("01")})
    nothing = no_tables(fabric(RING))
    stamps = [
        Stamp(epoch=0),
        Stamp(epoch=1),
        Stamp(epoch=1, vlan=9),
        Stamp(epoch=1, vlan=10, lifted=True),
        Stamp(vlan=4094),
    ]

    async def scene() -> None:
        async with kind.make(RING) as site:
            southbound = site.southbound
            southbound.begin()
            for stamp in stamps:
                southbound.speak(stamp)
                assert (await southbound.tables(), await southbound.admissions()) == (nothing, frozenset())
                await southbound.apply(diff(nothing, tables))
                await southbound.admit(AdmissionChange(admitted))
                assert (await southbound.tables(), await southbound.admissions()) == (tables, admitted)
            every = await southbound.entries()
            assert len(every) == len(stamps) * (len(tables) + len(admitted))
            southbound.speak(stamps[1])
            await southbound.apply(diff(tables, nothing))
            await southbound.end()
            assert (await southbound.tables(), await southbound.admissions()) == (nothing, admitted)
            assert len(await southbound.entries()) == len(admitted)

    run(scene())


class Forgetful(SimulatedSouthbound):
    """Keeps the last entry that a round removes: the fault that this suite is there to find."""

    async def tell(self, changes: Changes) -> frozenset[SwitchId]:
        return await super().tell(Changes(changes.removed[:-1], changes.added))


def test_a_southbound_that_keeps_an_entry_would_not_pass() -> None:
    topology, plan = next(some_plans("epoch", 1))

    async def scene() -> None:
        southbound = Forgetful(fabric(topology))
        await southbound.overwrite(plan.before(), topology.switches)
        for one in plan.rounds:
            await southbound.tell(one.changes)
        assert not same(await southbound.entries(), canonical(plan.outcome()))

    run(scene())
