"""A plan becomes a lab: the steps, in order. Each blocks for a fraction of a second."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from plerion.lab import bridges, run, wires
from plerion.lab.buffers import widen
from plerion.lab.error import LabError
from plerion.lab.names import HOST_INTERFACE
from plerion.lab.place import Place
from plerion.lab.plan import Options, Plan, Tls
from plerion.lab.residue import residue
from plerion.topology.graph import HostId, Port, Topology

Step = Callable[[], object]


def check(plan: Plan, place: Place) -> None:
    """Nothing stands in the way of the lab; otherwise one line says what does."""
    if plan.options.datapath == "netdev" and os.geteuid() != 0:
        raise LabError("interfaces and namespaces need root", "run it as root, or with --datapath dummy")
    for file in plan.options.tls.files if plan.options.tls else ():
        if not file.is_file():
            raise LabError(f"there is no file {file}", "see --tls")
    run.check_version(place)
    if found := residue(place):
        fix = f"take it down first: plerion lab down --name {place.name}"
        raise LabError(f"lab {place.name} is there already ({found})", fix)


def claim(place: Place) -> None:
    """The run directory is this lab's; of two that are built at once, one is refused."""
    try:
        place.path.parent.mkdir(parents=True, exist_ok=True)
        place.path.mkdir(mode=0o700)
    except FileExistsError:
        raise LabError(f"lab {place.name} is being built by somebody else") from None


def steps(plan: Plan, place: Place) -> Iterator[Step]:
    """What builds a lab in a directory that was claimed for it."""
    yield partial(place.description.write_bytes, msgspec.json.encode(description(plan), enc_hook=str))
    yield partial(run.start_database, place)
    yield partial(run.batch, place, "namespaces", wires.namespaces(plan))
    yield partial(run.batch, place, "cables", wires.cables(plan))
    yield partial(run.without_ipv6, list(plan.interfaces()))
    yield partial(run.batch, place, "up", wires.raised(plan.interfaces()))
    if plan.options.datapath == "netdev":
        yield partial(run.each, partial(set_up_host, plan, place), plan.topology.hosts)
    if plan.options.shape:
        yield partial(shape, plan, place)
    yield partial(run.vsctl, place, bridges.network_words(plan), False)
    yield partial(run.start_switches, place, plan.options.datapath == "dummy")
    yield partial(check_ports, plan, place)
    yield partial(widen, place)


def set_up_host(plan: Plan, place: Place, host: HostId) -> None:
    """The host sends and receives as the plan says."""
    space = plan.namespace(host)
    title = f"host{plan.topology.host_number(host)}"
    run.batch(place, title, wires.host_lines(plan, host), "-6", "-n", space)
    run.in_namespace(space, partial(run.compute_checksums, HOST_INTERFACE))


def shape(plan: Plan, place: Place) -> None:
    """Links have the latency and capacity that the topology says, as far as it says any."""
    for space, lines in wires.shapes(plan).items():
        file = place.path / "shape.batch"
        file.write_text("\n".join(lines) + "\n")
        try:
            run.run(["tc", *(["-n", space] if space else []), "-batch", file], place)
        except LabError as error:
            if "unknown" not in error.what:
                raise
            delayed = any("netem" in line for line in lines)
            kind = "netem, which delays packets" if delayed else "tbf, which limits their rate"
            raise LabError(f"this kernel has no {kind}", "build the lab without --shape") from None


def check_ports(plan: Plan, place: Place) -> None:
    """Every port of the topology is there under its own number, once the switches have all that they were told."""
    run.vsctl(place, ["init"])
    found = ports(place)
    for switch in plan.topology.switches:
        for number in plan.topology.ports(switch):
            name = plan.interface(Port(switch, number))
            if found.get(name) != number:
                reason = f"Open vSwitch has {found.get(name, 'nothing')} there"
                raise LabError(f"lab {plan.name}: port {switch}:{number} was not made: {reason}")


def ports(place: Place) -> dict[str, int]:
    """The number of each port that works, by the name of its interface."""
    text = run.vsctl(place, ["--format=json", "--columns=name,ofport", "list", "Interface"], wait=False)
    rows = msgspec.json.decode(text)["data"]
    return {name: number for name, number in rows if isinstance(number, int) and number > 0}


def description(plan: Plan) -> dict[str, object]:
    """The plan as a document from which `described` makes it again."""
    return {"name": plan.name, "topology": plan.topology.to_json(), "options": plan.options}


class _Description(msgspec.Struct):
    name: str
    topology: dict[str, object]
    options: dict[str, Any]


def described(place: Place) -> Plan:
    """The plan that a lab was built from; `FileNotFoundError` where there is none."""
    try:
        found = msgspec.json.decode(place.description.read_bytes(), type=_Description)
        tls = found.options.pop("tls", None)
        files = None if tls is None else Tls(**{name: Path(file) for name, file in tls.items()})
        prefixes = tuple(found.options.pop("prefixes"))
        options = Options(**found.options, tls=files, prefixes=prefixes)
        return Plan(Topology.from_json(found.topology), found.name, options, place.names.home)
    except (msgspec.MsgspecError, TypeError, KeyError):
        fix = f"take it down: plerion lab down --name {place.name}"
        raise LabError(f"lab {place.name} was not finished", fix) from None
