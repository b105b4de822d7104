"""`plerion topology`: look at a network."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from plerion.cli.output import complain, print_facts, print_json
from plerion.topology.read import read_topology


def topology(
    source: Annotated[
        str, typer.Argument(help="A file, or a name such as fat-tree:4, ring:20, torus:4x4, line:3.")
    ],
    json: Annotated[bool, typer.Option("--json", help="Print it in Plerion's own JSON format.")] = False,
    dot: Annotated[bool, typer.Option("--dot", help="Print it for Graphviz.")] = False,
) -> None:
    """Show a network, or convert it.

    plerion topology fat-tree:4x2 --dot | dot -Tsvg > network.svg
    """
    reading = read_topology(source)
    network = reading.topology
    for warning in reading.warnings:
        complain(f"warning: {warning}")
    if json:
        print_json(network.to_json())
    elif dot:
        sys.stdout.write(network.to_dot(reading.labels))
    else:
        parts = [len(part) for part in network.components()]
        facts = {"switches": len(network.switches), "hosts": len(network.hosts), "links": len(network.links)}
        print_facts(
            source, {**facts, "connected parts": len(parts), "switches in the largest": max(parts, default=0)}
        )


command = topology
