"""The demo on real switches: what happens when, and what is shown meanwhile."""

from __future__ import annotations

import signal
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from plerion.cli.told import Told
from plerion.controller.inputs import Subscribe
from plerion.experiments.learner import Learned, Learner, LearnerError
from plerion.experiments.live import LiveError
from plerion.experiments.live_weather import LiveTotals, LiveWeather, check_machine
from plerion.experiments.weather import SCHEMA, Weather
from plerion.index.content_index import ContentIndex

LOOKS_A_SECOND = 2
LEARN_AT = 0.35  # earlier, what was seen is winter alone
ARRIVE_SECONDS = 1.0  # for what was sent last
LINK = "s1:1"

Incident = tuple[float, str, Callable[[LiveWeather], None]]
INCIDENTS: Sequence[Incident] = (
    (0.10, "h5 subscribes: heavy rain", lambda on: on.subscribe(Subscribe("rain-radar", "h5", "rain > 0.1"))),
    (0.15, f"the link {LINK} is cut", lambda on: on.cut(LINK)),
    (0.25, f"the link {LINK} is healed", lambda on: on.heal(LINK)),
    (0.35, "the controller is killed (kill -9)", lambda on: on.network.kill_controller()),
    (0.40, "the controller is started again", lambda on: on.network.start_controller()),
    (0.90, "h8 unsubscribes: laundry", lambda on: on.unsubscribe("laundry")),
)
"""What happens on the way, by the share of the time that has passed."""


def replay(
    console: Console, events: Weather, index: ContentIndex, budget: int, seconds: float
) -> tuple[LiveTotals, Told]:
    """A year of weather through a lab of its own, which is gone afterwards, however this ends."""
    check_machine()
    console.print("building 10 switches and 8 hosts, starting a controller and a program in every host …")
    lasting = max(seconds, 1.0)
    with (
        _told_to_end(),
        tempfile.TemporaryDirectory(prefix="plerion-demo-") as folder,
        _learning(Path(folder) / "learning", index, budget) as learner,
        LiveWeather.of(events, index, budget, Path(folder), learner.log) as live,
    ):
        demo = LiveDemo(live, learner, index)
        live.begin(lasting)
        demo.watch(console, lasting)
        live.end(lasting + 30.0)
        sleep(ARRIVE_SECONDS)
        return live.totals(), demo.told


@contextmanager
def _learning(folder: Path, index: ContentIndex, budget: int) -> Iterator[Learner]:
    learner = Learner(folder, SCHEMA, index.bits, budget)
    try:
        yield learner
    finally:
        learner.end()


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


@dataclass(slots=True)
class LiveDemo:
    """What is shown, and what happens on the way."""

    live: LiveWeather
    learner: Learner
    index: ContentIndex
    told: Told = field(default_factory=Told)
    learned: bool = False
    _seen: tuple[int, int] = (0, 0)

    def watch(self, console: Console, seconds: float) -> None:
        """Until the time is over and the new index was live for a while."""
        incidents, began = deque(INCIDENTS), monotonic()
        with Live(console=console, auto_refresh=False) as shown:
            while (past := monotonic() - began) < seconds:
                while incidents and incidents[0][0] * seconds <= past:
                    share, line, happen = incidents.popleft()
                    happen(self.live)
                    self.told.news.append(f"{share * seconds:3.0f} s: {line}")
                self._learn(past, past / seconds)
                shown.update(self._screen(past, past / seconds), refresh=True)
                sleep(1 / LOOKS_A_SECOND)
            shown.update(self._screen(seconds, 1.0), refresh=True)

    def _learn(self, past: float, share: float) -> None:
        """Spark begins when there is something to learn from; what it found goes live when the network is whole."""
        if self.learned or share < LEARN_AT:
            return
        if not self.learner.begun:
            self.learner.begin(self.index, [wanted.asked for wanted in self.live.wanted.values()])
            self.told.news.append(f"{past:3.0f} s: Spark looks for a better index in the publishers' log")
            return
        if self.live.network.controller is None:
            return
        try:
            found = self.learner.found()
            if found is not None:
                self.learned = True
                self._change(past, found)
        except (LearnerError, LiveError) as error:
            self.learned, self.told.failure = True, str(error)
            self.told.news.append(f"{past:3.0f} s: no better index: {error}")

    def _change(self, past: float, found: Learned) -> None:
        if not found.replaced:
            self.told.failure = "nothing is better than the index in use"
            return
        done = self.live.reindex(found.index)
        if not done.get("done"):
            self.told.failure = str(done.get("reason") or done.get("error"))
        else:
            self.told.change()
        how = f"{done.get('strategy')}, {done.get('seconds', 0):.2f} s"
        self.told.news.append(f"{past:3.0f} s: {self.told.failure or f'a new index is live ({how})'}")

    def _screen(self, past: float, share: float) -> Group:
        counts = self.live.counts()
        received, wrong = (
            sum(one[name] for one in counts.values()) for name in ("received", "false_positives")
        )
        before, self._seen = self._seen, (received, wrong)
        self.told.look(past, received - before[0], wrong - before[1])
        return _screen(self.live, counts, share, self.told)


def _screen(live: LiveWeather, counts: dict[str, dict[str, Any]], share: float, told: Told) -> Group:
    title = "Open vSwitch, 10 switches, 8 hosts: weather of New York's airports, 2013"
    table = Table(title=title, title_justify="left")
    for name in ("subscription", "host", "filter"):
        table.add_column(name, overflow="ellipsis", no_wrap=name != "filter")
    for name in ("wanted", "p50 ms", "p99 ms"):
        table.add_column(name, justify="right")
    for name, wanted in live.wanted.items():
        counted = counts[wanted.asked.host]["counts"][name]
        times = (counted["latency"][quantile] for quantile in ("p50", "p99"))
        words = (name, wanted.asked.host, str(wanted.asked.filter), f"{counted['wanted']:,}")
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
    return Group(table, bar, Text(line, style="bold"), *told.picture(), *map(Text, told.news))


def summary(totals: LiveTotals, told: Told) -> str:
    failing = (
        f" ({totals.cut_off} more were on their way when a link failed or returned)" if totals.cut_off else ""
    )
    return (
        f"{totals.events:,} events through real switches, {totals.deliveries:,} received at hosts; "
        f"{told.summary()}; of {totals.wanted:,} wanted deliveries lost "
        f"{totals.lost}, doubled {totals.doubled}{failing}; everything is taken down"
    )
