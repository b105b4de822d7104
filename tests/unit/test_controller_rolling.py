"""A change of index on a controller ends in exactly one of the two states, whatever happens on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from plerion.content.schema import Number, Schema
from plerion.controller.inputs import Advertise, Input, LinkDown, Subscribe, SwitchDown
from plerion.controller.journal import Journal
from plerion.controller.prepare import CannotChange, Wanted
from plerion.controller.service import Controller
from plerion.controller.state import Settings, State
from plerion.flow.fabric import fabric
from plerion.index.content_index import ContentIndex
from plerion.index.propose import regular
from plerion.southbound.protocol import EntriesRefused
from plerion.southbound.simulated import SimulatedSouthbound
from plerion.topology import HostId, SwitchId, fat_tree
from plerion.update.canonical import canonical
from plerion.update.entries import Changes, Entries, Side
from plerion.update.plan import Sending, same, standing
from plerion.update.strategies import STRATEGIES

SCHEMA = Schema((Number("x", 0, 15, integer=True), Number("y", 0, 15, integer=True)))
OLD, NEW = regular(SCHEMA, 6), regular(SCHEMA, 4, [1])
SETTINGS = Settings(fat_tree(4, 2), OLD, budget=8, max_trees=1, epoch_bits=2)
INPUTS: list[Input] = [
    Advertise("a1", "h1", "TRUE"),
    Advertise("a2", "h2", "x < 8"),
    Subscribe("q2", "h2", "x < 8"),
    Subscribe("q3", "h3", "x < 4 AND y > 7"),
    Subscribe("q4", "h4", "y > 12"),
]
SAFE = [name for name, known in STRATEGIES.items() if known.promise.safe]
KILLED = "the process is killed here"


class Switches(SimulatedSouthbound):
    """Simulated switches, and what befalls them or their controller before a round or after it."""

    def __init__(self) -> None:
        super().__init__(fabric(SETTINGS.topology))
        self.rounds = 0
        self.before: dict[int, str] = {}
        self.after: dict[int, str] = {}
        self.gate: asyncio.Event | None = None
        self.reached = asyncio.Event()

    async def tell(self, changes: Changes) -> frozenset[SwitchId]:
        if not self._updating:
            return await super().tell(changes)
        self.rounds += 1
        self._befall(self.before)
        self.reached.set()
        if self.gate is not None:
            await self.gate.wait()
        missed = await super().tell(changes)
        self._befall(self.after)
        return missed

    async def overwrite(self, entries: Entries, switches: Collection[SwitchId]) -> frozenset[SwitchId]:
        await asyncio.sleep(0)
        return await super().overwrite(entries, switches)

    def _befall(self, what: dict[int, str]) -> None:
        if what.get(self.rounds) == KILLED:
            raise asyncio.CancelledError(KILLED)
        if (full := what.get(self.rounds)) is not None:
            raise EntriesRefused(SwitchId(full), "table full", 1)


async def started(
    switches: Switches, journal: Journal | None = None, settings: Settings = SETTINGS
) -> Controller:
    controller = await Controller.start(settings, journal, switches)
    for answer in await controller.handle_all(INPUTS):
        assert answer.ready
    return controller


async def holds_exactly(switches: Switches, state: State) -> bool:
    return same(await switches.entries(), canonical(standing(state.network(), Side.OLD)))


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_switches_hold_exactly_the_new_state_when_a_change_has_ended(strategy: str) -> None:
    async def scene() -> None:
        switches = Switches()
        controller = await started(switches)
        done = await controller.change(Wanted(NEW, strategy))
        assert not done.reason
        assert controller.state.settings.index == replace(NEW, epoch=1)
        assert await holds_exactly(switches, controller.state)
        # and from there on it is a controller like any other
        assert (await controller.handle(Subscribe("q5", "h5", "y < 3"))).ready
        assert await holds_exactly(switches, controller.state)
        back = await controller.change(Wanted(OLD, strategy))
        assert not back.reason
        assert await holds_exactly(switches, controller.state)

    asyncio.run(scene())


@pytest.mark.parametrize("strategy", SAFE)
def test_a_switch_that_refuses_costs_nothing_but_the_change(strategy: str) -> None:
    async def scene() -> None:
        switches = Switches()
        controller = await started(switches)
        switches.before = {1: "s1"}
        done = await controller.change(Wanted(NEW, strategy))
        assert "s1" in done.reason
        assert controller.state.settings.index == OLD
        assert await holds_exactly(switches, controller.state)
        assert (await controller.handle(Subscribe("q5", "h5", "y < 3"))).ready
        assert await holds_exactly(switches, controller.state)

    asyncio.run(scene())


@pytest.mark.parametrize("strategy", SAFE)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_controller_killed_in_any_round_is_led_to_one_of_both_states(
    strategy: str, when: str, tmp_path: Path
) -> None:
    async def scene(number: int) -> bool:
        switches = Switches()
        path = tmp_path / f"{number}"
        journal = Journal(path, SETTINGS)
        controller = await started(switches, journal)
        setattr(switches, when, {number: KILLED})
        killed = False
        try:
            await controller.change(Wanted(NEW, strategy))
        except asyncio.CancelledError:
            killed = True
        journal.close()
        switches.before, switches.after = {}, {}
        again = Journal(path, SETTINGS)
        try:
            every = SETTINGS.topology.switches
            successor = await Controller.start(SETTINGS, again, switches, absent=every)
            going_on = asyncio.create_task(successor.go_on())
            await asyncio.sleep(0)
            for switch in every:
                switches.lose(switch, blank=number % 2 == 0)
            for switch in every:
                switches.connect(switch)
                successor.connected(switch)
            await going_on
            await successor.settled()
            assert again.pending() is None
            assert successor.state.settings.index in (OLD, replace(NEW, epoch=1))
            assert await holds_exactly(switches, successor.state)
            assert set(successor.state.subscriptions) == {"q2", "q3", "q4"}
        finally:
            again.close()
        return killed

    number = 1
    while asyncio.run(scene(number)):
        number += 1
    assert number > 2, "there was a round to be killed in"


def test_a_restart_speaks_the_language_that_was_reached(tmp_path: Path) -> None:
    async def scene() -> None:
        switches, path = Switches(), tmp_path / "journal"
        journal = Journal(path, SETTINGS)
        controller = await started(switches, journal)
        await controller.change(Wanted(NEW, "epoch"))
        await controller.change(Wanted(OLD, "versioning"))
        stamp, entries = controller.state.settings.stamp, await switches.entries()
        journal.close()
        journal = Journal(path, SETTINGS)
        successor = await Controller.start(SETTINGS, journal, switches)
        assert successor.state.settings.stamp == stamp
        assert successor.state.settings.index == replace(OLD, epoch=2)
        assert successor.tally.repaired == 0
        assert same(await switches.entries(), entries)
        assert [language.read().epoch for language in journal.languages()] == [0, 1, 2]
        journal.close()

    asyncio.run(scene())


@pytest.mark.parametrize("strategy", SAFE)
def test_a_switch_that_is_lost_for_a_moment_or_for_good_holds_up_nobody(strategy: str) -> None:
    async def scene(number: int, blank: bool, for_good: bool) -> bool:
        switches = Switches()
        controller = await started(switches)
        switches.gate = asyncio.Event()
        changing = asyncio.create_task(controller.change(Wanted(NEW, strategy)))
        for _ in range(number):
            switches.reached.clear()
            reached = asyncio.create_task(switches.reached.wait())
            await asyncio.wait({reached, changing}, return_when=asyncio.FIRST_COMPLETED)
            reached.cancel()
            if changing.done():
                return False
            last = switches.rounds == number
            if not last:
                switches.gate.set()
                await asyncio.sleep(0)
                switches.gate.clear()
        lost = SwitchId("s5")
        switches.lose(lost, blank)
        controller.lost(lost)
        switches.gate.set()
        await asyncio.sleep(0)
        if for_good:
            declared = asyncio.create_task(controller.handle(SwitchDown(lost)))
            await asyncio.wait_for(changing, 10)
            await declared
        switches.connect(lost)
        controller.connected(lost)
        await asyncio.wait_for(changing, 10)
        await controller.settled()
        assert await holds_exactly(switches, controller.state)
        return True

    for blank in (False, True):
        for for_good in (False, True):
            number = 1
            while asyncio.run(scene(number, blank, for_good)):
                number += 1
            assert number > 1


def test_what_is_asked_for_meanwhile_is_answered_in_the_new_state() -> None:
    async def scene() -> None:
        switches = Switches()
        controller = await started(switches)
        switches.gate = asyncio.Event()
        changing = asyncio.create_task(controller.change(Wanted(NEW, "epoch")))
        await switches.reached.wait()
        asking = asyncio.create_task(controller.handle(Subscribe("q9", "h6", "y > 3")))
        await asyncio.sleep(0)
        assert not asking.done()
        switches.gate.set()
        assert not (await changing).reason
        assert (await asking).ready
        assert await holds_exactly(switches, controller.state)

    asyncio.run(scene())


def test_a_link_that_fails_before_the_point_of_no_return_leads_the_change_back() -> None:
    async def scene() -> None:
        switches = Switches()
        controller = await started(switches)
        switches.gate = asyncio.Event()
        changing = asyncio.create_task(controller.change(Wanted(NEW, "epoch")))
        await switches.reached.wait()
        failing = asyncio.create_task(controller.handle(LinkDown("s1:1")))
        await asyncio.sleep(0)
        switches.gate.set()
        assert (await changing).reason
        assert (await failing).ready
        assert controller.state.settings.index == OLD
        assert await holds_exactly(switches, controller.state)

    asyncio.run(scene())


def test_a_publisher_that_does_not_answer_is_shut_out_and_holds_up_nobody() -> None:
    class Deaf:
        """h1 never answers."""

        def __init__(self) -> None:
            self.said: list[Sending] = []

        def between(self, old: Settings, new: Settings) -> None: ...

        def announce(self, sending: Sending) -> None:
            self.said.append(sending)

        async def adopted(self, host: HostId) -> bool:
            return host != "h1"

        def rest(self, settings: Settings) -> None: ...

    async def scene() -> None:
        switches = Switches()
        controller = await started(switches)
        deaf = controller.rolling.publishers = Deaf()
        done = await controller.change(Wanted(NEW, "custom-multicast"))
        assert not done.reason
        assert [sending.side for sending in deaf.said] == [Side.NEW]

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("index", "strategy", "why"),
    [
        (regular(Schema((Number("z", 0, 1),)), 4), "auto", "another schema"),
        (NEW, "bridg", "did you mean 'bridge'"),
        (regular(SCHEMA, 8), "ordered", None),
    ],
)
def test_what_cannot_be_changed_is_refused_in_one_line_and_nothing_is_begun(
    index: ContentIndex, strategy: str, why: str | None
) -> None:
    async def scene() -> None:
        switches = Switches()
        controller = await started(switches)
        if why is None:
            assert not (await controller.change(Wanted(index, strategy))).reason
            return
        with pytest.raises(CannotChange, match=why):
            await controller.change(Wanted(index, strategy))
        assert switches.rounds == 0
        assert (await controller.handle(Subscribe("q5", "h5", "y < 3"))).ready

    asyncio.run(scene())
