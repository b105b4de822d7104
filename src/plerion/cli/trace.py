"""`plerion trace`: one event through the network, and why it went where it went."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from plerion.cli.options import (
    BUDGET,
    MAX_TREES,
    AdvertisementsFile,
    Budget,
    Down,
    IndexFile,
    Json,
    MaxTrees,
    SampleFile,
    SubscriptionsFile,
    Tcam,
    TopologySource,
    address_plan,
    deployment,
)
from plerion.cli.output import print_json
from plerion.content.errors import InputError, suggestion
from plerion.content.event import Event, point
from plerion.content.schema import Number, Schema
from plerion.controller.explain import Explanation, explain
from plerion.topology.graph import HostId


def trace(
    topology: TopologySource,
    index: IndexFile,
    subscriptions: SubscriptionsFile,
    publisher: Annotated[str, typer.Option("--publisher", help="The host that sends the event.")],
    event: Annotated[
        str, typer.Option("--event", help="The event: temperature=31,room=attic, or a JSON object.")
    ],
    advertisements: AdvertisementsFile = None,
    budget: Budget = BUDGET,
    max_trees: MaxTrees = MAX_TREES,
    tcam: Tcam = None,
    sample: SampleFile = None,
    down: Down = None,
    json: Json = False,
) -> None:
    """Follow one event: the entry that matched at each switch, the subscriptions behind it, and why not.

    plerion trace --topology fat-tree:4x2 --index index.json --subscriptions subscriptions.csv \\
        --publisher h1 --event temperature=31,humidity=12
    """
    found = deployment(topology, index, subscriptions, advertisements, budget, max_trees, tcam, sample, down)
    hosts = found.state.settings.topology.hosts
    if publisher not in hosts:
        raise InputError(
            f"--publisher {publisher!r} is no host of the topology", suggestion(publisher, hosts)
        )
    schema = found.state.settings.index.schema
    told = explain(found, point(schema, _event(schema, event)), HostId(publisher))
    plan = address_plan(found.state.settings.index, ipv4=False)
    if json:
        print_json(told.to_json(plan))
    else:
        typer.echo(_story(told))


def _event(schema: Schema, text: str) -> Event:
    if text.lstrip().startswith("{"):
        try:
            return msgspec.json.decode(text, type=dict[str, float | str | None])
        except msgspec.MsgspecError as error:
            raise InputError(f"--event is not a JSON object of values: {error}") from None
    values: dict[str, Any] = {}
    for word in text.split(",") if text.strip() else ():
        name, separator, value = word.partition("=")
        attribute = schema.attributes[schema.position(name.strip())]
        if not separator:
            raise InputError(f"--event has {word!r}", "write attribute=value, separated by commas")
        values[name.strip()] = _value(value.strip(), isinstance(attribute, Number))
    return values


def _value(text: str, number: bool) -> float | str | None:
    if not text:
        return None
    try:
        return float(text) if number else text
    except ValueError:
        raise InputError(f"--event has {text!r} where a number belongs") from None


def _story(told: Explanation) -> str:
    lines = [] if told.unsent is None else [f"{told.publisher} sends nothing: {told.unsent}"]
    for journey in told.journeys:
        lines.append(f"event {journey.code} from {told.publisher}")
        for hop in journey.hops:
            entry = (
                f"entry {str(hop.entry.dz) or 'ε'} (priority {hop.entry.priority})"
                if hop.entry
                else "no entry"
            )
            went = ", ".join(f"{port} → {peer}" for port, peer in hop.went) or "nowhere: dropped"
            lines.append(f"  {hop.switch} in {hop.in_port}: {entry}, out {went}")
            lines += [f"      for {name} at {host}" for name, host in hop.subscriptions]
    lines += [
        f"  {host} received it {'and asked for it' if wanted else '(false positive)'}"
        for host, wanted in told.received
    ]
    lines += [f"  {name} at {host} matches but did not receive it: {why}" for name, host, why in told.missing]
    return "\n".join(lines)


command = trace
