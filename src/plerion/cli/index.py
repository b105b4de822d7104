"""`plerion index`: build a content index, and see what it does to events and subscriptions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plerion.cli.codes import write_codes, write_covers
from plerion.cli.learn import (
    BEST_SECONDS,
    MARGIN,
    SAMPLE_ROWS,
    BuildOptions,
    Learning,
    counted,
    from_schema,
    index_facts,
    learned,
    show_built,
    show_counted,
)
from plerion.cli.options import (
    BUDGET,
    MASTER,
    Budget,
    EventFiles,
    EventsFile,
    IndexFile,
    Json,
    LogDirectory,
    Master,
    Remote,
    SampleFile,
    SubscriptionsFile,
    sample,
)
from plerion.cli.output import print_json, writer
from plerion.content.errors import InputError
from plerion.content.read import read_events, read_interests
from plerion.content.schema import read_schema
from plerion.index.codec import read_index, to_json
from plerion.index.cover import covers
from plerion.index.encode import encode
from plerion.learning.propose import METHODS, SELECTIONS, Request
from plerion.learning.selection import DEFAULT_THRESHOLD

app = typer.Typer(
    help="Build content indexes and look at what they do.", no_args_is_help=True, rich_markup_mode=None
)


@app.command()
def build(  # noqa: PLR0917 - a line an option
    schema: Annotated[Path, typer.Option(help="Schema: YAML with a list of attributes.")],
    out: Annotated[str, typer.Option(help="Where to write the index; - is standard output.")],
    events: EventFiles = None,
    log: LogDirectory = None,
    subscriptions: Annotated[Path | None, typer.Option(help="Who asks for what; needed with events.")] = None,
    bits: Annotated[
        int, typer.Option(min=0, max=112, help="Bits of a code: 23 fit IPv4, 112 fit IPv6.")
    ] = 23,
    method: Annotated[
        str | None,
        typer.Option(help=f"How cuts are found: {', '.join(METHODS)}. Boundary, or without events regular."),
    ] = None,
    select: Annotated[
        str, typer.Option(help=f"Attributes to spend bits on: {', '.join(SELECTIONS)}, or names and commas.")
    ] = "none",
    dimensions: Annotated[int | None, typer.Option(min=1, help="Keep this many of the selected.")] = None,
    clusters: Annotated[
        int | None, typer.Option(min=1, max=256, help="Clusters; without it several numbers are tried.")
    ] = None,
    threshold: Annotated[
        float, typer.Option(help="Share of the coefficients that pca's selection reaches.")
    ] = DEFAULT_THRESHOLD,
    budget: Budget = BUDGET,
    current: Annotated[
        Path | None, typer.Option(help="The index in use: it stays unless the new one is better.")
    ] = None,
    margin: Annotated[float, typer.Option(min=0, max=1, help="Share by which to be better.")] = MARGIN,
    seconds: Annotated[float, typer.Option(min=0, help="How long `best` may search.")] = BEST_SECONDS,
    sample_rows: Annotated[
        int, typer.Option(min=2, max=1 << 20, help="Events that choose and judge.")
    ] = SAMPLE_ROWS,
    figure: Annotated[
        Path | None, typer.Option(help="PNG or SVG: the rate against attributes and against bits.")
    ] = None,
    master: Master = MASTER,
    remote: Remote = None,
    json: Json = False,
) -> None:
    """Build a content index; with events and subscriptions, the one that wastes least on them, on Spark.

    plerion index build --schema schema.yaml --events events.csv --subscriptions subscriptions.csv --out index.json
    """
    space = read_schema(schema)
    asked = events or log is not None
    if bool(asked) != (subscriptions is not None):
        raise InputError("events and subscriptions are only of use together", "give both or neither")
    request = Request(
        bits, budget, method or ("boundary" if asked else "regular"), select, dimensions, clusters, threshold
    )
    if not asked or subscriptions is None:
        made, report = from_schema(space, request), None
    else:
        workload = Learning(space, events or [], log, read_interests(subscriptions, space), request, figure)
        options = BuildOptions(sample_rows, seconds, margin)
        made, report = learned(workload, options, read_index(current) if current else None, master, remote)
    with writer(out) as file:
        file.write(to_json(made) + b"\n")
    if out != "-":
        facts = {"out": out, **index_facts(made)}
        print_json({**facts, **(report or {})}) if json else show_built(facts, report)


@app.command()
def evaluate(
    index: IndexFile,
    subscriptions: SubscriptionsFile,
    events: EventFiles = None,
    log: LogDirectory = None,
    budget: Budget = BUDGET,
    master: Master = MASTER,
    remote: Remote = None,
    details: Annotated[bool, typer.Option("--details", help="Also by subscription and host.")] = False,
    json: Json = False,
) -> None:
    """Count deliveries, false positives and negatives of every event, on Spark; exit 1 if a wanted one is missing.

    plerion index evaluate --index index.json --events events.csv --subscriptions subscriptions.csv
    """
    if not events and log is None:
        raise InputError("there are no events", "give --events or --log")
    made = read_index(index)
    found = counted(
        made, events or [], log, read_interests(subscriptions, made.schema), budget, details, master, remote
    )
    print_json(found) if json else show_counted(str(index), found)
    if found["false_negatives"]:
        raise typer.Exit(1)


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
