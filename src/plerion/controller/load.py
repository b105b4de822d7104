"""A journal's state at once: what stepping through its inputs would give, in a tenth of the time.

A state is a function of what is live (see `state`), so inputs that were withdrawn again need no step at all, and the
subscriptions that are left go into the tables together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from plerion.controller.inputs import Advertise, Input, Subscribe, Unadvertise, Unsubscribe
from plerion.controller.state import Settings, State, host, initial
from plerion.controller.step import Refusal, regions, step
from plerion.flow.admission import admissions
from plerion.flow.fit import TreesDoNotFit
from plerion.index.cover import Covers, Floats, advertised, covers
from plerion.routing.interest import Advertisement, AdvertisementId
from plerion.topology.graph import HostId

Known = Callable[[str], Floats | None]
"""The boxes of a filter text, where they were kept."""


@dataclass(slots=True)
class Live:
    """What is left of a list of inputs: the last word on each interest, and every failure and return."""

    advertisements: dict[str, Advertise] = field(default_factory=dict)
    subscriptions: dict[str, Subscribe] = field(default_factory=dict)
    failures: list[Input] = field(default_factory=list)
    count: int = 0  # inputs that were read

    def take(self, received: Input) -> None:
        self.count += 1
        match received:
            case Subscribe():
                self.subscriptions.setdefault(received.id, received)
            case Unsubscribe():
                self.subscriptions.pop(received.id, None)
            case Advertise():
                self.advertisements.setdefault(received.id, received)
            case Unadvertise():
                self.advertisements.pop(received.id, None)
            case _:
                self.failures.append(received)


def live(accepted: Iterable[Input]) -> Live:
    """What is left of inputs that were all accepted once."""
    found = Live()
    for received in accepted:
        found.take(received)
    return found


def loaded(settings: Settings, left: Live, known: Known = lambda _: None) -> tuple[State, Mapping[str, str]]:
    """The state, and interests that this release does not understand any more, by id with the reason."""
    state = initial(settings)
    for failure in left.failures:
        state, _ = step(state, failure)
    lost: dict[str, str] = {}
    for advertisement in left.advertisements.values():
        try:
            _announce(state, advertisement, _regions(state, advertisement, known))
        except Refusal as refusal:
            lost[advertisement.id] = str(refusal)
    state.reroute()  # before the subscriptions: a diff of empty tables costs nothing
    asked, boxes = [], []
    for subscription in left.subscriptions.values():
        try:
            boxes.append(_regions(state, subscription, known))
            asked.append(subscription)
        except Refusal as refusal:
            lost[subscription.id] = str(refusal)
    _subscribe_all(state, asked, boxes)
    state.admitted = admissions(state.surviving, state.sent())
    return state, lost


def _announce(state: State, given: Advertise, sent: Floats) -> None:
    name = _host(state, given)
    cells = advertised(state.settings.index, sent, state.settings.budget)
    state.advertisements[given.id] = given
    state.announced[given.id] = Advertisement(AdvertisementId(given.id), name, cells)


def _subscribe_all(state: State, asked: Sequence[Subscribe], boxes: Sequence[Floats]) -> None:
    if not asked:
        return
    offsets = np.cumsum([0, *map(len, boxes)]).astype(np.int64)
    found: Covers = covers(state.settings.index, offsets, np.concatenate(boxes), state.settings.budget)
    for row, subscription in enumerate(asked):
        state.subscriptions[subscription.id], state.covers[subscription.id] = subscription, found[row]
    try:
        state.table.load(found, [HostId(subscription.host) for subscription in asked])
    except TreesDoNotFit:
        state.reroute()


def _regions(state: State, given: Advertise | Subscribe, known: Known) -> Floats:
    _host(state, given)
    kept = known(given.filter) if isinstance(given.filter, str) else None
    return regions(state, given.filter) if kept is None else kept


def _host(state: State, given: Advertise | Subscribe) -> HostId:
    found = host(state, given.host)
    if found is None:
        raise Refusal(f"there is no host {given.host!r} in this network")
    return found
