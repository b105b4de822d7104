"""The thin shell around `step`: journals what was accepted, tells the switches, answers when they confirm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plerion.controller.inputs import Input
from plerion.controller.journal import Journal
from plerion.controller.state import Settings, State, initial
from plerion.controller.step import Install, Refuse, step
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

    @classmethod
    async def start(cls, settings: Settings, journal: Journal | None, southbound: Southbound) -> Controller:
        """Replays the journal, reads the tables back and sends only the difference; traffic flows meanwhile."""
        state = initial(settings)
        replayed = 0
        for received in journal.replay() if journal else ():
            state, _ = step(state, received)
            replayed += 1
        if journal and replayed > 2 * (len(live := list(state.live())) + 64):
            journal.compact(live)
        found = cls(state, journal, southbound)
        await found.resync()
        return found

    async def resync(self) -> int:
        """Brings the switches to what they should hold; the number of changes that this took."""
        missing = diff(await self._southbound.tables(), self.state.table.tables())
        await self._southbound.apply(missing)
        return len(missing)

    async def handle(self, received: Input) -> Answer:
        (answer,) = await self.handle_all([received])
        return answer

    async def handle_all(self, received: Iterable[Input]) -> Sequence[Answer]:
        """Several inputs with one journal write and one round to the switches."""
        answers: list[Answer] = []
        accepted: list[Input] = []
        changes = []
        for one in received:
            self.state, effects = step(self.state, one)
            refusals = [effect.reason for effect in effects if isinstance(effect, Refuse)]
            answers.append(Answer(refusals[0] if refusals else None))
            changes += [effect.change for effect in effects if isinstance(effect, Install)]
            if not refusals:
                accepted.append(one)
        if self._journal and accepted:
            self._journal.append(accepted)
        if changes:
            await self._southbound.apply(coalesced(changes))
        return answers
