"""`plerion compile`: interests and a network in, flow tables out."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from plerion.cli.options import (
    BUDGET,
    MAX_TREES,
    AdvertisementsFile,
    Budget,
    Down,
    IndexFile,
    Ipv4,
    MaxTrees,
    SampleFile,
    SubscriptionsFile,
    Tcam,
    TopologySource,
    address_plan,
    deployment,
)
from plerion.cli.output import progress, writer
from plerion.content.errors import InputError
from plerion.flow.render import LastHop, documents, ofctl_lines


def compile_tables(
    topology: TopologySource,
    index: IndexFile,
    subscriptions: SubscriptionsFile,
    advertisements: AdvertisementsFile = None,
    budget: Budget = BUDGET,
    max_trees: MaxTrees = MAX_TREES,
    tcam: Tcam = None,
    sample: SampleFile = None,
    down: Down = None,
    format: Annotated[str, typer.Option(help="json, or ofctl for `ovs-ofctl add-flows`.")] = "json",
    last_hop: Annotated[
        str,
        typer.Option(help="raw: hosts read multicast; rewrite: the last switch sets the host's own address."),
    ] = "raw",
    ipv4: Ipv4 = False,
    out: Annotated[str, typer.Option(help="- is standard output.")] = "-",
) -> None:
    """Print the flow tables of every switch.

    plerion compile --topology fat-tree:4x2 --index index.json --advertisements advertisements.csv \\
        --subscriptions subscriptions.csv --format json
    """
    if format not in ("json", "ofctl"):
        raise InputError(f"--format {format!r} is unknown", "use json or ofctl")
    hop: dict[str, LastHop] = {"raw": "raw", "rewrite": "rewrite"}
    if last_hop not in hop or (ipv4 and last_hop == "rewrite"):
        raise InputError(f"--last-hop {last_hop!r} is not possible here", "use raw, or rewrite with IPv6")
    with progress("compiling"):
        found = deployment(
            topology, index, subscriptions, advertisements, budget, max_trees, tcam, sample, down
        )
        plan = address_plan(found.state.settings.index, ipv4)
    with writer(out) as file:
        if format == "ofctl":
            for line in ofctl_lines(found.tables, plan, hop[last_hop]):
                file.write(f"{line}\n".encode())
            return
        file.write(b'{"switches": {')
        for i, (switch, entries) in enumerate(documents(found.tables, plan, hop[last_hop])):
            file.write(
                (b",\n" if i else b"\n") + msgspec.json.encode(switch) + b": " + msgspec.json.encode(entries)
            )
        file.write(b"\n}}\n")


command = compile_tables
