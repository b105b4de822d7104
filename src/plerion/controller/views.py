"""What operators see of a service, as plain documents: states, tables and traces that only read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from math import isinf
from typing import Any

import numpy as np

from plerion.content.errors import InputError, suggestion
from plerion.content.event import point
from plerion.content.read import Interests
from plerion.controller.deploy import Deployment
from plerion.controller.explain import explain
from plerion.controller.inputs import Advertise, Subscribe
from plerion.controller.lease import Session, session_of
from plerion.controller.run import Service
from plerion.controller.state import State
from plerion.controller.step import regions
from plerion.controller.watch import differences
from plerion.flow.render import actions
from plerion.index.cover import Covers
from plerion.index.dz import Dz
from plerion.index.words import cut_keys
from plerion.southbound.openflow.events import SwitchStatistics
from plerion.topology.graph import HostId, SwitchId
from plerion.wire.control import Report


def interest(one: Subscribe | Advertise) -> dict[str, Any]:
    """An interest with its filter as text, or as boxes with null for an end that is open."""
    if isinstance(one.filter, str):
        return {"id": one.id, "host": one.host, "filter": one.filter}
    boxes = [[[None if isinf(end) else end for end in side] for side in box] for box in one.filter]
    return {"id": one.id, "host": one.host, "boxes": boxes}


def page(
    every: Iterable[Subscribe | Advertise], host: str | None, offset: int, limit: int
) -> tuple[int, list[dict[str, Any]]]:
    """How many there are, of one host if it is named, and some of them."""
    chosen = [one for one in every if host is None or one.host == host]
    return len(chosen), [interest(one) for one in chosen[offset : offset + limit]]


def topology(service: Service) -> dict[str, Any]:
    """The declared network, what is down of it, and how the learned links differ."""
    state = service.controller.state
    return {
        "topology": state.settings.topology.to_json(),
        "switches_down": list(state.dead_switches),
        "links_down": [str(port) for port in state.dead_links],
        "differences": list(differences(service.watch.comparison)),
    }


def switches(service: Service) -> list[dict[str, Any]]:
    """Each switch: whether it is there and in step, and how full its table is."""
    controller = service.controller
    state, known = controller.state, controller.switches
    sizes = zip(state.settings.topology.switches, state.table.sizes.tolist(), strict=True)
    return [
        {
            "switch": switch,
            "connected": switch in service.network.connected,
            "in_step": switch not in known.behind,
            "down": switch in state.dead_switches,
            "refusing": known.refusing.get(switch),
            "entries": size,
            "limit": state.settings.tcam.get(switch),
            "admissions": sum(admission.switch == switch for admission in state.admitted),
        }
        for switch, size in sizes
    ]


def table(service: Service, switch: SwitchId) -> list[dict[str, Any]]:
    """The entries that a switch should hold, highest priority first."""
    state = service.controller.state
    plan = state.settings.plan
    found = sorted(state.table.tables().entries(switch), key=lambda entry: (-entry.priority, entry.dz))
    network, last_hop = state.settings.topology, service.config.last_hop
    return [
        {
            "priority": entry.priority,
            "match": {plan.field: str(plan.network(entry.dz))},
            "actions": actions(network, switch, entry, last_hop),
        }
        for entry in found
    ]


def counters(found: SwitchStatistics) -> dict[str, Any]:
    """Counters of a switch; ports and tables as text, because JSON has no other keys."""
    return {
        "entries": {str(number): size for number, size in found.entries.items()},
        "packets": {purpose.name.lower(): count for purpose, count in found.packets.items()},
        "ports": [asdict(port) for port in found.ports],
        "refused": {str(port): count for port, count in found.refused.items()},
        "strangers": found.strangers,
        "unwanted": found.unwanted,
    }


def sessions(service: Service) -> list[dict[str, Any]]:
    """Each session of a host: what it asks for, and what it last said that it counted."""
    desk = service.inband.desk
    held = {kind: _by_session(every.values()) for kind, every in _interests(service.controller.state)}
    found = []
    for session in sorted(desk.leases):
        report = desk.reports.get(session, Report())
        counted = {name: getattr(report, name) for name in Report.__struct_fields__}
        sizes = {kind: count[session] for kind, count in held.items()}
        wanted = {"wanted": report.received - report.false_positives}
        found.append({"host": session.host, "session": session.name, **sizes, **counted, **wanted})
    return found


def _interests(state: State) -> list[tuple[str, Mapping[str, Subscribe | Advertise]]]:
    return [("subscriptions", state.subscriptions), ("advertisements", state.advertisements)]


def _by_session(every: Iterable[Subscribe | Advertise]) -> Counter[Session]:
    found = (session_of(one.id, one.host) for one in every)
    return Counter(session for session in found if session is not None)


def trace(service: Service, publisher: str, event: dict[str, float | str | None]) -> dict[str, Any]:
    """Where an event of this host would go and why, on the tables that the switches should hold."""
    state = service.controller.state
    if publisher not in state.fabric.host_number:
        raise InputError(
            f"there is no host {publisher!r} in this network", suggestion(publisher, state.fabric.host_number)
        )
    place = point(state.settings.index.schema, event)
    told = explain(_covering(state, place), place, HostId(publisher))
    return told.to_json(state.settings.plan)


def _covering(state: State, place: Sequence[float]) -> Deployment:
    """What is deployed, but of the subscriptions only those whose cover has the event: no other can want it."""
    every = list(state.subscriptions.values())
    covers = Covers.of([state.covers[one.id] for one in every])
    rows = {row for code in state.settings.index.codes(place) for row in _rows(covers, code)}
    asked = [every[row] for row in sorted(rows)]
    boxes = [regions(state, one.filter) for one in asked]
    offsets = np.cumsum([0, *map(len, boxes)]).astype(np.int64)
    width = len(state.settings.index.schema.attributes)
    bounds = np.concatenate([np.empty((0, width, 2)), *boxes])
    ids, hosts = tuple(one.id for one in asked), tuple(one.host for one in asked)
    found = Covers.of([state.covers[one.id] for one in asked])
    return Deployment(state, Interests(ids, hosts, offsets, bounds), found, state.table.tables())


def _rows(covers: Covers, code: Dz) -> list[int]:
    """The covers that have the code, all compared at once."""
    dz, (high, low) = covers.dz, code.key()
    count = len(dz)
    key_high, key_low = cut_keys(np.full(count, high, np.uint64), np.full(count, low, np.uint64), dz.length)
    cells = np.flatnonzero((key_high == dz.high) & (key_low == dz.low))
    return [int(row) for row in np.searchsorted(covers.offsets, cells, side="right") - 1]
