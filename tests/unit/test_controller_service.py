"""The shell: answers when the switches confirm, remembers what it accepted, and tells switches only what they lack."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from plerion.content.schema import Number, Schema
from plerion.controller.inputs import Advertise, Input, LinkDown, LinkUp, Subscribe, Unsubscribe
from plerion.controller.journal import Journal, JournalError
from plerion.controller.service import Controller
from plerion.controller.state import Settings, initial
from plerion.controller.step import step
from plerion.flow.diff import Diff, diff
from plerion.flow.entry import Tables, no_tables
from plerion.flow.fabric import fabric
from plerion.index.propose import regular
from plerion.southbound.simulated import SimulatedSouthbound
from plerion.topology import SwitchId, line

SCHEMA = Schema((Number("x", 0, 15, integer=True),))
SETTINGS = Settings(line(3), regular(SCHEMA, 4))
INPUTS: list[Input] = [
    Advertise("a1", "h1", "TRUE"),
    Subscribe("q2", "h2", "x < 8"),
    Subscribe("q3", "h3", "x < 4"),
    Advertise("a3", "h3", "x > 7"),
]


class CountingSwitches(SimulatedSouthbound):
    """Simulated switches that keep account of what they were told, and wait or fail when asked to."""

    def __init__(self) -> None:
        super().__init__(fabric(SETTINGS.topology))
        self.told: list[int] = []
        self.failures = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.reached = asyncio.Event()

    async def apply(self, change: Diff) -> frozenset[SwitchId]:
        self.reached.set()
        await self.gate.wait()
        if self.failures:
            self.failures -= 1
            raise ConnectionError("the switch is gone")
        self.told.append(len(change))
        return await super().apply(change)


def stepped(inputs: list[Input]) -> Tables:
    state = initial(SETTINGS)
    for received in inputs:
        state, _ = step(state, received)
    return state.table.tables()


def test_an_answer_is_ready_when_the_switches_hold_the_paths() -> None:
    async def scene() -> None:
        switches = CountingSwitches()
        controller = await Controller.start(SETTINGS, None, switches)
        for number, received in enumerate(INPUTS, start=1):
            assert (await controller.handle(received)).ready
            assert await switches.tables() == stepped(INPUTS[:number])

    asyncio.run(scene())


def test_nobody_is_told_ready_before_the_switches_confirm_not_even_who_asks_again() -> None:
    async def scene() -> None:
        switches = CountingSwitches()
        controller = await Controller.start(SETTINGS, None, switches)
        await controller.handle(INPUTS[0])
        switches.gate.clear()
        switches.reached.clear()
        first = asyncio.create_task(controller.handle(INPUTS[1]))
        await switches.reached.wait()
        again = asyncio.create_task(controller.handle(INPUTS[1]))
        for _ in range(20):
            await asyncio.sleep(0)  # every other task has its turn, often enough to get as far as it can
        assert not first.done()
        assert not again.done()
        switches.gate.set()
        assert (await first).ready
        assert (await again).ready
        assert await switches.tables() == stepped(INPUTS[:2])

    asyncio.run(scene())


def test_a_slow_change_is_never_overtaken_by_a_later_one() -> None:
    """The switches take the first change late and the second at once; what they hold in the end is the second."""

    class SlowOnce(CountingSwitches):
        async def apply(self, change: Diff) -> frozenset[SwitchId]:
            if self.gate.is_set():
                return await SimulatedSouthbound.apply(self, change)
            waited_for, self.gate = self.gate, asyncio.Event()
            self.gate.set()
            self.reached.set()
            await waited_for.wait()
            return await SimulatedSouthbound.apply(self, change)

    async def scene() -> None:
        switches = SlowOnce()
        controller = await Controller.start(SETTINGS, None, switches)
        await controller.handle(INPUTS[0])
        slow = switches.gate = asyncio.Event()
        switches.reached.clear()
        first = asyncio.create_task(controller.handle(INPUTS[1]))
        await switches.reached.wait()
        second = asyncio.create_task(controller.handle(Unsubscribe("q2")))
        for _ in range(20):
            await asyncio.sleep(0)  # as above: the second gets as far as it can
        slow.set()
        assert (await first).ready
        assert (await second).ready
        assert await switches.tables() == stepped(INPUTS[:1])

    asyncio.run(scene())


def test_several_inputs_make_one_journal_write_and_one_round_whatever_is_refused_in_between(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        switches = CountingSwitches()
        journal = Journal(tmp_path / "j", SETTINGS)
        controller = await Controller.start(SETTINGS, journal, switches)
        told = len(switches.told)
        mixed = [
            INPUTS[0],
            Subscribe("bad", "h9", "TRUE"),
            INPUTS[1],
            Subscribe("bad", "h1", "x >"),
            Unsubscribe("q2"),
            Unsubscribe("q2"),
            INPUTS[2],
            LinkDown("s1:9"),
        ]
        answers = await controller.handle_all(mixed)
        assert [answer.ready for answer in answers] == [True, False, True, False, True, False, True, False]
        assert answers[1].reason == "there is no host 'h9' in this network"
        assert len(switches.told) == told + 1
        accepted = [one for one, answer in zip(mixed, answers, strict=True) if answer.ready]
        assert list(journal.replay()) == accepted
        assert await switches.tables() == stepped(accepted)
        assert switches.told[-1] == len(diff(no_tables(fabric(SETTINGS.topology)), stepped(accepted)))

    asyncio.run(scene())


def test_refusals_alone_reach_neither_journal_nor_switches(tmp_path: Path) -> None:
    async def scene() -> None:
        switches, journal = CountingSwitches(), Journal(tmp_path / "j", SETTINGS)
        controller = await Controller.start(SETTINGS, journal, switches)
        told = list(switches.told)
        assert not (await controller.handle(Unsubscribe("nobody"))).ready
        assert (await controller.handle_all([])) == []
        assert (len(journal), switches.told) == (0, told)

    asyncio.run(scene())


def test_a_restart_sends_only_what_the_switches_lack(tmp_path: Path) -> None:
    async def scene() -> None:
        switches, journal = CountingSwitches(), Journal(tmp_path / "j", SETTINGS)
        controller = await Controller.start(SETTINGS, journal, switches)
        await controller.handle_all(INPUTS)
        assert list(journal.replay()) == INPUTS
        journal.close()
        reopened = Journal(tmp_path / "j", SETTINGS)
        again = await Controller.start(SETTINGS, reopened, switches)
        assert switches.told[-1] == 0
        assert again.state.table.tables() == controller.state.table.tables()
        half = stepped(INPUTS[:2])
        await switches.apply(diff(await switches.tables(), half))
        assert await again.resync() == len(diff(half, stepped(INPUTS))) > 0
        assert await again.resync() == 0
        reopened.close()
        blank = CountingSwitches()
        await Controller.start(SETTINGS, Journal(tmp_path / "j", SETTINGS), blank)
        assert blank.told == [len(stepped(INPUTS))]
        assert await blank.tables() == stepped(INPUTS)

    asyncio.run(scene())


def test_a_long_journal_is_compacted_at_the_start_and_means_the_same(tmp_path: Path) -> None:
    async def scene() -> None:
        journal = Journal(tmp_path / "j", SETTINGS)
        flapping: list[Input] = [LinkDown("s1:1"), LinkUp("s1:1")] * 80
        journal.append([*INPUTS[:2], *flapping, *INPUTS[2:], LinkDown("s2:1")])
        controller = await Controller.start(SETTINGS, journal, CountingSwitches())
        live = list(controller.state.live())
        assert list(journal.replay()) == live
        assert len(live) == len(INPUTS) + 1
        again = await Controller.start(SETTINGS, journal, CountingSwitches())
        assert again.state.table.tables() == controller.state.table.tables()
        assert list(again.state.live()) == live

    asyncio.run(scene())


def test_a_short_journal_is_left_alone(tmp_path: Path) -> None:
    async def scene() -> None:
        journal = Journal(tmp_path / "j", SETTINGS)
        journal.append([LinkDown("s1:1"), LinkUp("s1:1")])
        await Controller.start(SETTINGS, journal, CountingSwitches())
        assert len(journal) == 2

    asyncio.run(scene())


def test_after_a_failure_at_the_switches_the_next_answer_is_true_again() -> None:
    async def scene() -> None:
        switches = CountingSwitches()
        controller = await Controller.start(SETTINGS, None, switches)
        await controller.handle(INPUTS[0])
        switches.failures = 1
        with pytest.raises(ConnectionError):
            await controller.handle(INPUTS[1])
        assert await switches.tables() != stepped(INPUTS[:2])
        assert (await controller.handle(INPUTS[1])).ready, "it holds already: the client asks again"
        assert await switches.tables() == stepped(INPUTS[:2])

    asyncio.run(scene())


def test_who_stops_waiting_leaves_no_gap_behind() -> None:
    async def scene() -> None:
        switches = CountingSwitches()
        controller = await Controller.start(SETTINGS, None, switches)
        await controller.handle(INPUTS[0])
        switches.gate.clear()
        switches.reached.clear()
        asked = asyncio.create_task(controller.handle(INPUTS[1]))
        await switches.reached.wait()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        switches.gate.set()
        await controller.handle(INPUTS[2])
        assert await switches.tables() == stepped(INPUTS[:3])

    asyncio.run(scene())


def test_what_the_disk_does_not_take_is_forgotten_everywhere(tmp_path: Path) -> None:
    async def scene() -> None:
        switches, journal = CountingSwitches(), Journal(tmp_path / "j", SETTINGS)
        controller = await Controller.start(SETTINGS, journal, switches)
        await controller.handle_all(INPUTS[:2])
        (pages,) = journal._database.execute("PRAGMA page_count").fetchone()
        journal._database.execute(f"PRAGMA max_page_count = {pages + 1}")
        many = [Subscribe(f"n{i}", "h3", "x = 1 OR " * 60 + "x = 2") for i in range(200)]
        with pytest.raises(JournalError, match="full"):
            await controller.handle_all(many)
        journal._database.execute("PRAGMA max_page_count = 100000")
        assert await switches.tables() == stepped(INPUTS[:2])
        assert list(controller.state.live()) == INPUTS[:2]
        assert (await controller.handle(many[0])).ready
        assert list(journal.replay()) == [*INPUTS[:2], many[0]]
        assert await switches.tables() == stepped([*INPUTS[:2], many[0]])

    asyncio.run(scene())
