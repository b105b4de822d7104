"""`plerion index`: build a content index, and see what it does to events and subscriptions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from plerion.cli.codes import write_codes, write_covers
from plerion.cli.options import (
    BUDGET,
    Budget,
    EventsFile,
    IndexFile,
    Json,
    SampleFile,
    SubscriptionsFile,
    sample,
)
from plerion.cli.output import print_facts, print_json, print_table, progress, writer
from plerion.content.errors import InputError
from plerion.content.read import read_events, read_interests
from plerion.content.schema import Schema, read_schema
from plerion.index.codec import read_index, to_json
from plerion.index.content_index import ContentIndex
from plerion.index.cover import covers
from plerion.index.encode import encode
from plerion.index.propose import regular
from plerion.index.selection import by_names

app = typer.Typer(
    help="Build content indexes and look at what they do.", no_args_is_help=True, rich_markup_mode=None
)


@app.command()
def build(
    schema: Annotated[Path, typer.Option(help="Schema: YAML with a list of attributes.")],
    out: Annotated[str, typer.Option(help="Where to write the index; - is standard output.")],
    bits: Annotated[
        int, typer.Option(min=0, max=112, help="Bits of a code: 23 fit IPv4, 112 fit IPv6.")
    ] = 23,
    method: Annotated[str, typer.Option(help="How cuts are found; this release knows: regular.")] = "regular",
    select: Annotated[
        str, typer.Option(help="Attributes to spend bits on, separated by commas; none means all of them.")
    ] = "none",
    dimensions: Annotated[int | None, typer.Option(min=1, help="Keep this many of the selected.")] = None,
    events: Annotated[
        Path | None, typer.Option(help="With subscriptions: say how well the index filters.")
    ] = None,
    subscriptions: Annotated[Path | None, typer.Option(help="With events: say how well it filters.")] = None,
    budget: Budget = BUDGET,
    json: Json = False,
) -> None:
    """Build a content index.

    plerion index build --schema schema.yaml --bits 23 --select temperature,humidity --out index.json
    """
    if (events is None) != (subscriptions is None):
        raise InputError("events and subscriptions are only of use together", "give both or neither")
    space = read_schema(schema)
    made = _made(space, method, _selected(space, select)[:dimensions], bits)
    with writer(out) as file:
        file.write(to_json(made) + b"\n")
    facts: dict[str, Any] = {"bits": made.bits, "clusters": len(made.clusters)}
    order = made.clusters[0].order
    spent = {name: order.count(i) for i, name in enumerate(space.names)}
    if events and subscriptions:
        with progress("evaluating"):
            facts |= _evaluation(made, events, subscriptions, budget)
    if out == "-":
        return
    if json:
        print_json({**facts, "bits_by_attribute": spent, "out": out})
    else:
        print_facts(f"{out}: {method} index", facts)
        print_table("bits by attribute", ("attribute", "bits"), spent.items())


def _selected(schema: Schema, text: str) -> tuple[int, ...]:
    names = (
        [] if text == "none" and "none" not in schema.names else [name.strip() for name in text.split(",")]
    )
    return by_names(schema, names)


def _made(schema: Schema, method: str, attributes: tuple[int, ...], bits: int) -> ContentIndex:
    if method != "regular":
        raise InputError(f"--method {method!r} is not in this release", "use regular")
    return regular(schema, bits, attributes)


@app.command()
def evaluate(
    index: IndexFile,
    events: EventsFile,
    subscriptions: SubscriptionsFile,
    budget: Budget = BUDGET,
    json: Json = False,
) -> None:
    """Count deliveries, false positives and false negatives of a workload; exit 1 if a wanted one is missing.

    plerion index evaluate --index index.json --events events.csv --subscriptions subscriptions.csv
    """
    with progress("evaluating"):
        found = _evaluation(read_index(index), events, subscriptions, budget)
    if json:
        print_json(found)
    else:
        print_facts(f"{index} on {events}", found)
    if found["false_negatives"]:
        raise typer.Exit(1)


def _evaluation(
    index: ContentIndex, events: Path, subscriptions: Path, budget: int
) -> dict[str, int | float]:
    from plerion.matching.bitset import BitsetMatcher  # noqa: PLC0415 - kernels load slowly
    from plerion.matching.evaluate import evaluate as evaluated  # noqa: PLC0415 - kernels load slowly

    points, wanted = read_events(events, index.schema).points, read_interests(subscriptions, index.schema)
    found = covers(index, wanted.offsets, wanted.bounds, budget)
    names = {host: i for i, host in enumerate(dict.fromkeys(wanted.hosts))}
    hosts = np.array([names[host] for host in wanted.hosts], np.int64)
    matcher = BitsetMatcher.of(wanted.offsets, wanted.bounds)
    return evaluated(points, encode(index, points), matcher, found, hosts).to_json()


@app.command(name="encode")
def encode_events(
    index: IndexFile,
    events: EventsFile,
    out: Annotated[str, typer.Option(help="CSV event,dz: a line a code; - is standard output.")] = "-",
) -> None:
    """Write the codes of events: row number from 0, and bits.

    plerion index encode --index index.json --events events.csv --out codes.csv
    """
    found = read_index(index)
    codes = encode(found, read_events(events, found.schema).points)
    with writer(out) as file:
        write_codes(file, codes)


@app.command()
def cover(
    index: IndexFile,
    subscriptions: SubscriptionsFile,
    budget: Budget = BUDGET,
    sample_file: SampleFile = None,
    out: Annotated[str, typer.Option(help="CSV subscription,dz: a line a dz; - is standard output.")] = "-",
) -> None:
    """Write the dz that enclose each subscription, at most --budget for each.

    plerion index cover --index index.json --subscriptions subscriptions.csv --budget 8 --out covers.csv
    """
    found = read_index(index)
    wanted = read_interests(subscriptions, found.schema)
    enclosing = covers(found, wanted.offsets, wanted.bounds, budget, sample(found, sample_file))
    with writer(out) as file:
        write_covers(file, wanted.ids, enclosing)


command = app
