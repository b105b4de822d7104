"""The controller's one rule: a state and an input give a state and effects. No clock, no I/O, no chance.

An input that cannot be is refused and changes nothing; one that says what already holds is accepted and changes
nothing, so a client that heard no answer may ask again. Otherwise the effects say what the switches must be told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, singledispatch

import numpy as np

from plerion.content.box import MAX_BOXES, bounds, boxes
from plerion.content.parse import parse
from plerion.content.schema import Schema
from plerion.controller.inputs import (
    Advertise,
    Boxes,
    Input,
    LinkDown,
    LinkUp,
    Subscribe,
    SwitchDown,
    SwitchUp,
    Unadvertise,
    Unsubscribe,
)
from plerion.controller.state import State, host
from plerion.flow.admission import AdmissionChange, admission_change, admissions
from plerion.flow.diff import Diff, coalesced, no_change
from plerion.flow.fit import TreesDoNotFit
from plerion.index.cover import Floats, advertised, covers
from plerion.routing.interest import Advertisement, AdvertisementId
from plerion.topology.graph import HostId, Port, SwitchId


@dataclass(frozen=True, slots=True, eq=False)
class Install:
    """The switches must be brought to this; *ready* is said when they confirm it."""

    change: Diff


@dataclass(frozen=True, slots=True)
class Refuse:
    """The input was not taken; `reason` says what would be."""

    reason: str


@dataclass(frozen=True, slots=True)
class Admit:
    """The edge of the network must be brought to this, after what is installed, so that no event meets half a path."""

    change: AdmissionChange


Effect = Install | Admit | Refuse


class Refusal(ValueError):  # noqa: N818 - an answer, not a mistake
    """Why an input cannot be."""


def step(state: State, received: Input) -> tuple[State, tuple[Effect, ...]]:
    """What follows from an input. The given state is consumed; use the one returned."""
    try:
        change = _take(received, state)
    except Refusal as refusal:
        return state, (Refuse(str(refusal)),)
    effects: tuple[Effect, ...] = (Install(change),) if len(change) else ()
    if not isinstance(received, Subscribe | Unsubscribe) and (edge := _readmitted(state)):
        effects += (Admit(edge),)
    return state, effects


def _readmitted(state: State) -> AdmissionChange:
    """What the edge must learn of the advertisements and of what survives."""
    admitted = admissions(state.surviving, state.sent())
    change, state.admitted = admission_change(state.admitted, admitted), admitted
    return change


@singledispatch
def _take(received: Input, state: State) -> Diff:  # noqa: ARG001 - the state is for those registered below
    raise Refusal(f"nothing is known of {type(received).__name__}")


@_take.register
def _(received: Subscribe, state: State) -> Diff:
    known = state.subscriptions.get(received.id)
    if known is not None:
        return _same(known, received, state)
    name = _host(state, received.host)
    wanted = regions(state, received.filter)
    try:
        cells = covers(state.settings.index, np.array([0, len(wanted)]), wanted, state.settings.budget).dz
    except ValueError as error:
        raise Refusal(str(error)) from None
    state.subscriptions[received.id], state.covers[received.id] = received, cells
    return _settled(state, lambda: state.table.subscribe(cells, name))


@_take.register
def _(received: Unsubscribe, state: State) -> Diff:
    known = state.subscriptions.pop(received.id, None)
    if known is None:
        raise Refusal(f"there is no subscription {received.id!r}")
    cells = state.covers.pop(received.id)
    return _settled(state, lambda: state.table.unsubscribe(cells, HostId(known.host)))


@_take.register
def _(received: Advertise, state: State) -> Diff:
    known = state.advertisements.get(received.id)
    if known is not None:
        return _same(known, received, state)
    name = _host(state, received.host)
    sent = advertised(state.settings.index, regions(state, received.filter), state.settings.budget)
    announced = Advertisement(AdvertisementId(received.id), name, sent)
    state.advertisements[received.id], state.announced[received.id] = received, announced
    if state.merged:
        return state.reroute()
    grown = state.forest.with_advertisement(state.surviving, announced)
    return _settled(state, lambda: state.route(grown))


@_take.register
def _(received: Unadvertise, state: State) -> Diff:
    if state.advertisements.pop(received.id, None) is None:
        raise Refusal(f"there is no advertisement {received.id!r}")
    del state.announced[received.id]
    return state.reroute()


@_take.register
def _(received: LinkDown, state: State) -> Diff:
    link = _link(state, received.port)
    if link in state.dead_links:
        return no_change(state.fabric)
    state.dead_links[link] = None
    return state.survey()


@_take.register
def _(received: LinkUp, state: State) -> Diff:
    link = _link(state, received.port)
    if link not in state.dead_links:
        return no_change(state.fabric)
    del state.dead_links[link]
    return state.survey()


@_take.register
def _(received: SwitchDown, state: State) -> Diff:
    switch = _switch(state, received.switch)
    if switch in state.dead_switches:
        return no_change(state.fabric)
    state.dead_switches[switch] = None
    return state.survey()


@_take.register
def _(received: SwitchUp, state: State) -> Diff:
    switch = _switch(state, received.switch)
    if switch not in state.dead_switches:
        return no_change(state.fabric)
    del state.dead_switches[switch]
    return state.survey()


def _settled(state: State, change: Callable[[], Diff]) -> Diff:
    """A change, and if tables then need fewer trees, or might need no fewer any more, the trees anew."""
    try:
        first = change()
    except TreesDoNotFit:
        return state.reroute()
    return coalesced([first, state.reroute()]) if state.merged else first


def _same(known: Input, received: Advertise | Subscribe, state: State) -> Diff:
    if known != received:
        raise Refusal(f"the id {received.id!r} is taken by another one; withdraw that first or choose an id")
    return no_change(state.fabric)


def _host(state: State, name: str) -> HostId:
    found = host(state, name)
    if found is None:
        raise Refusal(f"there is no host {name!r} in this network")
    return found


def _switch(state: State, name: str) -> SwitchId:
    if name not in state.fabric.switch_number:
        raise Refusal(f"there is no switch {name!r} in this network")
    return SwitchId(name)


def _link(state: State, text: str) -> Port:
    """The link by the lesser of its two ends, so that either names it."""
    try:
        port = Port.parse(text)
        peer = state.settings.topology.peer(port.node, port.number)
    except ValueError as error:
        raise Refusal(str(error)) from None
    if peer is None:
        raise Refusal(f"there is no link at {text!r}")
    return min(port, peer)


def regions(state: State, filter_or_boxes: str | Boxes) -> Floats:
    """The boxes of a filter, from its text or written out, as (boxes, attributes, 2)."""
    schema = state.settings.index.schema
    try:
        if isinstance(filter_or_boxes, str):
            return text_regions(filter_or_boxes, schema)
        return _checked(np.array(filter_or_boxes, np.float64), schema)
    except ValueError as error:
        raise Refusal(str(error)) from None


@lru_cache(maxsize=512)
def text_regions(text: str, schema: Schema) -> Floats:
    """The boxes of a filter text. Those of a round's texts are kept, because its journal entry needs them again."""
    found = bounds(boxes(parse(text, schema)), schema)
    found.flags.writeable = False
    return found


def _checked(given: Floats, schema: Schema) -> Floats:
    width = len(schema.attributes)
    if given.size == 0:
        return np.empty((0, width, 2))
    if given.shape[1:] != (width, 2) or np.isnan(given).any() or (given[:, :, 0] >= given[:, :, 1]).any():
        raise Refusal(f"each box needs {width} pairs low < high, one an attribute of the schema")
    if len(given) > MAX_BOXES:
        raise Refusal(f"{len(given)} boxes: a filter has at most {MAX_BOXES}")
    if len(given) == 1:
        return given
    low, high = given[:, None, :, 0], given[:, None, :, 1]
    apart = ((low >= high.transpose(1, 0, 2)) | (high <= low.transpose(1, 0, 2))).any(axis=2)
    if not (apart | np.eye(len(given), dtype=np.bool_)).all():
        raise Refusal("two boxes overlap: write them as disjoint ones, or as a filter text")
    return given
