"""Options that several verbs share, and what they name, loaded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from plerion.content.errors import InputError, quoted
from plerion.content.read import Interests, read_events, read_interests
from plerion.controller.deploy import Deployment, deploy
from plerion.controller.inputs import LinkDown, SwitchDown
from plerion.controller.state import Settings
from plerion.index.address import AddressPlan
from plerion.index.codec import read_index
from plerion.index.content_index import ContentIndex
from plerion.index.cover import DEFAULT_BUDGET, MAX_BUDGET, NO_SAMPLE, sample_of
from plerion.index.encode import encode
from plerion.index.nodes import EventSample
from plerion.routing.tree import DEFAULT_MAX_TREES
from plerion.topology.graph import SwitchId, Topology
from plerion.topology.read import load

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
IndexFile = Annotated[Path, typer.Option("--index", help="Content index, as `index build` writes it.")]
EventsFile = Annotated[Path, typer.Option("--events", help="Events: CSV, .csv.gz or Parquet.")]
EventFiles = Annotated[
    list[Path] | None,
    typer.Option("--events", help="Events: CSV, .csv.gz or Parquet, file or directory; may be repeated."),
]
LogDirectory = Annotated[
    Path | None, typer.Option("--log", help="An event log, as `log import` writes it, instead of events.")
]
Master = Annotated[
    str, typer.Option("--master", help="Where Spark runs: local[*], local[2], spark://host:port, …")
]
Remote = Annotated[str | None, typer.Option("--remote", help="A Spark Connect server: sc://host:port.")]
MASTER = "local[*]"
SubscriptionsFile = Annotated[
    Path,
    typer.Option(
        "--subscriptions", help="Subscriptions: CSV or Parquet; id, host, filter or low/high columns."
    ),
]
AdvertisementsFile = Annotated[
    Path | None,
    typer.Option("--advertisements", help="Who may send what; without it every host may send everything."),
]
TopologySource = Annotated[
    str,
    typer.Option(
        "--topology", help="A file (JSON, GraphML, topohub) or a name such as fat-tree:4 or ring:20."
    ),
]
Budget = Annotated[
    int, typer.Option("--budget", min=1, max=MAX_BUDGET, help="Most dz that a cover may have.")
]
SampleFile = Annotated[
    Path | None, typer.Option("--sample", help="Events that were seen; covers then waste less on them.")
]
MaxTrees = Annotated[int, typer.Option("--max-trees", min=1, help="Trees above this number are merged.")]
Tcam = Annotated[
    list[str] | None,
    typer.Option("--tcam", help="Room of tables: a number for all switches, or s1=100; may be repeated."),
]
Down = Annotated[
    list[str] | None,
    typer.Option(
        "--down", help="What has failed: a switch (s1) or a link by a port (s1:2); may be repeated."
    ),
]
Ipv4 = Annotated[
    bool, typer.Option("--ipv4", help="Addresses from 239.128.0.0/9 (23 bits) instead of ff0e::/16.")
]
BUDGET = DEFAULT_BUDGET
MAX_TREES = DEFAULT_MAX_TREES
_ROOM = re.compile("[0-9]{1,9}")


def sample(index: ContentIndex, path: Path | None) -> EventSample:
    """The codes of the events in a file, for covers to weigh waste by."""
    return NO_SAMPLE if path is None else sample_of(encode(index, read_events(path, index.schema).points))


def limits(topology: Topology, given: list[str] | None) -> dict[SwitchId, int]:
    """`--tcam 100 --tcam s1=20`: room by switch; a later word overrides an earlier one."""
    found: dict[SwitchId, int] = {}
    for word in given or []:
        name, separator, number = word.rpartition("=")
        room = int(number) if _ROOM.fullmatch(number) else 0
        if not room or (separator and name not in topology.switches):
            fix = "write a number of 1 or more (at most nine digits), or switch=number"
            raise InputError(f"--tcam {quoted(word)} names no room", fix)
        found |= dict.fromkeys([SwitchId(name)] if separator else topology.switches, room)
    return found


def interests(path: Path, index: ContentIndex) -> Interests:
    return read_interests(path, index.schema)


def deployment(
    topology: str,
    index_file: Path,
    subscriptions: Path,
    advertisements: Path | None,
    budget: int,
    max_trees: int,
    tcam: list[str] | None,
    sample_file: Path | None,
    down: list[str] | None,
) -> Deployment:
    """Everything that `compile`, `verify` and `trace` are given, deployed."""
    network, index = load(topology), read_index(index_file)
    settings = Settings(network, index, budget, max_trees, limits(network, tcam))
    announced = None if advertisements is None else interests(advertisements, index)
    failed = [LinkDown(word) if ":" in word else SwitchDown(word) for word in down or []]
    try:
        return deploy(
            settings, interests(subscriptions, index), announced, sample(index, sample_file), failed
        )
    except InputError as error:
        names = {"subscription": subscriptions, "advertisement": advertisements}
        if error.file in names:
            error.file = str(names[error.file])
        raise


def address_plan(index: ContentIndex, ipv4: bool) -> AddressPlan:
    """The plan that an index is laid into; refuses one that has no room for its codes."""
    plan = AddressPlan("ipv4" if ipv4 else "ipv6")
    if index.bits > plan.capacity:
        raise InputError(
            f"the index has codes of {index.bits} bits, {plan.family} has room for {plan.capacity}",
            f"build it with --bits {plan.capacity}",
        )
    return plan
