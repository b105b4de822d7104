"""`plerion trace`: one event through the network, and why it went where it went."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
import typer

from plerion.cli.api import USUAL, Token, asked
from plerion.cli.options import (
    BUDGET,
    MAX_TREES,
    AdvertisementsFile,
    Budget,
    Down,
    Json,
    MaxTrees,
    SampleFile,
    Tcam,
    address_plan,
    deployment,
)
from plerion.cli.output import complain, print_json
from plerion.cli.real_path import disagreements, walk
from plerion.content.errors import InputError, suggestion
from plerion.content.event import Event, point
from plerion.content.schema import Number, Schema
from plerion.controller.deploy import Deployment
from plerion.controller.explain import explain
from plerion.index.codec import from_json
from plerion.lab import Lab
from plerion.topology.graph import HostId

TOPOLOGY = typer.Option(
    "--topology", help="A file (JSON, GraphML, topohub) or a name such as fat-tree:4 or ring:20."
)
INDEX = typer.Option("--index", help="Content index, as `index build` writes it.")
SUBSCRIPTIONS = typer.Option(
    "--subscriptions", help="Subscriptions: CSV or Parquet; id, host, filter or low/high columns."
)


def trace(
    *,
    publisher: Annotated[str, typer.Option("--publisher", help="The host that sends the event.")],
    event: Annotated[
        str, typer.Option("--event", help="The event: temperature=31,room=attic, or a JSON object.")
    ],
    topology: Annotated[str | None, TOPOLOGY] = None,
    index: Annotated[Path | None, INDEX] = None,
    subscriptions: Annotated[Path | None, SUBSCRIPTIONS] = None,
    advertisements: AdvertisementsFile = None,
    budget: Budget = BUDGET,
    max_trees: MaxTrees = MAX_TREES,
    tcam: Tcam = None,
    sample: SampleFile = None,
    down: Down = None,
    api: Annotated[str | None, typer.Option("--api", help=f"A running controller, such as {USUAL}.")] = None,
    token: Token = None,
    lab: Annotated[str | None, typer.Option("--lab", help="Ask the switches of this lab, too.")] = None,
    host: Annotated[str | None, typer.Option("--host", help="Say why this host gets it or not.")] = None,
    json: Json = False,
) -> None:
    """Follow one event: the entry that matched at each switch, the subscriptions behind it, and why not.

    Where a lab is named, its switches are asked what they would do; exit 1 if that is not what the model says.

    plerion trace --topology fat-tree:4x2 --index index.json --subscriptions subscriptions.csv \\
        --publisher h1 --event temperature=31,humidity=12

    plerion trace --api http://127.0.0.1:8080 --lab demo --publisher h1 --event temperature=31,humidity=12
    """
    if api is not None and topology is None and index is None and subscriptions is None:
        told = _of_controller(api, token, publisher, event, host)
    elif api is None and topology is not None and index is not None and subscriptions is not None:
        found = deployment(
            topology, index, subscriptions, advertisements, budget, max_trees, tcam, sample, down
        )
        told = _of_files(found, publisher, event, host)
    else:
        fix = "give --api, or --topology, --index and --subscriptions"
        raise InputError("whose network is it: a running controller's, or one of files?", fix)
    wrong = _compared(told, lab, publisher) if lab is not None else []
    print_json(told) if json else typer.echo(_story(told))
    for line in wrong:
        complain(f"MODEL AND SWITCH DISAGREE: {line}")
    if wrong:
        raise typer.Exit(1)


def _of_files(found: Deployment, publisher: str, event: str, host: str | None) -> dict[str, Any]:
    hosts = found.state.settings.topology.hosts
    _check_host("--publisher", publisher, hosts)
    index = found.state.settings.index
    told = explain(found, point(index.schema, _event(index.schema, event)), HostId(publisher))
    document = told.to_json(address_plan(index, ipv4=False))
    if host is not None:
        _check_host("--host", host, hosts)
        document["host"] = _why(document, host, found.subscriptions.hosts.count(host))
    return document


def _of_controller(
    api: str, token: str | None, publisher: str, event: str, host: str | None
) -> dict[str, Any]:
    index = from_json(msgspec.json.encode(asked(api, "/v1/index", token)))
    sent = {"publisher": publisher, "event": _event(index.schema, event)}
    document: dict[str, Any] = asked(api, "/v1/trace", token, sent)
    if host is not None:
        network = asked(api, "/v1/topology", token)["topology"]
        _check_host("--host", host, [str(one) for one in network["hosts"]])
        held = asked(api, f"/v1/subscriptions?limit=1&host={quote(host, safe='')}", token)["count"]
        document["host"] = _why(document, host, held)
    return document


def _check_host(option: str, host: str, hosts: Sequence[str]) -> None:
    if host not in hosts:
        raise InputError(f"{option} {host!r} is no host of the topology", suggestion(host, hosts))


def _why(document: dict[str, Any], host: str, subscriptions: int) -> dict[str, Any]:
    """Whether the host gets the event, and for which reason."""
    got = [one["wanted"] for one in document["received"] if one["host"] == host]
    reasons = [one["why"] for one in document["missing"] if one["host"] == host]
    if got:
        why = "a subscription there matches" if got[0] else "covers are coarse: nobody there asked for it"
    elif reasons:
        why = reasons[0]
    else:
        why = (
            f"none of the {subscriptions} subscriptions there matches"
            if subscriptions
            else "nobody there asks for anything"
        )
    return {"host": host, "received": bool(got), "why": why}


def _compared(told: dict[str, Any], lab: str, publisher: str) -> list[str]:
    """Adds what the switches of the lab say; where that differs, a line each."""
    network = Lab.find(lab)
    _check_host("--publisher", publisher, network.topology.hosts)
    told["real"], lines = [], []
    for journey in told["journeys"]:
        real = walk(network, publisher, journey["address"])
        told["real"].append(real.to_json())
        lines += [f"{journey['dz']}: {line}" for line in disagreements(journey, real)]
    told["agree"] = not lines
    return lines


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


def _story(told: dict[str, Any]) -> str:
    publisher = told["publisher"]
    lines = [] if told["unsent"] is None else [f"{publisher} sends nothing: {told['unsent']}"]
    for journey in told["journeys"]:
        lines.append(f"event {journey['dz']} from {publisher}")
        for hop in journey["hops"]:
            lines += _hop(hop)
    lines += [
        f"  {one['host']} received it {'and asked for it' if one['wanted'] else '(false positive)'}"
        for one in told["received"]
    ]
    lines += [
        f"  {one['subscription']} at {one['host']} matches but did not receive it: {one['why']}"
        for one in told["missing"]
    ]
    if "host" in told:
        asked_for = told["host"]
        got = "received it" if asked_for["received"] else "did not receive it"
        lines.append(f"  {asked_for['host']} {got}: {asked_for['why']}")
    if "agree" in told:
        hops = sum(len(real["hops"]) for real in told["real"])
        lines.append(
            f"the lab was asked at {hops} hops: {'it does the same' if told['agree'] else 'IT DIFFERS'}"
        )
    return "\n".join(lines)


def _hop(hop: dict[str, Any]) -> list[str]:
    entry = hop["entry"]
    matched = f"entry {entry['dz'] or 'ε'} (priority {entry['priority']})" if entry else "no entry"
    went = ", ".join(f"{out['port']} → {out['to']}" for out in hop["out"]) or "nowhere: dropped"
    behind = [f"      for {one['id']} at {one['host']}" for one in hop["subscriptions"]]
    return [f"  {hop['switch']} in {hop['in_port']}: {matched}, out {went}", *behind]


command = trace
