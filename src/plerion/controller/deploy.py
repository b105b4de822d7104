"""A whole deployment at once: what stepping through all its inputs would give, without the steps between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plerion.content.errors import InputError, suggestion
from plerion.content.read import Interests
from plerion.controller.inputs import LinkDown, SwitchDown
from plerion.controller.state import Settings, State, initial
from plerion.controller.step import Refuse, step
from plerion.flow.entry import Tables
from plerion.flow.fit import TreesDoNotFit
from plerion.flow.verify import Proof, verify
from plerion.index.cover import NO_SAMPLE, Covers, advertised, covers
from plerion.index.dzset import EVERYTHING
from plerion.index.nodes import EventSample
from plerion.routing.interest import Advertisement, AdvertisementId
from plerion.topology.graph import HostId


@dataclass(frozen=True, slots=True, eq=False)
class Deployment:
    """Subscriptions and advertisements on a network, and the tables that follow."""

    state: State
    subscriptions: Interests
    covers: Covers
    tables: Tables

    @property
    def hosts(self) -> Sequence[HostId]:
        """The host of each subscription."""
        return [HostId(host) for host in self.subscriptions.hosts]

    def proof(self) -> Proof:
        """Whether every wanted delivery happens exactly once and every table keeps to its limit."""
        state = self.state
        return verify(
            self.tables, self.covers, self.hosts, state.sent(), state.surviving, state.settings.tcam
        )


def deploy(
    settings: Settings,
    subscriptions: Interests,
    advertisements: Interests | None = None,
    sample: EventSample = NO_SAMPLE,
    failures: Iterable[LinkDown | SwitchDown] = (),
) -> Deployment:
    """Deploys everything; without advertisements every host may send every event."""
    state = initial(settings)
    for failure in failures:
        state, effects = step(state, failure)
        for refused in effects:
            if isinstance(refused, Refuse):
                raise InputError(refused.reason)
    _check_hosts(state, "subscription", subscriptions)
    for announced in _announcements(state, advertisements, sample):
        state.announced[announced.id] = announced
    found = covers(settings.index, subscriptions.offsets, subscriptions.bounds, settings.budget, sample)
    state.reroute()  # before the subscriptions: a diff of empty tables costs nothing
    try:
        state.table.load(found, [HostId(host) for host in subscriptions.hosts])
    except TreesDoNotFit:
        state.reroute()
    return Deployment(state, subscriptions, found, state.table.tables())


def _announcements(state: State, given: Interests | None, sample: EventSample) -> list[Advertisement]:
    if given is None:
        return [Advertisement(AdvertisementId(h), h, EVERYTHING) for h in state.settings.topology.hosts]
    _check_hosts(state, "advertisement", given)
    index, budget = state.settings.index, state.settings.budget
    return [
        Advertisement(
            AdvertisementId(name),
            HostId(host),
            advertised(index, given.bounds[given.offsets[i] : given.offsets[i + 1]], budget, sample),
        )
        for i, (name, host) in enumerate(zip(given.ids, given.hosts, strict=True))
    ]


def _check_hosts(state: State, what: str, interests: Interests) -> None:
    known = state.fabric.host_number
    for row, host in enumerate(interests.hosts):
        if host not in known:
            what_is_wrong = (
                f"{what} {interests.ids[row]!r} is at host {host!r}, which the topology does not have"
            )
            raise InputError(what_is_wrong, suggestion(host, known), what, row)
