"""The demo on real switches: what happens when, and what is shown meanwhile."""

from __future__ import annotations

import signal
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from plerion.controller.inputs import Subscribe
from plerion.experiments.live_weather import LiveTotals, LiveWeather, check_machine
from plerion.experiments.weather import Weather
from plerion.index.content_index import ContentIndex

LOOKS_A_SECOND = 2
ARRIVE_SECONDS = 1.0  # for what was sent last
LINK = "s1:1"

Incident = tuple[float, str, Callable[[LiveWeather], None]]
INCIDENTS: Sequence[Incident] = (
    (0.20, "h5 subscribes: heavy rain", lambda on: on.subscribe(Subscribe("rain-radar", "h5", "rain > 0.1"))),
    (0.35, f"the link {LINK} is cut", lambda on: on.cut(LINK)),
    (0.50, f"the link {LINK} is healed", lambda on: on.heal(LINK)),
    (0.60, "the controller is killed (kill -9)", lambda on: on.network.kill_controller()),
    (0.70, "the controller is started again", lambda on: on.network.start_controller()),
    (0.90, "h8 unsubscribes: laundry", lambda on: on.unsubscribe("laundry")),
)
"""What happens on the way, by the share of the time that has passed."""


def replay(console: Console, events: Weather, index: ContentIndex, budget: int, seconds: float) -> LiveTotals:
    """A year of weather through a lab of its own, which is gone afterwards, however this ends."""
    check_machine()
    console.print("building 10 switches and 8 hosts, starting a controller and a program in every host …")
    lasting = max(seconds, 1.0)
    with (
        _told_to_end(),
        tempfile.TemporaryDirectory(prefix="plerion-demo-") as folder,
        LiveWeather.of(events, index, budget, Path(folder)) as live,
    ):
        live.begin(lasting)
        _watch(console, live, lasting)
        live.end(30.0)
        sleep(ARRIVE_SECONDS)
        return live.totals()


@contextmanager
def _told_to_end() -> Iterator[None]:
    """SIGTERM ends the demo as Ctrl-C does: everything is taken down."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _watch(console: Console, live: LiveWeather, seconds: float) -> None:
    incidents, began = deque(INCIDENTS), monotonic()
    news: deque[str] = deque(maxlen=len(INCIDENTS))
    with Live(console=console, auto_refresh=False) as shown:
        while (past := monotonic() - began) < seconds:
            while incidents and incidents[0][0] * seconds <= past:
                share, line, happen = incidents.popleft()
                happen(live)
                news.append(f"{share * seconds:3.0f} s: {line}")
            shown.update(_screen(live, live.counts(), past / seconds, news), refresh=True)
            sleep(1 / LOOKS_A_SECOND)
        shown.update(_screen(live, live.counts(), 1.0, news), refresh=True)


def _screen(live: LiveWeather, counts: dict[str, dict[str, Any]], share: float, news: deque[str]) -> Group:
    title = "Open vSwitch, 10 switches, 8 hosts: weather of New York's airports, 2013"
    table = Table(title=title, title_justify="left")
    for name in ("subscription", "host", "filter"):
        table.add_column(name, overflow="ellipsis", no_wrap=name != "filter")
    for name in ("wanted", "p50 ms", "p99 ms"):
        table.add_column(name, justify="right")
    for name, wanted in live.wanted.items():
        told = counts[wanted.asked.host]["counts"][name]
        times = (told["latency"][quantile] for quantile in ("p50", "p99"))
        words = (name, wanted.asked.host, str(wanted.asked.filter), f"{told['wanted']:,}")
        style = "" if wanted.withdrawn_ns is None else "dim strike"
        table.add_row(*words, *("–" if t is None else f"{1000 * t:.1f}" for t in times), style=style)
    every = counts.values()
    sent, received, wrong, doubled = (
        sum(one[name] for one in every) for name in ("published", "received", "false_positives", "doubles")
    )
    unasked = f"{wrong / max(1, received):.1%} unasked"
    line = f"{sent:,} events sent, {received:,} received at hosts, {unasked}, {doubled} doubled"
    bar = Table.grid(expand=True)
    bar.add_row(ProgressBar(total=1.0, completed=share))
    return Group(table, bar, Text(line, style="bold"), *map(Text, news))


def summary(totals: LiveTotals) -> str:
    failing = (
        f" ({totals.cut_off} more were on their way when a link failed or returned)" if totals.cut_off else ""
    )
    return (
        f"{totals.events:,} events through real switches, {totals.deliveries:,} received at hosts, "
        f"{totals.false_positive_rate:.1%} of them false positives; of {totals.wanted:,} wanted deliveries lost "
        f"{totals.lost}, doubled {totals.doubled}{failing}; everything is taken down"
    )
