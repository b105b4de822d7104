"""The shell around `step`: journals what was accepted, tells the switches, answers when they confirm.

Inputs are handled in *rounds*: those that come while a round is at the switches wait and share the next one, with one
journal entry and one round of barriers. So an input that says again what another one is still installing is not
answered before that is in force, and the busier a controller is, the more a round carries.

What goes wrong stays small:

- A switch that cannot be told is *behind*. Others go on; answers of those who rely on it wait until it was brought up
  to date, or was declared down and its traffic goes round it.
- A switch that refuses, because its table is full, costs the round: all its inputs are taken back, and tried again one
  by one, so that only those are refused that do not fit.
- Inputs that the journal does not take are forgotten, and when the switches did not confirm at all, the next round
  first brings them up to date.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from logging import getLogger

from plerion.controller.inputs import Input, SwitchUp
from plerion.controller.journal import Journal, JournalError
from plerion.controller.memory import regions_of, replayed
from plerion.controller.outcome import Outcome, is_interest, taken
from plerion.controller.reliance import Reliance
from plerion.controller.state import Settings, State
from plerion.controller.switches import Switches, Tally
from plerion.southbound.protocol import EntriesRefused, Southbound
from plerion.topology.graph import SwitchId

MOST_IN_A_ROUND = 256
STEPS_AT_ONCE = 16  # then others have their turn: a step takes up to a millisecond

log = getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """*ready* when `reason` is None: every path that the input asks for is in force."""

    reason: str | None = None

    @property
    def ready(self) -> bool:
        return self.reason is None


@dataclass(slots=True)
class _Asked:
    received: Input
    answer: asyncio.Future[Answer] | None = None  # None: nobody waits
    began: float = 0.0
    outcome: Outcome | None = None

    def fail(self, error: Exception) -> None:
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(error)


class Controller:
    """One network's controller. `await Controller.start(...)` brings the switches to what the journal says."""

    def __init__(self, state: State, journal: Journal | None, southbound: Southbound) -> None:
        self.state = state
        self.tally = Tally()
        self.observe: Callable[[Answer, float], None] | None = None  # told each answer and how long it took
        self.switches = Switches(southbound, self.tally)
        self._journal = journal
        self._turn = asyncio.Lock()
        self._unconfirmed = False  # whether any switch may lack something, whoever is behind
        self._queue: deque[_Asked] = deque()
        self._returned: set[SwitchId] = set()
        self._waiting: list[_Asked] = []  # accepted, and relying on a switch that is behind
        self._lacked: frozenset[SwitchId] = frozenset()  # when those were last looked at
        self._worker: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls,
        settings: Settings,
        journal: Journal | None,
        southbound: Southbound,
        absent: Iterable[SwitchId] = (),
    ) -> Controller:
        """Loads the journal, reads the tables back and sends only the difference; traffic flows meanwhile.

        Switches that are `absent` are brought up to date when they are said to be `connected`.
        """
        state, count = replayed(settings, journal)
        if journal is not None and count > 2 * (len(left := list(state.live())) + 64):
            journal.compact(left)
        found = cls(state, journal, southbound)
        found.switches.behind |= set(absent)
        await found.resync()
        return found

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
        self._wake()

    def lost(self, switch: SwitchId) -> None:
        """The switch cannot be told anything now."""
        self.switches.lost(switch)
        self._returned.discard(switch)

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
        asked = [_Asked(one, loop.create_future(), loop.time()) for one in received]
        self._queue.extend(asked)
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

    async def _round(self, batch: list[_Asked]) -> None:
        if self._unconfirmed:
            await self._resync()
        self._unconfirmed = True  # until all of it is done: what fails on the way leaves it so
        returned = frozenset(self._returned)
        self._returned.clear()
        dead = [switch for switch in self.state.dead_switches if switch in returned]
        batch[:0] = [_Asked(SwitchUp(switch)) for switch in dead]
        before = self.state.admitted
        outcomes = await self._stepped(batch)
        try:
            # Switches that came back first: others may send through them as soon as they are told.
            await self.switches.bring(self.state, returned | _came_up(outcomes))
            await self.switches.tell(self.state, outcomes, before)
        except EntriesRefused as refusal:
            outcomes = await self._one_by_one(outcomes, refusal)
        self._unconfirmed = False
        self._close(batch, outcomes)

    async def _stepped(self, batch: Sequence[_Asked]) -> list[Outcome]:
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
                outcome = replace(outcome, reason=_full(again.switch, again.reason))
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

    def _close(self, batch: Sequence[_Asked], outcomes: Sequence[Outcome]) -> None:
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
        lacking = frozenset(self.switches.behind.difference(self.state.dead_switches))
        looked_at = fresh if lacking == self._lacked else [*self._waiting, *fresh]
        kept = self._waiting if lacking == self._lacked else []
        self._lacked = lacking
        reliance = Reliance(self.state)
        self._waiting = kept + [one for one in looked_at if not self._answered(one, lacking, reliance)]

    def _told(self, one: _Asked, answer: Answer) -> None:
        if one.answer is not None and not one.answer.done():
            one.answer.set_result(answer)
            if self.observe is not None:
                self.observe(answer, one.answer.get_loop().time() - one.began)

    def _answered(self, one: _Asked, lacking: frozenset[SwitchId], reliance: Reliance) -> bool:
        """Tells who asked, unless what they rely on is behind; when a full table is why, they are refused after all."""
        assert one.outcome is not None, "it was stepped"
        needed = lacking and (one.outcome.touched & lacking) | reliance.of(one.received, lacking)
        if not needed:
            self._told(one, Answer())
            return True
        full = next((switch for switch in needed if switch in self.switches.refusing), None)
        if full is None or one.outcome.undo is None:
            return False
        self._told(one, Answer(_full(full, self.switches.refusing[full])))
        self._queue.append(_Asked(one.outcome.undo))
        return True


def _came_up(outcomes: Iterable[Outcome]) -> frozenset[SwitchId]:
    ups = (outcome.received for outcome in outcomes if outcome.reason is None)
    return frozenset(SwitchId(up.switch) for up in ups if isinstance(up, SwitchUp))


def _full(switch: SwitchId, reason: str) -> str:
    return f"{switch} does not take the entries that this needs: {reason}"
