"""What runs of a lab, and what is broken in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from plerion.lab import build, run
from plerion.lab.place import Place, run_root
from plerion.lab.plan import Plan
from plerion.lab.residue import Residue, daemons_of, named_labs, residue
from plerion.topology.graph import Port

DAEMONS = ("ovsdb-server", "ovs-vswitchd")


@dataclass(frozen=True, slots=True)
class Status:
    """A lab as it was found; nothing in `faults` means that all of it works."""

    name: str
    directory: str
    datapath: str
    links: str
    controller: str
    switches: int
    connected: int
    hosts: int
    faults: tuple[str, ...]


def labs(root: Path | None = None) -> tuple[Status, ...]:
    """Every lab of this machine, whole or not, by name."""
    return tuple(status(Place(name, root)) for name in named_labs(run_root(root)))


def status(place: Place) -> Status:
    """How the lab is; a lab that is not there has this as its only fault."""
    found = residue(place)
    if not found:
        return _nothing(place, "there is no such lab")
    if place.busy():
        return _nothing(place, "it is being built or taken down")
    try:
        plan = build.described(place)
    except (ValueError, FileNotFoundError):
        return _nothing(place, f"it was not finished: {found}")
    return _judged(plan, place, found)


def _nothing(place: Place, fault: str) -> Status:
    return Status(place.name, str(place.path), "", "", "", 0, 0, 0, (fault,))


def _judged(plan: Plan, place: Place, found: Residue) -> Status:
    running = {program for _, program in daemons_of(place.path)}
    faults = [f"{daemon} does not run" for daemon in DAEMONS if daemon not in running]
    connected = 0
    if not faults:
        faults += _switch_faults(plan, place)
        connected = sum(map(bool, _column(place, "Controller", "is_connected")))
    faults += _missing(plan, found)
    options, topology = plan.options, plan.topology
    names = (options.datapath, options.cables, options.controller or "none")
    sizes = (len(topology.switches), connected, len(topology.hosts))
    return Status(place.name, str(place.path), *names, *sizes, tuple(faults))


def _missing(plan: Plan, found: Residue) -> Iterator[str]:
    if plan.options.datapath == "netdev":
        there = set(found.namespaces)
        for host in plan.topology.hosts:
            if plan.namespace(host) not in there:
                yield f"the namespace of {host} is missing"
    for interface in sorted(set(plan.interfaces()) - set(found.interfaces)):
        yield f"the interface {interface} is missing"


def _switch_faults(plan: Plan, place: Place) -> Iterator[str]:
    bridges = set(_column(place, "Bridge", "name"))
    states = dict(_rows(place, "Interface", "name,link_state"))
    numbers = build.ports(place)
    for switch in plan.topology.switches:
        if plan.bridge(switch) not in bridges:
            yield f"{switch} is stopped"
            continue
        for number in plan.topology.ports(switch):
            port = Port(switch, number)
            name = plan.interface(port)
            if numbers.get(name) != number:
                yield f"port {port} is missing"
            elif states[name] == "down":
                yield f"the link at {port} is down"


def _column(place: Place, table: str, column: str) -> list[Any]:
    return [value for (value,) in _rows(place, table, column)]


def _rows(place: Place, table: str, columns: str) -> list[list[Any]]:
    text = run.vsctl(place, ["--format=json", f"--columns={columns}", "list", table], wait=False)
    rows: list[list[Any]] = msgspec.json.decode(text)["data"]
    return rows
