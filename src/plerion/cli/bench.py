"""`plerion bench`: the hot paths, measured."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

import plerion
from plerion.cli.options import Json
from plerion.cli.output import print_json, print_table, progress
from plerion.content.errors import InputError


def bench(
    json: Json = False,
    scale: Annotated[
        float,
        typer.Option(min=0.001, max=1.0, help="Do a part of the work, to see that it runs; not for figures."),
    ] = 1.0,
) -> None:
    """Measure the hot paths and compare with what they must reach; exit 1 if one falls short.

    plerion bench --json
    """
    checkout = Path(plerion.__file__).parents[2]
    if not (checkout / "benchmarks" / "core.py").exists():
        raise InputError("the benchmarks are not installed", "run `make bench` in a checkout of Plerion")
    sys.path.insert(0, str(checkout))
    rows = []
    for module in ("core", "learning"):
        for name, measure in import_module(f"benchmarks.{module}").MEASUREMENTS.items():
            with progress(name):
                rows += measure(scale)
    if json:
        print_json({"scale": scale, "rows": rows})
    else:
        columns = ("what", "measured", "at least", "unit", "met")
        print_table("benchmarks", columns, [tuple(row[column] for column in columns) for row in rows])
    if scale == 1.0 and not all(row["met"] for row in rows):
        raise typer.Exit(1)


command = bench
