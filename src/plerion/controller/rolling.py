"""Changes of index on a running controller: one at a time, journaled, resumed after a crash, undone on request.

While one is under way no round of inputs is: what hosts ask for waits for its end. A link or a switch that fails or
returns does not wait for all of it: the rollout is led back first, or past its point of no return completed, which
takes no longer than a drain.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from logging import getLogger
from typing import Protocol

import msgspec

from plerion.controller.inputs import Input, LinkDown, LinkUp, SwitchDown, SwitchUp
from plerion.controller.journal import Journal, JournalError, Pending
from plerion.controller.language import Language, language
from plerion.controller.prepare import CannotChange, Prepared, Wanted, prepared
from plerion.controller.rollout import Publishers, Rollout
from plerion.controller.state import Settings, State
from plerion.southbound.protocol import Updatable
from plerion.topology.graph import HostId, SwitchId
from plerion.update.machine import Began, Finish, Orders, Run, resumed, started
from plerion.update.plan import Sending
from plerion.update.state import Options

log = getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Ended:
    """What a change came to. `reason` says why the network is as it was; empty when it is in the new state."""

    prepared: Prepared
    seconds: float
    reason: str = ""


class Announcing(Publishers, Protocol):
    """Publishers whose languages follow the controller's."""

    def between(self, old: Settings, new: Settings) -> None:
        """What is announced from now on is about these two."""
        ...

    def rest(self, settings: Settings) -> None:
        """The network speaks this, and nothing changes."""
        ...


class Unheard:
    """Where nobody publishes who could be told: all have adopted everything."""

    def between(self, old: Settings, new: Settings) -> None: ...

    def announce(self, sending: Sending) -> None: ...

    async def adopted(self, host: HostId) -> bool:  # noqa: ARG002 - whoever it is
        return True

    def rest(self, settings: Settings) -> None: ...


class Rolling:
    """The change that is under way, if one is."""

    def __init__(
        self, southbound: Updatable, journal: Journal | None, publishers: Announcing | None = None
    ) -> None:
        self.publishers: Announcing = publishers or Unheard()
        self.ended: Ended | None = None  # the latest one
        self.count = 0  # of those that ended
        self._southbound, self._journal = southbound, journal
        self._prepared: Prepared | None = None
        self._rollout: Rollout | None = None

    @property
    def under_way(self) -> Prepared | None:
        return self._prepared

    @property
    def run(self) -> Run | None:
        """Where the change stands."""
        return None if self._rollout is None else self._rollout.run

    def hear(self, inputs: Iterable[Input]) -> None:
        """Inputs that a change must not keep waiting lead it back; a switch that is down is not waited for."""
        if self._rollout is None:
            return
        for received in inputs:
            if isinstance(received, SwitchDown):
                self._rollout.down(SwitchId(received.switch))
            if isinstance(received, LinkDown | LinkUp | SwitchDown | SwitchUp):
                self._rollout.stop()

    def connected(self, switch: SwitchId) -> None:
        if self._rollout is not None:
            self._rollout.returned(switch)

    def lost(self, switch: SwitchId) -> None:
        if self._rollout is not None:
            self._rollout.lost(switch)

    def stop(self) -> bool:
        """Leads back, as long as there is a way back; False when nothing can be led back."""
        if self._rollout is None or not self._rollout.run.can_turn:
            return False
        self._rollout.stop()
        return True

    async def prepare(self, state: State, wanted: Wanted) -> Prepared:
        """The change worked out, beside the event loop: with many subscriptions it takes a while."""
        return await asyncio.to_thread(prepared, state, wanted)

    async def change(self, change: Prepared, options: Options) -> State:
        """The state after the change; the old one when it was led back. `ended` says more."""
        run, orders = started(change.plan)
        return await self._rolled(change, options, run, orders, ())

    async def resume(self, state: State, pending: Pending, absent: Iterable[SwitchId]) -> State:
        """The same for a change that a controller before this one did not end."""
        options = msgspec.json.decode(pending.options, type=Options)
        wanted = Wanted(pending.language.read(), pending.strategy, options)
        try:
            change = prepared(state, wanted)
        except CannotChange as refusal:
            raise JournalError(f"a rollout was under way and cannot be gone on with: {refusal}") from None
        began = Began(max(0, pending.number), pending.back)
        if change.digest() == pending.digest:
            log.warning("a rollout was under way: %s, round %d", pending.strategy, began.number + 1)
            run, orders = resumed(change.plan, began)
            return await self._rolled(change, options, run, orders, absent)
        log.error("a rollout was under way, and this release or configuration would make another plan of it")
        forward = not pending.back and pending.number >= change.plan.no_return
        return await self._rested(change, "" if forward else "the configuration changed meanwhile", 0.0)

    async def _rolled(
        self, change: Prepared, options: Options, run: Run, orders: Orders, absent: Iterable[SwitchId]
    ) -> State:
        now = asyncio.get_running_loop().time
        begun = now()
        there, strategy, kept = (
            language(change.new.settings),
            change.plan.strategy,
            msgspec.json.encode(options),
        )
        note = self._noting(Pending(there, strategy, kept, change.digest()))
        self._prepared = change
        self.publishers.between(change.old.settings, change.new.settings)
        self._rollout = Rollout(run, self._southbound, self.publishers, note, tuple(absent))
        self._southbound.begin()
        try:
            reason = self._why(await self._rollout.finished(orders))
        except Exception as error:  # whatever it was, the network must not stay between two states
            log.exception("the rollout failed in its round %d", self._rollout.run.number + 1)
            reason = "" if self._forward(change, self._rollout.run) else f"it failed: {error}"
        finally:
            self._rollout = self._prepared = None
        return await self._rested(change, reason, now() - begun)

    @staticmethod
    def _forward(change: Prepared, run: Run) -> bool:
        """Whether what cannot be gone on with is nearer to the new state than to the old one."""
        return not run.back and run.number >= change.plan.no_return

    async def _rested(self, change: Prepared, reason: str, seconds: float) -> State:
        """The end: on disk, then with switches and publishers."""
        state = change.old if reason else change.new
        if self._journal is not None:
            self._journal.rolled(language(change.old.settings), None if reason else language(state.settings))
        self._southbound.speak(state.settings.stamp)
        await self._southbound.end()
        self.publishers.rest(state.settings)
        self.ended = Ended(change, seconds, reason)
        self.count += 1
        log.info(
            "%s after %.2f s%s", change.plan.strategy, seconds, f", led back: {reason}" if reason else ""
        )
        return state

    def _why(self, finish: Finish) -> str:
        if not finish.back:
            return ""
        refusal = self._rollout.refusal if self._rollout is not None else None
        return str(refusal) if refusal is not None else "it was stopped, or a switch was lost"

    def _noting(self, pending: Pending) -> Callable[[Began], None]:
        """Writes down how far the rollout has come. On a full disk only a crash would cost anything."""

        def note(began: Began) -> None:
            if self._journal is None:
                return
            try:
                self._journal.rolling(msgspec.structs.replace(pending, number=began.number, back=began.back))
            except JournalError as error:
                log.error("%s; a crash in this round would go on from an earlier one", error)

        return note


def previous(languages: list[Language]) -> Language | None:
    """The language that was spoken before the present one, if there was another."""
    return languages[-2] if len(languages) > 1 else None
