"""Where things are measured on real switches: a lab of its own or one that is named, and the switches' controller.

The network is the papers' testbed, a fat tree of ten switches and eight hosts. A lab of one's own goes with the
measurement. One that is named stays, and what was written into its switches is taken out again.
"""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Final

from plerion.flow.admission import Admission, AdmissionChange, admission_change
from plerion.flow.diff import diff
from plerion.flow.entry import Tables, no_tables
from plerion.lab import Lab, LabError, Plan
from plerion.lab.build import check
from plerion.lab.place import Place
from plerion.southbound.openflow.driver import OpenFlowSouthbound
from plerion.topology.generate import fat_tree
from plerion.topology.graph import HostId, Topology

TESTBED: Final = fat_tree(4, 2)
CONNECT_SECONDS: Final = 60.0

_numbers = count(1)


def obstacle(topology: Topology = TESTBED) -> LabError | None:
    """Why no lab can be built here, if there is a reason."""
    place = Place(f"measured{os.getpid()}")
    try:
        check(Plan(topology, place.name), place)
    except LabError as error:
        return error
    return None


def free_port() -> int:
    """A port of loopback that nobody has now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def laboratory(name: str | None = None, topology: Topology = TESTBED) -> AsyncIterator[Lab]:
    """The lab of this name, or one of its own whose switches look for a controller at a free port."""
    if name is not None:
        yield Lab.find(name)
        return
    own = f"measured{os.getpid()}-{next(_numbers)}"
    lab = await Lab.up(topology, own, f"tcp:127.0.0.1:{free_port()}")
    try:
        yield lab
    finally:
        await lab.down()


def controller_port(lab: Lab) -> int:
    """Where the switches of a lab look for their controller; raises `LabError` when we cannot listen there."""
    target = lab.plan.options.controller or "none"
    kind, host, port = (*target.split(":"), "", "")[:3]
    if kind != "tcp" or host != "127.0.0.1" or not port.isdigit():
        fix = "build it with --controller tcp:127.0.0.1:6653"
        raise LabError(f"the switches of lab {lab.name} look for their controller at {target}", fix)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, int(port)))
        except OSError:
            fix = "stop it, or let the measurement build a lab of its own"
            raise LabError(f"lab {lab.name} has a controller at port {port}", fix) from None
    return int(port)


@asynccontextmanager
async def switches(lab: Lab) -> AsyncIterator[OpenFlowSouthbound]:
    """All switches of a lab, connected; at the end they hold nothing of ours but their furniture."""
    async with OpenFlowSouthbound(lab.topology).listening(port=controller_port(lab)) as southbound:
        await southbound.until_connected(timeout=CONNECT_SECONDS)
        try:
            yield southbound
        finally:
            with suppress(LabError):  # of a switch that is lost, which is told of where it matters
                await put(southbound, no_tables(southbound.fabric), frozenset())


async def put(southbound: OpenFlowSouthbound, tables: Tables, admitted: frozenset[Admission]) -> int:
    """Brings the switches to these tables by their difference; how many changes that took."""
    change = diff(await southbound.tables(), tables)
    edge: AdmissionChange = admission_change(await southbound.admissions(), admitted)
    behind = await southbound.apply(change) | await southbound.admit(edge)
    if behind:
        raise LabError(f"lost in the middle of a measurement: {', '.join(sorted(behind))}")
    return len(change) + len(edge)


def far_apart(topology: Topology) -> tuple[HostId, HostId]:
    """The first host, and one that is as far away from it as any."""
    first = topology.hosts[0]
    return first, max(topology.hosts, key=lambda host: len(path(topology, first, host)))


def path(topology: Topology, source: HostId, target: HostId) -> list[tuple[str, int]]:
    """A shortest way: each switch on it with the port that leads on."""
    start = topology.attachment(source).node
    ways: dict[str, list[tuple[str, int]]] = {start: []}
    waiting = [start]
    for node in waiting:
        for found in topology.neighbours(node):
            here = [*ways[node], (node, found.port)]
            if found.peer == target:
                return here
            if found.peer not in ways and not topology.has_host(HostId(found.peer)):
                ways[found.peer] = here
                waiting.append(found.peer)
    raise LabError(f"nothing leads from {source} to {target}")
