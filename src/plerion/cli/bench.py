"""`plerion bench`: the hot paths, measured, and with a word those through real switches."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

import plerion
from plerion.cli.options import Json
from plerion.cli.output import print_json, print_table, progress
from plerion.content.errors import InputError

command = typer.Typer()

Scale = Annotated[
    float,
    typer.Option(min=0.001, max=1.0, help="Do a part of the work, to see that it runs; not for figures."),
]
LabName = Annotated[
    str | None,
    typer.Option("--lab", help="A lab that is up and has no controller; else one is built for this."),
]


@command.callback(invoke_without_command=True)
def bench(context: typer.Context, json: Json = False, scale: Scale = 1.0) -> None:
    """Measure the hot paths and compare with what they must reach; exit 1 if one falls short.

    plerion bench --json
    """
    if context.invoked_subcommand is not None:
        return
    checkout = Path(plerion.__file__).parents[2]
    if not (checkout / "benchmarks" / "core.py").exists():
        raise InputError("the benchmarks are not installed", "run `make bench` in a checkout of Plerion")
    sys.path.insert(0, str(checkout))
    rows = []
    for module in ("core", "learning"):
        for name, measure in import_module(f"benchmarks.{module}").MEASUREMENTS.items():
            with progress(name):
                rows += measure(scale)
    _show("benchmarks", rows, scale, json)


@command.command()
def latency(lab: LabName = None, scale: Scale = 1.0, json: Json = False) -> None:
    """What Plerion's tables add to the delay through five switches of Open vSwitch; needs root.

    plerion bench latency
    """
    _through_switches("latency", lab, scale, json)


@command.command()
def throughput(lab: LabName = None, scale: Scale = 1.0, json: Json = False) -> None:
    """How many events a second reach four hosts without loss; needs root.

    plerion bench throughput
    """
    _through_switches("throughput", lab, scale, json)


@command.command()
def control(lab: LabName = None, scale: Scale = 1.0, json: Json = False) -> None:
    """Flow-mods, subscriptions up to *ready*, and a restart, with 25,000 deployed; needs root and some minutes.

    plerion bench control
    """
    _through_switches("control", lab, scale, json)


def _through_switches(which: str, lab: str | None, scale: float, json: bool) -> None:
    from plerion.experiments.lab_bench import measured  # noqa: PLC0415 - the kernels load slowly, --help needs none

    with progress(which):
        rows = measured(which, lab, scale)
    _show(f"through real switches: {which}", rows, scale, json)


def _show(title: str, rows: list[Any], scale: float, json: bool) -> None:
    """Prints what was measured; exit 1 when all of the work was done and a bound was not reached."""
    if json:
        print_json({"scale": scale, "rows": rows})
    else:
        columns = ("what", "measured", "at least", "unit", "met")
        print_table(title, columns, [tuple(row[column] for column in columns) for row in rows])
    if scale == 1.0 and not all(row["met"] for row in rows):
        raise typer.Exit(1)
