"""`plerion demo`: a year of real weather through a fat tree, which learns on the way what its filters are for."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from plerion.cli.options import Json
from plerion.cli.output import print_json
from plerion.content.errors import InputError
from plerion.experiments.replay import Totals
from plerion.experiments.weather import SCHEMA, weather
from plerion.index.propose import regular

if TYPE_CHECKING:
    from plerion.cli.told import Told
    from plerion.experiments.live_weather import LiveTotals

BITS, BUDGET = 23, 128
USUAL_SECONDS = {"emulator": 50.0, "ovs": 90.0}


def demo(
    seconds: Annotated[
        float | None,
        typer.Option(min=0.0, max=600.0, help="How long the replay takes; default: 50, on real switches 90."),
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Where to draw the rate over time: .png, .svg or .pdf.")
    ] = None,
    json: Json = False,
) -> None:
    """Watch 10 switches and 8 hosts deliver a year of weather while Spark finds a better index and it goes live.

    With DATAPLANE=ovs in the environment the switches are Open vSwitch and the hosts network namespaces (needs root).

    plerion demo --seconds 50 --figure demo.png
    """
    plane = os.environ.get("DATAPLANE", "emulator")
    if figure is not None and figure.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InputError(f"--figure {figure.name!r} is no figure", "end it in .png, .svg or .pdf")
    if plane not in USUAL_SECONDS:
        raise InputError(f"DATAPLANE={plane} is not known", "use emulator, the default, or ovs")
    shown = _on_real_switches if plane == "ovs" else _on_the_emulator
    lasting = USUAL_SECONDS[plane] if seconds is None else seconds
    raise typer.Exit(0 if shown(lasting, figure, json) else 1)


def _on_real_switches(seconds: float, figure: Path | None, json: bool) -> bool:
    """Whether all went well."""
    from plerion.cli import live_demo  # noqa: PLC0415 - it loads the lab and the client, the emulator needs neither

    console = Console(quiet=json)
    real, told = live_demo.replay(console, weather(), regular(SCHEMA, BITS), BUDGET, seconds)
    if json:
        print_json(_facts(real) | {"cut_off": real.cut_off} | told.to_json())
    console.print(f"\n{live_demo.summary(real, told)}")
    if figure is not None:
        told.draw(figure)
        console.print(f"{figure} shows it")
    return not (real.lost or real.doubled)


def _on_the_emulator(seconds: float, figure: Path | None, json: bool) -> bool:
    """The same; the tables at the end are proven, too."""
    from plerion.cli.emulated_demo import replayed  # noqa: PLC0415 - real switches need none of it

    console = Console(quiet=json)
    totals, proven, told = asyncio.run(replayed(console, weather(), regular(SCHEMA, BITS), BUDGET, seconds))
    if json:
        print_json(_facts(totals) | {"proven": proven} | told.to_json())
    console.print(f"\n{_summary(totals, proven, told)}")
    if figure is not None:
        told.draw(figure)
        console.print(f"{figure} shows it")
    return proven and not (totals.lost or totals.doubled)


def _facts(totals: Totals | LiveTotals) -> dict[str, Any]:
    names = ("events", "deliveries", "false_positives", "lost", "doubled")
    rate = {"false_positive_rate": round(totals.false_positive_rate, 4)}
    return {name: getattr(totals, name) for name in names} | rate


def _summary(totals: Totals, proven: bool, told: Told) -> str:
    proof = "the last tables are proven right" if proven else "THE LAST TABLES ARE WRONG"
    return (
        f"{totals.events:,} events, {totals.deliveries:,} deliveries; {told.summary()}; "
        f"lost {totals.lost}, doubled {totals.doubled}; {proof}"
    )


command = demo
