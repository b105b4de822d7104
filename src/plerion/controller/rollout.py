"""A rollout: the machine of `update.machine` with switches, publishers, a clock and a journal around it.

The machine says what is to be done, this does it and tells the machine what came of it. Three things happen here that a
plan does not speak of:

- A switch that comes back in the middle may have lost everything. It is brought, in one piece, to what it should hold
  at this point of the plan, before the machine hears of it.
- A switch that is taken for down is not waited for. It is brought up to date when it returns, as after any change.
- A publisher whose sessions gave no sign of life is shut out at its port before the machine goes on without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine
from logging import getLogger
from typing import Any, Protocol

import numpy as np

from plerion.southbound.protocol import EntriesRefused, Updatable
from plerion.topology.graph import HostId, SwitchId
from plerion.update.entries import Changes, Entries, Table, removed
from plerion.update.machine import (
    Acknowledged,
    BarrierIn,
    Began,
    Cut,
    Drain,
    Drained,
    Finish,
    Heard,
    LeaseOver,
    Lost,
    Notify,
    Orders,
    Refused,
    Returned,
    Run,
    Stopped,
    Tell,
    holding,
    step,
)
from plerion.update.plan import Sending

log = getLogger(__name__)


class Publishers(Protocol):
    """Who sends, as a rollout needs them."""

    def announce(self, sending: Sending) -> None:
        """From now on this is how everybody is told to send."""
        ...

    async def adopted(self, host: HostId) -> bool:
        """True when the host's publishers do as announced; False when they were silent for as long as their lease."""
        ...


class Rollout:
    """One run of one plan, from its first orders to its end."""

    def __init__(
        self,
        run: Run,
        southbound: Updatable,
        publishers: Publishers,
        note: Callable[[Began], None],
        absent: Collection[SwitchId] = (),
    ) -> None:
        self.run = run
        self.cut: set[HostId] = set()
        self.refusal: EntriesRefused | None = None
        self._southbound, self._publishers, self._note = southbound, publishers, note
        self._away = set(absent)  # nobody can talk to them now
        self._down: set[SwitchId] = set()  # and nobody waits for them
        self._heard: asyncio.Queue[Heard] = asyncio.Queue()
        self._turn = asyncio.Lock()  # what switches are told, they are told in this order
        self._tasks: set[asyncio.Task[None]] = set()

    async def finished(self, orders: Orders) -> Finish:
        """Carries out the orders and all that follow from them, to the end in one of the two states."""
        try:
            while True:
                finish = self._give(orders)
                if finish is not None:
                    return finish
                self.run, orders = step(self.run, await self._next())
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def stop(self) -> None:
        """Leads back, if there is a way back still."""
        self._heard.put_nowait(Stopped())

    def lost(self, switch: SwitchId) -> None:
        """Nobody can talk to the switch now."""
        self._away.add(switch)
        self._heard.put_nowait(Lost(switch))

    def returned(self, switch: SwitchId) -> None:
        """The switch can be told again."""
        self._start(self._bring(switch))

    def down(self, switch: SwitchId) -> None:
        """The switch is taken for down: it is not waited for."""
        self._down.add(switch)
        self._heard.put_nowait(BarrierIn(switch, self.run.token))

    async def _next(self) -> Heard:
        """What happened next; work that failed fails the rollout."""
        heard = asyncio.create_task(self._heard.get())
        try:
            while not heard.done():
                await asyncio.wait({heard, *self._tasks}, return_when=asyncio.FIRST_COMPLETED)
                for task in [task for task in self._tasks if task.done()]:
                    self._tasks.discard(task)
                    task.result()
            return heard.result()
        finally:
            heard.cancel()

    def _give(self, orders: Orders) -> Finish | None:
        told = [order for order in orders if isinstance(order, Tell)]
        finish = None
        announced = False
        for order in orders:
            match order:
                case Began():
                    log.info("%s: %s", "going back" if order.back else "rolling out", self._where())
                    self._note(order)
                case Notify(publisher, notice, token):
                    if not announced:
                        self._publishers.announce(notice.sending)
                        announced = True
                    self._start(self._waited(publisher, token))
                case Drain(seconds, token):
                    asyncio.get_running_loop().call_later(seconds, self._heard.put_nowait, Drained(token))
                case Cut(publisher):
                    log.warning(
                        "%s was silent for too long and may send nothing until it joins again", publisher
                    )
                case Finish():
                    finish = order
                case _:
                    pass
        if told:  # all of a round, or one switch again
            changes = self.run.round.changes if len(told) > 1 else told[0].changes
            self._start(self._told(changes, [order.switch for order in told], told[0].token))
        return finish

    def _where(self) -> str:
        if self.run.number >= len(self.run.rounds):
            return "done"
        return f"round {self.run.number + 1} of {len(self.run.rounds)}, {self.run.round.name}"

    async def _told(self, changes: Changes, names: list[SwitchId], token: int) -> None:
        async with self._turn:
            try:
                missed = await self._southbound.tell(changes)
            except EntriesRefused as refusal:
                self.refusal = refusal
                await self._refused(refusal, names, token)
                return
        for switch in names:
            if switch not in missed or switch in self._down:
                self._heard.put_nowait(BarrierIn(switch, token))
            elif switch not in self._away:
                self.lost(switch)

    async def _refused(self, refusal: EntriesRefused, names: list[SwitchId], token: int) -> None:
        """Back while that is possible; past that a refusal is for the comparison at the end to mend."""
        log.warning("%s", refusal)
        if self.run.can_turn:
            self._heard.put_nowait(Refused(refusal.switch))
            return
        for switch in names:
            self._heard.put_nowait(BarrierIn(switch, token))

    async def _bring(self, switch: SwitchId) -> None:
        async with self._turn:
            entries = self._kept(holding(self.run, switch))
            try:
                missed = await self._southbound.overwrite(entries, [switch])
            except EntriesRefused as refusal:
                log.error("%s; what it holds stays as it is", refusal)
                self._heard.put_nowait(Refused(switch))
                return
        if not missed:
            self._away.discard(switch)
            self._down.discard(switch)
            self._heard.put_nowait(Returned(switch))

    async def _waited(self, publisher: HostId, token: int) -> None:
        if await self._publishers.adopted(publisher):
            self._heard.put_nowait(Acknowledged(publisher, token))
            return
        async with self._turn:
            self.cut.add(publisher)
            await self._southbound.tell(removed(self._admitted(publisher)))
        self._heard.put_nowait(LeaseOver(publisher, token))

    def _admitted(self, publisher: HostId) -> Entries:
        """What the edge lets in of this host now, in either language."""
        topology = self.run.plan.old.tables.fabric.topology
        switch = SwitchId(topology.attachment(publisher).node)
        entries = holding(self.run, switch)
        return entries[~self._elsewhere(entries, [publisher])]

    def _kept(self, entries: Entries) -> Entries:
        """The entries without what lets in those who were shut out."""
        return entries[self._elsewhere(entries, self.cut)]

    @staticmethod
    def _elsewhere(entries: Entries, hosts: Collection[HostId]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which entries are none of these hosts' edge."""
        fabric = entries.fabric
        places = [fabric.topology.attachment(host) for host in hosts if fabric.topology.has_host(host)]
        kept = np.ones(len(entries), np.bool_)
        for place in places:
            at = fabric.switch_number[SwitchId(place.node)]
            kept &= ~(
                (entries.table == Table.EDGE) & (entries.switch == at) & (entries.in_port == place.number)
            )
        return kept

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.add(asyncio.create_task(work))
