"""The thin shell around `step`: journals what was accepted, tells the switches, answers when they confirm.

Inputs have their turn one after the other, so an input that says again what another one is still installing is not
answered before that is in force. What fails leaves no gap behind it: inputs that the journal does not take are
forgotten, and when the switches did not confirm, the next input first brings them up to date.
"""

from __future__ import annotations

from asyncio import Lock
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from plerion.controller.inputs import Input
from plerion.controller.journal import Journal, JournalError
from plerion.controller.state import Settings, State, initial
from plerion.controller.step import Install, Refuse, step
from plerion.flow.admission import admission_change
from plerion.flow.diff import coalesced, diff
from plerion.southbound.protocol import Southbound


@dataclass(frozen=True, slots=True)
class Answer:
    """*ready* when `reason` is None: every path that the input asks for is in force."""

    reason: str | None = None

    @property
    def ready(self) -> bool:
        return self.reason is None


class Controller:
    """One network's controller. `await Controller.start(...)` brings the switches to what the journal says."""

    def __init__(self, state: State, journal: Journal | None, southbound: Southbound) -> None:
        self.state = state
        self._journal = journal
        self._southbound = southbound
        self._turn = Lock()
        self._unconfirmed = False  # whether the switches may lack something that the state holds

    @classmethod
    async def start(cls, settings: Settings, journal: Journal | None, southbound: Southbound) -> Controller:
        """Replays the journal, reads the tables back and sends only the difference; traffic flows meanwhile."""
        state, replayed = _replayed(settings, journal)
        if journal is not None and replayed > 2 * (len(live := list(state.live())) + 64):
            journal.compact(live)
        found = cls(state, journal, southbound)
        await found.resync()
        return found

    async def resync(self) -> int:
        """Brings the switches to what they should hold; the number of changes that this took."""
        async with self._turn:
            return await self._resync()

    async def _resync(self) -> int:
        self._unconfirmed = True
        missing = diff(await self._southbound.tables(), self.state.table.tables())
        await self._southbound.apply(missing)
        edge = admission_change(await self._southbound.admissions(), self.state.admitted)
        await self._southbound.admit(edge)
        self._unconfirmed = False
        return len(missing) + len(edge)

    async def handle(self, received: Input) -> Answer:
        (answer,) = await self.handle_all([received])
        return answer

    async def handle_all(self, received: Iterable[Input]) -> Sequence[Answer]:
        """Several inputs with one journal write and one round to the switches."""
        async with self._turn:
            if self._unconfirmed:
                await self._resync()
            self._unconfirmed = True  # until all of it is done: what fails on the way leaves it so
            answers = await self._handle_all(received)
            self._unconfirmed = False
            return answers

    async def _handle_all(self, received: Iterable[Input]) -> Sequence[Answer]:
        answers: list[Answer] = []
        accepted: list[Input] = []
        changes = []
        before = self.state.admitted
        for one in received:
            if (unfit := _unfit(one)) is not None:
                answers.append(Answer(unfit))
                continue
            self.state, effects = step(self.state, one)
            refusals = [effect.reason for effect in effects if isinstance(effect, Refuse)]
            answers.append(Answer(refusals[0] if refusals else None))
            changes += [effect.change for effect in effects if isinstance(effect, Install)]
            if not refusals:
                accepted.append(one)
        self._remember(accepted)
        if changes:
            await self._southbound.apply(coalesced(changes))
        # The edge comes last, and as one change: one input may take back what another one was admitted.
        if edge := admission_change(before, self.state.admitted):
            await self._southbound.admit(edge)
        return answers

    def _remember(self, accepted: Sequence[Input]) -> None:
        if self._journal is None or not accepted:
            return
        try:
            self._journal.append(accepted)
        except JournalError:
            self.state, _ = _replayed(self.state.settings, self._journal)
            raise


def _unfit(received: Input) -> str | None:
    """Why the journal could not keep an input, if so: asked before anything follows from it."""
    try:
        msgspec.msgpack.encode(received)
    except (ValueError, TypeError, OverflowError, msgspec.MsgspecError) as error:
        return f"this cannot be written down: {error}"
    return None


def _replayed(settings: Settings, journal: Journal | None) -> tuple[State, int]:
    """The state that the journal leads to, and how many inputs that took."""
    state, count = initial(settings), 0
    for received in journal.replay() if journal is not None else ():
        state, _ = step(state, received)
        count += 1
    return state, count
