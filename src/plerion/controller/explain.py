"""Why an event went where it went, and why not elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plerion.controller.deploy import Deployment
from plerion.flow.entry import FlowEntry
from plerion.flow.walk import Hop, ModelNetwork
from plerion.index.address import AddressPlan
from plerion.index.dz import Dz
from plerion.index.dzset import DzSet
from plerion.topology.graph import HostId, Port, SwitchId


@dataclass(frozen=True, slots=True)
class ExplainedHop:
    """A hop with where each port leads and the subscriptions for whose sake the entry sends there."""

    switch: SwitchId
    in_port: int
    entry: FlowEntry | None
    went: tuple[tuple[int, str], ...]
    subscriptions: tuple[tuple[str, HostId], ...]


@dataclass(frozen=True, slots=True)
class ExplainedJourney:
    code: Dz
    hops: tuple[ExplainedHop, ...]
    delivered: tuple[HostId, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """One event: a journey for each of its codes, who received it, and who matches but did not, with the reason.

    `unsent` says why there are no journeys, if so.
    """

    publisher: HostId
    journeys: tuple[ExplainedJourney, ...]
    received: tuple[tuple[HostId, bool], ...]
    missing: tuple[tuple[str, HostId, str], ...]
    unsent: str | None = None

    def to_json(self, plan: AddressPlan) -> dict[str, Any]:
        return {
            "publisher": self.publisher,
            "journeys": [_journey_json(journey, plan) for journey in self.journeys],
            "received": [{"host": host, "wanted": wanted} for host, wanted in self.received],
            "missing": [{"subscription": s, "host": h, "why": why} for s, h, why in self.missing],
            "unsent": self.unsent,
        }


def explain(deployment: Deployment, point: Sequence[float], publisher: HostId) -> Explanation:
    """Walks the event on the model network and compares with what its subscribers asked for."""
    network = ModelNetwork(deployment.tables, deployment.state.surviving)
    codes = deployment.state.settings.index.codes(point)
    admitted = deployment.state.sent().get(publisher, DzSet())
    there = publisher in network.topology.hosts
    sent = [code for code in codes if there and admitted.covers(code)]
    journeys = tuple(_journey(deployment, network, code, publisher) for code in sent)
    wanted = _wanted(deployment, np.array(point))
    got = [host for journey in journeys for host in journey.delivered]
    wanting = {deployment.subscriptions.hosts[i] for i in wanted}
    missing = tuple(
        (deployment.subscriptions.ids[i], HostId(deployment.subscriptions.hosts[i]), why)
        for i in wanted
        if (why := _why_not(deployment, codes, publisher, i, got)) is not None
    )
    received = tuple((host, host in wanting) for host in got)
    unsent = None if sent else _why_unsent(bool(codes), there)
    return Explanation(publisher, journeys, received, missing, unsent)


def _why_unsent(coded: bool, there: bool) -> str:
    if not coded:
        return "the event has no code in this index"
    return "it did not advertise such events, and its switch drops them" if there else "a failure cut it off"


def _journey(deployment: Deployment, network: ModelNetwork, code: Dz, publisher: HostId) -> ExplainedJourney:
    walked = network.walk(code, publisher)
    asking = _covering(deployment, code)
    reached: dict[
        Port, frozenset[str]
    ] = {}  # by the port where a hop came in: hosts that the event got to from there
    hops = []
    for hop in reversed(walked.hops):  # the nearest hops come first, so what lies beyond is known already
        peers = [(number, network.topology.peer(hop.switch, number)) for number in hop.out_ports]
        went = tuple((number, peer) for number, peer in peers if peer is not None)
        beyond = frozenset[str]().union(*(reached.get(peer, {peer.node}) for _, peer in went))
        reached[Port(hop.switch, hop.in_port)] = beyond
        hops.append(_hop(deployment, hop, went, beyond, asking))
    return ExplainedJourney(code, tuple(reversed(hops)), walked.delivered)


def _hop(
    deployment: Deployment,
    hop: Hop,
    went: tuple[tuple[int, Port], ...],
    beyond: frozenset[str],
    asking: Sequence[int],
) -> ExplainedHop:
    ids, hosts = deployment.subscriptions.ids, deployment.subscriptions.hosts
    behind = tuple((ids[i], HostId(hosts[i])) for i in asking if hosts[i] in beyond)
    return ExplainedHop(hop.switch, hop.in_port, hop.entry, tuple((n, peer.node) for n, peer in went), behind)


def _covering(deployment: Deployment, code: Dz) -> list[int]:
    """Subscriptions whose cover has the code."""
    dz = deployment.covers.dz
    cells = [row for row, cell in enumerate(dz) if cell.covers(code)]
    rows = np.searchsorted(deployment.covers.offsets, cells, side="right") - 1
    return sorted(set(rows.tolist()))


def _wanted(deployment: Deployment, point: np.ndarray) -> list[int]:
    """Subscriptions that match the event exactly."""
    bounds = deployment.subscriptions.bounds
    inside = ((point >= bounds[:, :, 0]) & (point < bounds[:, :, 1])).all(axis=1)
    rows = np.searchsorted(deployment.subscriptions.offsets, np.flatnonzero(inside), side="right") - 1
    return [int(row) for row in rows]


def _why_not(
    deployment: Deployment, codes: Sequence[Dz], publisher: HostId, i: int, got: Sequence[HostId]
) -> str | None:
    host = HostId(deployment.subscriptions.hosts[i])
    if host in got:
        return None
    if host == publisher:
        return "it sits at the publisher's own host, and a switch never sends an event back"
    sent = deployment.state.sent().get(publisher)
    if sent is None or not any(sent.covers(code) for code in codes):
        return f"{publisher} did not advertise such events"
    surviving = deployment.state.surviving.hosts
    if publisher not in surviving or host not in surviving:
        return f"a failure cut off {publisher if publisher not in surviving else host}"
    part = next(p for p in deployment.state.surviving.components() if _switch(deployment, publisher) in p)
    if _switch(deployment, host) not in part:
        return f"no path joins {publisher} and {host}"
    return "the tables lose it: run `plerion verify`"


def _switch(deployment: Deployment, host: HostId) -> SwitchId:
    return SwitchId(deployment.state.surviving.attachment(host).node)


def _journey_json(journey: ExplainedJourney, plan: AddressPlan) -> dict[str, Any]:
    return {
        "dz": str(journey.code),
        "address": str(plan.address(journey.code)),
        "delivered": list(journey.delivered),
        "hops": [
            {
                "switch": hop.switch,
                "in_port": hop.in_port,
                "entry": None
                if hop.entry is None
                else {"dz": str(hop.entry.dz), "priority": hop.entry.priority},
                "out": [{"port": port, "to": peer} for port, peer in hop.went],
                "subscriptions": [{"id": name, "host": host} for name, host in hop.subscriptions],
            }
            for hop in journey.hops
        ],
    }
