"""What an input came to, with what takes it back: the pure part of a round."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec
import numpy as np

from plerion.controller.inputs import Advertise, Input, Subscribe, SwitchUp, Unadvertise, Unsubscribe
from plerion.controller.state import State
from plerion.controller.step import Admit, Install, Refuse, step
from plerion.flow.admission import Admission, AdmissionChange, admission_change
from plerion.flow.diff import Diff, diff
from plerion.flow.entry import Tables
from plerion.topology.graph import SwitchId

_NO_EDGE = AdmissionChange()


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Accepted when `reason` is None; `undo` is the input that leads back, None where nothing changed or can."""

    received: Input
    reason: str | None = None
    undo: Input | None = None
    change: Diff | None = None
    edge: AdmissionChange = _NO_EDGE

    @property
    def worth_keeping(self) -> bool:
        """Whether a journal needs it: it was accepted, and said more than what held already."""
        return self.reason is None and (self.undo is not None or not is_interest(self.received))

    @property
    def touched(self) -> frozenset[SwitchId]:
        """Switches that are told something because of it."""
        edge = {admission.switch for part in (self.edge.added, self.edge.removed) for admission in part}
        if self.change is None:
            return frozenset(edge)
        names = self.change.fabric.topology.switches
        return frozenset(edge | {names[x] for x in np.unique(self.change.switch).tolist()})


def taken(state: State, received: Input) -> tuple[State, Outcome]:
    """One step, and what came of it. An input that no journal could keep is refused before anything follows from it."""
    if (unfit := _unfit(received)) is not None:
        return state, Outcome(received, unfit)
    undo = _undo(state, received)
    state, effects = step(state, received)
    reason, change, edge = None, None, _NO_EDGE
    for effect in effects:
        match effect:
            case Refuse():
                reason = effect.reason
            case Install():
                change = effect.change
            case Admit():
                edge = effect.change
    return state, Outcome(received, reason, undo if reason is None else None, change, edge)


def is_interest(received: Input) -> bool:
    """Whether somebody asked for it, so that it can be refused; failures and returns are facts."""
    return isinstance(received, Subscribe | Advertise | Unsubscribe | Unadvertise)


def came_up(outcomes: Iterable[Outcome]) -> frozenset[SwitchId]:
    """The switches that are there again because of these."""
    ups = (outcome.received for outcome in outcomes if outcome.reason is None)
    return frozenset(SwitchId(up.switch) for up in ups if isinstance(up, SwitchUp))


def _undo(state: State, received: Input) -> Input | None:
    match received:
        case Subscribe(id=name) if name not in state.subscriptions:
            return Unsubscribe(name)
        case Advertise(id=name) if name not in state.advertisements:
            return Unadvertise(name)
        case Unsubscribe(id=name):
            return state.subscriptions.get(name)
        case Unadvertise(id=name):
            return state.advertisements.get(name)
    return None


def _unfit(received: Input) -> str | None:
    try:
        msgspec.msgpack.encode(received)
    except (ValueError, TypeError, OverflowError, msgspec.MsgspecError) as error:
        return f"this cannot be written down: {error}"
    return None


def missing(found: Tables, wanted: Tables, switches: Iterable[SwitchId]) -> Diff:
    """What leads from the tables that some switches were found with to those that they should have."""
    kept = np.zeros(wanted.fabric.switches, np.bool_)
    kept[[wanted.fabric.switch_number[switch] for switch in switches]] = True
    return diff(_only(found, kept), _only(wanted, kept))


def missing_admissions(
    found: frozenset[Admission], wanted: frozenset[Admission], switches: frozenset[SwitchId]
) -> AdmissionChange:
    """The same for what their edge lets in."""
    here, there = (frozenset(a for a in part if a.switch in switches) for part in (found, wanted))
    return admission_change(here, there)


def _only(tables: Tables, kept: np.ndarray) -> Tables:
    sizes = np.diff(tables.first)
    rows = np.repeat(kept, sizes)
    first = np.concatenate(([0], np.cumsum(np.where(kept, sizes, 0))))
    return Tables(tables.fabric, first, tables.dz[rows], tables.ports[rows])
