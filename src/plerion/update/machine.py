"""The machine that runs a plan: signals in, orders out, no clock and no socket of its own.

It tells the switches of a round, waits for their barriers, notifies publishers, waits for their acknowledgements, lets
the network drain, and goes to the next round. Before the plan's point of no return a switch that refuses or is lost, or
somebody who says stop, turns it round: it runs the rounds that lead back. From there on it only goes forward: what a
switch did not take is told again when it is back. A publisher that does not acknowledge is shut out at the edge when
its lease is over (`Cut`), so it cannot hold up the others, nor send what nobody understands any more.

`began` is what a journal must hold before a round's orders are given; `resumed` continues from it after a crash. Orders
may be given twice: every change, notice and cut is idempotent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType

from plerion.topology.graph import HostId, SwitchId
from plerion.update.entries import Changes, Entries, applied
from plerion.update.plan import Notice, Plan, Round, undone


class Phase(Enum):
    TELLING = "telling switches"
    NOTIFYING = "notifying publishers"
    DRAINING = "draining"
    FINISHED = "finished"


class Signal(Enum):
    ALL_BARRIERS_IN = "all barriers in"
    ALL_ACKNOWLEDGED = "all acknowledged"
    DRAINED = "drained"
    TURNED = "turned round"


TRANSITIONS: Mapping[Phase, Mapping[Signal, Phase]] = MappingProxyType(
    {
        Phase.TELLING: {Signal.ALL_BARRIERS_IN: Phase.NOTIFYING, Signal.TURNED: Phase.TELLING},
        Phase.NOTIFYING: {Signal.ALL_ACKNOWLEDGED: Phase.DRAINING, Signal.TURNED: Phase.TELLING},
        # A round ends with its drain; whether another one follows is for the plan to say.
        Phase.DRAINING: {Signal.DRAINED: Phase.TELLING, Signal.TURNED: Phase.TELLING},
        Phase.FINISHED: {},
    }
)


@dataclass(frozen=True, slots=True)
class BarrierIn:
    """The switch holds all that it was told in this round."""

    switch: SwitchId
    token: int


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The publisher sends as the round's notice says, and never otherwise again."""

    publisher: HostId
    token: int


@dataclass(frozen=True, slots=True)
class LeaseOver:
    """The publisher was not heard of for as long as its lease lasts."""

    publisher: HostId
    token: int


@dataclass(frozen=True, slots=True)
class Drained:
    """The round's wait is over."""

    token: int


@dataclass(frozen=True, slots=True)
class Refused:
    """The switch did not take its part, for example because its table is full."""

    switch: SwitchId


@dataclass(frozen=True, slots=True)
class Lost:
    """Nobody can talk to the switch now."""

    switch: SwitchId


@dataclass(frozen=True, slots=True)
class Returned:
    """The switch can be told again."""

    switch: SwitchId


@dataclass(frozen=True, slots=True)
class Stopped:
    """Somebody wants the old state back."""


Heard = BarrierIn | Acknowledged | LeaseOver | Drained | Refused | Lost | Returned | Stopped


@dataclass(frozen=True, slots=True, eq=False)
class Tell:
    """Send the switch its part of the round, then a barrier."""

    switch: SwitchId
    changes: Changes
    token: int


@dataclass(frozen=True, slots=True)
class Notify:
    publisher: HostId
    notice: Notice
    token: int


@dataclass(frozen=True, slots=True)
class Cut:
    """Admit nothing more from this publisher; its next join starts afresh in the new state."""

    publisher: HostId


@dataclass(frozen=True, slots=True)
class Drain:
    """Say `Drained` after so long."""

    seconds: float
    token: int


@dataclass(frozen=True, slots=True)
class Began:
    """Write down, before anything of it is told, that this round begins, or that the way back from it does."""

    number: int
    back: bool


@dataclass(frozen=True, slots=True)
class Finish:
    """The network is in the new state, or in the old one again."""

    back: bool


Order = Tell | Notify | Cut | Drain | Began | Finish
Orders = tuple[Order, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Where a plan stands. `rounds` are the plan's own, or those that lead back."""

    plan: Plan
    rounds: tuple[Round, ...]
    number: int = 0
    phase: Phase = Phase.TELLING
    back: bool = False
    turned: int = 0  # the round that it turned round in
    switches: frozenset[SwitchId] = frozenset()  # whose barrier is not in
    publishers: frozenset[HostId] = frozenset()  # who did not acknowledge
    cut: frozenset[HostId] = frozenset()

    @property
    def round(self) -> Round:
        return self.rounds[self.number]

    @property
    def token(self) -> int:
        """Names the round, so that an answer to an earlier one is not taken for one to this."""
        return self.number + (len(self.plan.rounds) if self.back else 0)

    @property
    def can_turn(self) -> bool:
        return not self.back and self.number < self.plan.no_return and self.phase != Phase.FINISHED


def started(plan: Plan) -> tuple[Run, Orders]:
    """A plan's first orders."""
    return _round(Run(plan, plan.rounds), 0)


def resumed(plan: Plan, began: Began) -> tuple[Run, Orders]:
    """Where to go on when the last thing known is that a round began: back while there is a way back, else on."""
    # How far a way back had come does not matter: all of it is gone once more.
    if began.back or began.number < plan.no_return:
        return _turned(Run(plan, plan.rounds, began.number))
    return _round(Run(plan, plan.rounds), began.number)


def step(run: Run, heard: Heard) -> tuple[Run, Orders]:
    """What follows from a signal; one that the phase does not wait for changes nothing."""
    if isinstance(heard, Refused | Lost | Stopped) and run.can_turn:
        return _turned(run)
    if isinstance(heard, BarrierIn | Acknowledged | LeaseOver | Drained) and heard.token != run.token:
        return run, ()
    if isinstance(heard, Returned) and run.phase == Phase.TELLING and heard.switch in run.switches:
        return run, (_tell(run, heard.switch),)
    if isinstance(heard, BarrierIn) and run.phase == Phase.TELLING:
        left = replace(run, switches=run.switches - {heard.switch})
        return (left, ()) if left.switches else _go(left, Signal.ALL_BARRIERS_IN)
    if isinstance(heard, Acknowledged | LeaseOver) and run.phase == Phase.NOTIFYING:
        return _acknowledged(run, heard)
    if isinstance(heard, Drained) and run.phase == Phase.DRAINING:
        return _go(run, Signal.DRAINED)
    return run, ()


def holding(run: Run, switch: SwitchId) -> Entries:
    """What the switch may be brought to at this point of a run, whatever it missed: it was told the present round.

    On the way back the round that was turned counts as never told, because that may be what a full table refused; to
    undo it does no harm.
    """
    entries = run.plan.before()
    x = entries.fabric.switch_number[switch]
    entries = entries[entries.switch == x]
    told = (
        run.plan.rounds[: run.turned] + run.rounds[: run.number + 1]
        if run.back
        else run.rounds[: run.number + 1]
    )
    for one in told:
        entries = applied(one.changes.at(x), entries)
    return entries


def _acknowledged(run: Run, heard: Acknowledged | LeaseOver) -> tuple[Run, Orders]:
    orders: Orders = ()
    if isinstance(heard, LeaseOver) and heard.publisher in run.publishers:
        orders = (Cut(heard.publisher),)
        run = replace(run, cut=run.cut | {heard.publisher})
    left = replace(run, publishers=run.publishers - {heard.publisher})
    if left.publishers:
        return left, orders
    left, more = _go(left, Signal.ALL_ACKNOWLEDGED)
    return left, orders + more


def _turned(run: Run) -> tuple[Run, Orders]:
    """Back by the rounds that undo what began; a switch may hold its part of the last one or not."""
    phase = TRANSITIONS[run.phase][Signal.TURNED]
    rounds = undone(run.plan, run.number)
    return _round(replace(run, rounds=rounds, back=True, turned=run.number, phase=phase), 0)


def _round(run: Run, number: int) -> tuple[Run, Orders]:
    """Begins a round; one that tells nobody anything goes on by itself."""
    if number == len(run.rounds):
        return replace(run, number=number, phase=Phase.FINISHED), (Finish(run.back),)
    here = run.rounds[number]
    names = here.changes.added.fabric.topology.switches
    switches = [names[int(x)] for x in here.changes.switches()]
    begun = replace(run, number=number, phase=Phase.TELLING, switches=frozenset(switches))
    note = Began(run.turned if run.back else number, run.back)
    orders: Orders = (note, *(_tell(begun, switch) for switch in switches))
    if not run.plan.barriers and here.notice:
        orders += tuple(Notify(host, here.notice, begun.token) for host in here.notice.publishers)
    if switches:
        return begun, orders
    begun, more = _go(begun, Signal.ALL_BARRIERS_IN)
    return begun, orders + more


def _tell(run: Run, switch: SwitchId) -> Tell:
    changes = run.round.changes
    return Tell(switch, changes.at(changes.added.fabric.switch_number[switch]), run.token)


def _go(run: Run, signal: Signal) -> tuple[Run, Orders]:
    """The next phase, and the one after it where there is nothing to wait for."""
    run = replace(run, phase=TRANSITIONS[run.phase][signal])
    here = run.round
    if run.phase == Phase.NOTIFYING:
        asked = frozenset(here.notice.publishers if here.notice else ()) - run.cut
        if here.notice is None or not asked:
            return _go(run, Signal.ALL_ACKNOWLEDGED)
        return replace(run, publishers=asked), tuple(
            Notify(host, here.notice, run.token) for host in sorted(asked)
        )
    if run.phase == Phase.DRAINING:
        return (
            (run, (Drain(here.wait_seconds, run.token),)) if here.wait_seconds else _go(run, Signal.DRAINED)
        )
    return _round(run, run.number + 1)
