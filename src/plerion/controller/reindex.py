"""Changes of index as operators and the pipeline ask for them: looked at, made, undone, and made automatically.

The guards of the automatic way, in their order: a proposal must be for the index in force, its rate on events that it
was not made from lower by a margin; at most one change a period; and when hosts then report a higher rate than before,
more than chance explains, the index before is brought back and what was proposed is not tried again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from logging import getLogger
from pathlib import Path
from typing import Any

import msgspec

from plerion.controller.desk import Desk
from plerion.controller.lease import session_of
from plerion.controller.measured import Measured, Seen, is_worse
from plerion.controller.prepare import AUTO, CannotChange, Prepared, Wanted
from plerion.controller.rolling import Ended, previous
from plerion.controller.service import Controller
from plerion.eventlog.disk import write_whole
from plerion.index.codec import from_json, to_json
from plerion.update.state import Options, Prefer

FEWEST_RECEIVED = 500  # events, before a measured rate says anything
LOOK_SECONDS = 1.0  # between two looks for a proposal

log = getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Automatic:
    """What the configuration says of changes of index."""

    index_file: Path | None = None  # where the index in force is written, for whoever watches the log
    proposals: Path | None = None  # where proposals come in
    enabled: bool = False
    strategy: str = AUTO
    prefer: Prefer = "accurate"
    margin: float = 0.05
    period_seconds: float = 600.0
    watch_seconds: float = 60.0


class Proposed(msgspec.Struct, frozen=True):
    """What the controller reads of a proposal."""

    epoch: int
    current_rate: float
    proposed_rate: float
    index: msgspec.Raw


@dataclass(slots=True)
class Told:
    """What became of proposals and changes, the latest of each."""

    proposal: str = ""  # its file
    verdict: str = ""
    changed_at: float | None = None
    before: Seen = field(default_factory=Seen)
    passed_over: set[str] = field(default_factory=set)


class Reindexing:
    """A controller's changes of index. One at a time; who comes second waits."""

    def __init__(self, controller: Controller, desk: Desk, automatic: Automatic) -> None:
        self.measured = Measured()
        self.told = Told()
        self._controller, self._desk, self._automatic = controller, desk, automatic
        self._written = b""
        self._tasks: set[asyncio.Task[Ended]] = set()

    @property
    def count(self) -> int:
        """Changes that have ended, one way or the other."""
        return self._controller.rolling.count

    def unreachable(self) -> list[str]:
        """Publishers that cannot be told how to send: their advertisements are an operator's."""
        every = self._controller.state.advertisements.values()
        return sorted({one.host for one in every if session_of(one.id, one.host) is None})

    async def plan(self, wanted: Wanted) -> Prepared:
        """What the change would come to; nothing is begun."""
        return await self._controller.prepare(wanted)

    async def apply(self, wanted: Wanted, force: bool = False) -> Ended:
        """Makes the change. It goes on when nobody waits for it any more."""
        silent = self.unreachable()
        if silent and not force:
            raise CannotChange(
                f"{', '.join(silent)}: an operator advertised there, and no session can be told how to send; "
                "withdraw that, or force the change and tell the publisher yourself"
            )
        making = asyncio.create_task(self._made(wanted))
        self._tasks.add(making)
        making.add_done_callback(self._tasks.discard)
        return await asyncio.shield(making)

    async def rollback(self, strategy: str = AUTO, prefer: Prefer = "accurate", force: bool = False) -> Ended:
        """Brings back the index that was spoken before the present one."""
        before = previous(self._controller.languages())
        if before is None:
            raise CannotChange("there is no index before this one")
        return await self.apply(Wanted(before.read(), strategy, Options(prefer=prefer)), force)

    def stop(self) -> bool:
        """Leads a change back, if there is a way back still."""
        return self._controller.rolling.stop()

    def status(self, now: float) -> dict[str, Any]:
        """Where a change stands, what the last one came to, and the rate as hosts report it."""
        rolling = self._controller.rolling
        run, under_way, last = rolling.run, rolling.under_way, rolling.ended
        recent = self.measured.between(now - self._automatic.watch_seconds, now + 1)
        found: dict[str, Any] = {
            "epoch": self._controller.state.settings.index.epoch,
            "changes": self.count,
            "automatic": self._automatic.enabled,
            "rate": recent.rate,
            "received": recent.received,
            "doubles": recent.doubles,
            "proposal": self.told.proposal,
            "verdict": self.told.verdict,
            "under_way": None,
            "last": None if last is None else ended(last),
        }
        if under_way is not None and run is not None:
            number = min(run.number, len(run.rounds) - 1)
            found["under_way"] = {
                "strategy": under_way.plan.strategy,
                "epoch": under_way.new.settings.index.epoch,
                "round": number + 1,
                "rounds": len(run.rounds),
                "name": run.rounds[number].name,
                "phase": run.phase.value,
                "back": run.back,
                "waits_for": sorted([*run.switches, *run.publishers]),
            }
        return found

    def tick(self, now: float) -> None:
        """Counts what hosts reported, and writes the index in force for whoever watches the log."""
        self.measured.note(self._desk.reports, now)
        if self._automatic.index_file is None:
            return
        text = to_json(self._controller.state.settings.index) + b"\n"
        if text != self._written:
            write_whole(self._automatic.index_file, text)
            self._written = text

    async def follow(self) -> None:
        """Takes proposals as they come, and takes back what turned out worse; for ever, where that is wanted."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if not self._automatic.enabled:
                continue
            try:
                await self._judged(loop.time())
                await self._followed(loop.time())
            except (ValueError, OSError, msgspec.MsgspecError) as refusal:
                self.told.verdict = str(refusal)
                log.warning("%s: %s", self.told.proposal, refusal)

    async def _made(self, wanted: Wanted) -> Ended:
        loop, now = asyncio.get_running_loop(), asyncio.get_running_loop().time()
        self.told.before = self.measured.between(now - self._automatic.watch_seconds, now)
        found = await self._controller.change(wanted)
        self.told.changed_at = loop.time()
        return found

    async def _judged(self, now: float) -> None:
        """Brings back the index before, when the present one turned out worse."""
        told, watched = self.told, self._automatic.watch_seconds
        if told.changed_at is None or not told.verdict.startswith("taken") or now < told.changed_at + watched:
            return
        after = self.measured.between(told.changed_at + watched / 3, now)  # reports of before are out by then
        if after.received < FEWEST_RECEIVED:
            return
        told.verdict = f"kept: {_rates(told.before, after)}"
        if is_worse(told.before, after, self._automatic.margin, FEWEST_RECEIVED):
            told.verdict = f"rolled back: {_rates(told.before, after)}"
            log.warning("%s: %s", told.proposal, told.verdict)
            await self.rollback(self._automatic.strategy, self._automatic.prefer)

    async def _followed(self, now: float) -> None:
        automatic, told = self._automatic, self.told
        if told.changed_at is not None and now < told.changed_at + automatic.period_seconds:
            return
        for path in self._new_proposals():
            told.proposal = path.name
            told.passed_over.add(path.name)
            found = msgspec.json.decode(path.read_bytes(), type=Proposed)
            if (reason := self._unfit(found)) is not None:
                told.verdict = f"passed over: {reason}"
                continue
            options = Options(prefer=automatic.prefer)
            done = await self.apply(Wanted(from_json(bytes(found.index)), automatic.strategy, options))
            told.verdict = f"led back: {done.reason}" if done.reason else "taken"
            log.info("%s: %s", path.name, told.verdict)
            return

    def _unfit(self, found: Proposed) -> str | None:
        current = self._controller.state.settings.index.epoch
        if found.epoch != current + 1:
            return f"it is of epoch {found.epoch}, and the index in force of {current}"
        if found.proposed_rate > found.current_rate * (1 - self._automatic.margin):
            return f"a rate of {found.proposed_rate:.3f} is not lower than {found.current_rate:.3f} by the margin"
        return None

    def _new_proposals(self) -> Iterator[Path]:
        folder = self._automatic.proposals
        if folder is None or not folder.is_dir():
            return
        for path in sorted(folder.glob("*.json"), reverse=True):  # named after their window: the latest first
            if not path.name.endswith(".index.json") and path.name not in self.told.passed_over:
                yield path


def ended(found: Ended) -> dict[str, Any]:
    """What a change came to, for people and machines."""
    index = found.prepared.new.settings.index
    return {
        "strategy": found.prepared.plan.strategy,
        "epoch": index.epoch,
        "done": not found.reason,
        "reason": found.reason,
        "seconds": round(found.seconds, 4),
        "rounds": len(found.prepared.plan.rounds),
    }


def _rates(before: Seen, after: Seen) -> str:
    rates = (f"{seen.rate:.3f}" if seen.rate is not None else "unknown" for seen in (before, after))
    return " to ".join(rates)
