"""The shell around `step`: journals what was accepted, tells the switches, answers when they confirm.

Inputs are handled in *rounds*: those that come while a round is at the switches wait and share the next one, with one
journal entry and one round of barriers. So an input that says again what another one is still installing is not
answered before that is in force, and the busier a controller is, the more a round carries.

What goes wrong stays small:

- A switch that cannot be told is *behind*. Others go on; answers of those who rely on it wait until it was brought up
  to date, or was declared down and its traffic goes round it.
- A switch that refuses, because its table is full, costs the round: all its inputs are taken back, and tried again one
  by one, so that only those are refused that do not fit.
- Inputs that come while the index is changed wait for its end (`rolling`).
- Inputs that the journal does not take are forgotten, and when the switches did not confirm at all, the next round
  first brings them up to date.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from logging import getLogger

from plerion.controller.answer import Answer, Asked, full_table
from plerion.controller.inputs import Input, SwitchUp
from plerion.controller.journal import Journal, JournalError
from plerion.controller.language import Language
from plerion.controller.memory import regions_of, replayed, spoken
from plerion.controller.outcome import Outcome, came_up, is_interest, taken
from plerion.controller.prepare import CannotChange, Prepared, Wanted
from plerion.controller.rolling import Ended, Rolling
from plerion.controller.state import Settings, State
from plerion.controller.switches import Switches, Tally
from plerion.controller.waiting import Waiting
from plerion.southbound.protocol import EntriesRefused, Updatable
from plerion.topology.graph import SwitchId

MOST_IN_A_ROUND = 256
STEPS_AT_ONCE = 16  # then others have their turn: a step takes up to a millisecond

log = getLogger(__name__)


class Controller:
    """One network's controller. `await Controller.start(...)` brings the switches to what the journal says."""

    def __init__(self, state: State, journal: Journal | None, southbound: Updatable) -> None:
        self.state = state
        self.rolling = Rolling(southbound, journal)
        self.tally = Tally()
        self.observe: Callable[[Answer, float], None] | None = None  # told each answer and how long it took
        self.switches = Switches(southbound, self.tally)
        self._journal = journal
        self._turn = asyncio.Lock()
        self._unconfirmed = False  # whether any switch may lack something, whoever is behind
        self._queue: deque[Asked] = deque()
        self._returned: set[SwitchId] = set()
        self._waiting = Waiting()
        self._worker: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls,
        settings: Settings,
        journal: Journal | None,
        southbound: Updatable,
        absent: Iterable[SwitchId] = (),
    ) -> Controller:
        """Loads the journal, reads the tables back and sends only the difference; traffic flows meanwhile.

        Switches that are `absent` are brought up to date when they are said to be `connected`. A change of index that
        was under way is gone on with, by whoever calls `go_on`.
        """
        state, count = replayed(spoken(settings, journal), journal)
        if journal is not None and count > 2 * (len(left := list(state.live())) + 64):
            journal.compact(left)
        found = cls(state, journal, southbound)
        found.switches.behind |= set(absent)
        southbound.speak(state.settings.stamp)
        if journal is None or journal.pending() is None:
            await found.resync()
        return found

    async def go_on(self) -> None:
        """Leads a change of index that was under way when a controller before this one ended to its end."""
        pending = None if self._journal is None else self._journal.pending()
        if pending is not None:
            async with self._turn:
                self.state = await self.rolling.resume(self.state, pending, self.switches.behind)
                await self._resync()

    def languages(self) -> list[Language]:
        """What was spoken, the present language last."""
        return [] if self._journal is None else self._journal.languages()

    async def prepare(self, wanted: Wanted) -> Prepared:
        """What a change of index would come to, as things stand; nothing is begun."""
        async with self._turn:
            return await self.rolling.prepare(self.state, wanted)

    async def change(self, wanted: Wanted) -> Ended:
        """Takes the network to another index, without losing or doubling an event as far as the strategy promises it.

        Returns when the network is there, or is as it was again. `CannotChange` when nothing was begun.
        """
        async with self._turn:
            if self._unconfirmed:
                await self._resync()
            if lacking := self.switches.behind.difference(self.state.dead_switches):
                raise CannotChange(
                    f"{', '.join(sorted(lacking))} cannot be told now: try again when it is back"
                )
            change = await self.rolling.prepare(self.state, wanted)
            self._unconfirmed = True
            self.state = await self.rolling.change(change, wanted.options)
            await self._resync()
            assert self.rolling.ended is not None, "it has just ended"
            return self.rolling.ended

    @property
    def in_step(self) -> bool:
        """Whether every switch is known to hold what it should."""
        return not (self.switches.behind or self._unconfirmed or self.state.dead_switches)

    @property
    def waiting(self) -> int:
        """Inputs that nobody has been told the answer of yet."""
        return len(self._queue) + len(self._waiting)

    def connected(self, switch: SwitchId) -> None:
        """The switch can be told again: it is compared, alone, and brought up to date before anyone relies on it."""
        self.switches.behind.add(switch)
        self._returned.add(switch)
        self.rolling.connected(switch)
        self._wake()

    def lost(self, switch: SwitchId) -> None:
        """The switch cannot be told anything now."""
        self.switches.lost(switch)
        self._returned.discard(switch)
        self.rolling.lost(switch)

    async def resync(self) -> int:
        """Brings all switches but those behind to what they should hold; the number of changes that this took."""
        async with self._turn:
            return await self._resync()

    async def handle(self, received: Input) -> Answer:
        (answer,) = await self.handle_all([received])
        return answer

    async def handle_all(self, received: Iterable[Input]) -> Sequence[Answer]:
        """Several inputs, and as far as they fit one round for them."""
        loop = asyncio.get_running_loop()
        asked = [Asked(one, loop.create_future(), loop.time()) for one in received]
        self._queue.extend(asked)
        self.rolling.hear(one.received for one in asked)
        self._wake()
        return await asyncio.gather(*(one.answer for one in asked if one.answer is not None))

    async def settled(self) -> None:
        """Returns when no round is going on or due."""
        while self._worker is not None and not self._worker.done():
            await asyncio.wait([self._worker])

    def _wake(self) -> None:
        if (self._queue or self._returned) and (self._worker is None or self._worker.done()):
            self._worker = asyncio.create_task(self._rounds(), name="rounds")

    async def _rounds(self) -> None:
        while self._queue or self._returned:
            async with self._turn:
                due = (self._queue.popleft() for _ in range(min(len(self._queue), MOST_IN_A_ROUND)))
                batch = [one for one in due if one.answer is None or not one.answer.cancelled()]
                try:
                    await self._round(batch)
                except Exception as error:  # whoever asked is told; the next round repairs
                    log.exception("a round of %d inputs failed", len(batch))
                    for one in batch:
                        one.fail(error)
            await asyncio.sleep(0)

    async def _round(self, batch: list[Asked]) -> None:
        if self._unconfirmed:
            await self._resync()
        self._unconfirmed = True  # until all of it is done: what fails on the way leaves it so
        returned = frozenset(self._returned)
        self._returned.clear()
        dead = [switch for switch in self.state.dead_switches if switch in returned]
        batch[:0] = [Asked(SwitchUp(switch)) for switch in dead]
        before = self.state.admitted
        outcomes = await self._stepped(batch)
        try:
            # Switches that came back first: others may send through them as soon as they are told.
            await self.switches.bring(self.state, returned | came_up(outcomes))
            await self.switches.tell(self.state, outcomes, before)
        except EntriesRefused as refusal:
            outcomes = await self._one_by_one(outcomes, refusal)
        self._unconfirmed = False
        self._close(batch, outcomes)

    async def _stepped(self, batch: Sequence[Asked]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        try:
            for number, one in enumerate(batch, start=1):
                self.state, outcome = taken(self.state, one.received)
                outcomes.append(outcome)
                if number % STEPS_AT_ONCE == 0:
                    await asyncio.sleep(0)
        except Exception:
            self._forget()
            raise
        self._remember(outcomes)
        return outcomes

    def _remember(self, outcomes: Iterable[Outcome]) -> None:
        accepted = [outcome.received for outcome in outcomes if outcome.worth_keeping]
        if self._journal is None or not accepted:
            return
        try:
            self._journal.append(accepted, regions_of(self.state.settings, accepted))
        except JournalError:
            self._forget()
            raise

    def _forget(self) -> None:
        """Back to what the journal holds."""
        if self._journal is not None:
            self.state, _ = replayed(self.state.settings, self._journal)

    async def _one_by_one(self, outcomes: Sequence[Outcome], refusal: EntriesRefused) -> list[Outcome]:
        """Each input of a round that a switch refused, alone: only who does not fit is refused."""
        log.warning("%s: its round of %d inputs is tried again one by one", refusal, len(outcomes))
        await self._take_back(outcomes, refusal.switch)
        found: list[Outcome] = []
        for tried in outcomes:
            if tried.reason is not None or not is_interest(tried.received):
                found.append(tried)
                continue
            before = self.state.admitted
            self.state, outcome = taken(self.state, tried.received)
            self._remember([outcome])
            try:
                await self.switches.tell(self.state, [outcome], before)
            except EntriesRefused as again:
                await self._take_back([outcome], again.switch)
                outcome = replace(outcome, reason=full_table(again.switch, again.reason))
            found.append(outcome)
        return found

    async def _take_back(self, outcomes: Sequence[Outcome], switch: SwitchId) -> None:
        """Undoes what interests did, in the journal and in the switches, whatever part of it they had taken."""
        before, undone = self.state.admitted, []
        for outcome in reversed(outcomes):
            if outcome.undo is not None:
                self.state, back = taken(self.state, outcome.undo)
                undone.append(back)
        self._remember(undone)
        self.tally.withdrawn += len(undone)
        try:
            await self.switches.tell(self.state, undone, before)
        except EntriesRefused as refusal:
            log.error("%s, which is less than it held before", refusal)
        await self.switches.bring(self.state, frozenset([switch]))

    async def _resync(self) -> int:
        self._unconfirmed = True
        count = await self.switches.bring(
            self.state, frozenset(self.state.settings.topology.switches) - self.switches.behind
        )
        self._unconfirmed = False
        return count

    def _close(self, batch: Sequence[Asked], outcomes: Sequence[Outcome]) -> None:
        self.tally.rounds += 1
        fresh = []
        for one, outcome in zip(batch, outcomes, strict=True):
            one.outcome = outcome
            if outcome.reason is not None:
                self.tally.refused += 1
                self._told(one, Answer(outcome.reason))
            else:
                self.tally.accepted += 1
                fresh.append(one)
        self._queue.extend(self._waiting.look(fresh, self.state, self.switches, self._told))

    def _told(self, one: Asked, answer: Answer) -> None:
        if one.answer is not None and not one.answer.done():
            one.answer.set_result(answer)
            if self.observe is not None:
                self.observe(answer, one.answer.get_loop().time() - one.began)
