"""`plerion lab`: networks of real switches and hosts on this machine."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, cast

import msgspec
import typer

from plerion.cli.options import Json
from plerion.cli.output import complain, print_facts, print_json, print_table, progress
from plerion.content.errors import InputError
from plerion.lab import Lab, Options, Plan, Tls, labs, take_down
from plerion.lab.place import VARIABLE, Place
from plerion.lab.plan import Datapath, Links
from plerion.lab.status import status as lab_status
from plerion.topology.read import load

command = typer.Typer(no_args_is_help=True)

Name = Annotated[str, typer.Option("--name", help="Which lab; several run side by side.")]
Run = Annotated[
    Path | None,
    typer.Option("--run", help=f"Where labs keep their files; else ${VARIABLE}, else /run/plerion."),
]
Source = Annotated[
    str, typer.Argument(help="A file, or a name such as fat-tree:4, ring:20, torus:4x4, line:3.")
]
Controller = Annotated[
    str, typer.Option(help="Whom the switches obey: tcp:127.0.0.1:6653, ssl:host:port, or none.")
]
Forwarding = Annotated[str, typer.Option(help="netdev: real interfaces, needs root; dummy: switches alone.")]
Cables = Annotated[str | None, typer.Option(help="Between switches: veth (usual with netdev) or patch.")]
Shape = Annotated[bool, typer.Option(help="Delay and pace packets as the topology says.")]
Limit = Annotated[int | None, typer.Option(min=1, help="The most entries that a switch takes.")]
Files = Annotated[
    tuple[Path, Path, Path] | None,
    typer.Option(help="Key, certificate and authority, for a controller at ssl:."),
]
NAME, CONTROLLER = "demo", "tcp:127.0.0.1:6653"


@command.command()
def up(
    topology: Source,
    name: Name = NAME,
    controller: Controller = CONTROLLER,
    datapath: Forwarding = "netdev",
    links: Cables = None,
    shape: Shape = False,
    table_limit: Limit = None,
    tls: Files = None,
    run: Run = None,
    json: Json = False,
) -> None:
    """Build a topology from Open vSwitch, with a network namespace for each host.

    plerion lab up fat-tree:4x2 --name demo
    """
    network, began = load(topology), perf_counter()
    chosen = Options(
        None if controller == "none" else controller,
        cast(Datapath, datapath),
        cast(Links | None, links),
        None if tls is None else Tls(*(file.absolute() for file in tls)),
        shape,
        table_limit,
    )
    with progress(f"building lab {name}"):
        lab = asyncio.run(_interruptible(Lab.build(Plan(network, name, chosen), run)))
    sizes = {"switches": len(network.switches), "hosts": len(network.hosts), "links": len(network.links)}
    facts = {"name": name, **sizes, "directory": str(lab.place.path), "seconds": perf_counter() - began}
    print_json(facts) if json else print_facts(f"lab {name} is up", facts)


@command.command()
def status(
    name: Annotated[str | None, typer.Option("--name", help="Only this lab.")] = None,
    run: Run = None,
    json: Json = False,
) -> None:
    """Say which labs there are and what is broken in them; exit 1 if anything is.

    plerion lab status --json
    """
    found = labs(run) if name is None else (lab_status(Place(name, run)),)
    if json:
        print_json({"labs": [msgspec.to_builtins(one) for one in found]})
    else:
        columns = ("lab", "datapath", "links", "switches", "connected", "hosts", "works")
        rows = [
            (one.name, one.datapath, one.links, one.switches, one.connected, one.hosts, not one.faults)
            for one in found
        ]
        print_table("labs" if found else "there are no labs", columns if found else (), rows)
        for one in found:
            for fault in one.faults:
                complain(f"{one.name}: {fault}")
    if any(one.faults for one in found):
        raise typer.Exit(1)


@command.command()
def down(
    name: Name = NAME,
    all: Annotated[bool, typer.Option("--all", help="Every lab of this machine.")] = False,
    run: Run = None,
    json: Json = False,
) -> None:
    """Take a lab down whole, with the programs in its hosts, whatever state it is in.

    plerion lab down --name demo
    """
    names = [one.name for one in labs(run)] if all else [name]
    removed = {each: take_down(Place(each, run)) for each in names}
    if json:
        print_json({"removed": {each: msgspec.to_builtins(found) for each, found in removed.items()}})
        return
    for each, found in removed.items():
        print(f"lab {each} is down: {found} removed" if found else f"there is no lab {each}")


@command.command("exec", context_settings={"ignore_unknown_options": True})
def execute(
    host: Annotated[str, typer.Argument(help="A host of the lab, such as h1.")],
    words: Annotated[list[str], typer.Argument(help="The program and its words, after --.")],
    name: Name = NAME,
    run: Run = None,
) -> None:
    """Run a program in a host; the exit code is the program's.

    plerion lab exec h1 -- ip -6 address
    """
    line = Lab.find(name, run).command(host, words)
    try:
        os.execvp(line[0], line)
    except FileNotFoundError:
        raise InputError("there is no program ip", "install iproute2") from None


async def _interruptible(building: Coroutine[Any, Any, Lab]) -> Lab:
    """What is built; who is told to end meanwhile takes down what there is."""
    task = asyncio.ensure_future(building)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
