"""`plerion demo`: a year of real weather through a fat tree, in about a minute."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from plerion.cli.options import Json
from plerion.cli.output import print_json
from plerion.content.errors import InputError
from plerion.controller.inputs import Input
from plerion.controller.state import Settings
from plerion.experiments.replay import Replay, Totals
from plerion.experiments.weather import ADVERTISEMENTS, INCIDENTS, SCHEMA, SUBSCRIPTIONS, Weather, weather
from plerion.index.propose import regular
from plerion.topology.generate import fat_tree

if TYPE_CHECKING:
    from plerion.experiments.live_weather import LiveTotals

BITS, BUDGET = 23, 128
TICKS_A_SECOND = 4


def demo(
    seconds: Annotated[float, typer.Option(min=0.0, max=600.0, help="How long the replay takes.")] = 50.0,
    json: Json = False,
) -> None:
    """Watch a network of 10 switches and 8 hosts deliver a year of weather to those who asked; ends by itself.

    With DATAPLANE=ovs in the environment the switches are Open vSwitch and the hosts network namespaces (needs root).

    plerion demo --seconds 50
    """
    plane = os.environ.get("DATAPLANE", "emulator")
    console = Console(quiet=json)
    if plane == "ovs":
        from plerion.cli import live_demo  # noqa: PLC0415 - it loads the lab and the client, the emulator needs neither

        real = live_demo.replay(console, weather(), regular(SCHEMA, BITS), BUDGET, seconds)
        print_json(_facts(real) | {"cut_off": real.cut_off}) if json else console.print(
            f"\n{live_demo.summary(real)}"
        )
        if real.lost or real.doubled:
            raise typer.Exit(1)
        return
    if plane != "emulator":
        raise InputError(f"DATAPLANE={plane} is not known", "use emulator, the default, or ovs")
    totals, proven = asyncio.run(_replay(console, weather(), seconds))
    if json:
        print_json(_facts(totals) | {"proven": proven})
    else:
        console.print(f"\n{_summary(totals, proven)}")
    if totals.lost or totals.doubled or not proven:
        raise typer.Exit(1)


def _facts(totals: Totals | LiveTotals) -> dict[str, Any]:
    names = ("events", "deliveries", "false_positives", "lost", "doubled")
    rate = {"false_positive_rate": round(totals.false_positive_rate, 4)}
    return {name: getattr(totals, name) for name in names} | rate


async def _replay(console: Console, events: Weather, seconds: float) -> tuple[Totals, bool]:
    replay = await Replay.start(Settings(fat_tree(4, 2), regular(SCHEMA, BITS), BUDGET))
    first_inputs: list[Input] = [*ADVERTISEMENTS, *SUBSCRIPTIONS]
    for received in first_inputs:
        answer = await replay.tell(received)
        assert answer.ready, answer.reason
    news: deque[str] = deque(
        [f"{len(events.refused)} observation refused: {line}" for line in events.refused], maxlen=5
    )
    incidents = deque(INCIDENTS)
    ticks = max(1, int(seconds * TICKS_A_SECOND))
    began = monotonic()
    with Live(console=console, refresh_per_second=TICKS_A_SECOND, transient=False) as live:
        for tick in range(ticks):
            first, last = len(events) * tick // ticks, len(events) * (tick + 1) // ticks
            while incidents and incidents[0][0] * len(events) <= first:
                _, line, received = incidents.popleft()
                answer = await replay.tell(received)
                news.append(f"event {first:,}: {line}{'' if answer.ready else f' refused: {answer.reason}'}")
            await replay.send(events.points[first:last], events.sender[first:last])
            live.update(_screen(replay, last / len(events), news))
            await asyncio.sleep(max(0.0, began + (tick + 1) / TICKS_A_SECOND - monotonic()))
    return replay.totals, await replay.proof()


def _screen(replay: Replay, share: float, news: deque[str]) -> Group:
    table = Table(
        title="fat tree, 10 switches, 8 hosts: weather of New York's airports, 2013", title_justify="left"
    )
    for name in ("subscription", "host", "filter"):
        table.add_column(name, overflow="ellipsis", no_wrap=name != "filter")
    for name in ("delivered", "wanted", "false positives", "rate"):
        table.add_column(name, justify="right")
    for name, tally in replay.tallies.items():
        wanted = tally.delivered - tally.false_positives
        rate = f"{tally.false_positives / max(1, tally.delivered):.1%}"
        numbers = (f"{tally.delivered:,}", f"{wanted:,}", f"{tally.false_positives:,}", rate)
        subscription = tally.subscription
        style = "" if tally.live else "dim strike"
        table.add_row(name, subscription.host, str(subscription.filter), *numbers, style=style)
    totals = replay.totals
    state = replay.controller.state
    line = (
        f"{totals.events:,} events, {totals.deliveries:,} deliveries, {totals.false_positive_rate:.1%} unasked, "
        f"{totals.lost} lost, {totals.doubled} doubled; {int(state.table.sizes.sum()):,} flow entries"
    )
    bar = Table.grid(expand=True)
    bar.add_row(ProgressBar(total=1.0, completed=share))
    return Group(table, bar, Text(line, style="bold"), *map(Text, news))


def _summary(totals: Totals, proven: bool) -> str:
    proof = "the last tables are proven right" if proven else "THE LAST TABLES ARE WRONG"
    return (
        f"{totals.events:,} events, {totals.deliveries:,} deliveries, {totals.false_positive_rate:.1%} of them false "
        f"positives; lost {totals.lost}, doubled {totals.doubled}; {proof}"
    )


command = demo
