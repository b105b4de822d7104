"""The demo on the emulator: a year of weather, better indexes found by Spark on the way, what became of every event.

An index that was learned in winter wastes in summer; so Spark is asked twice, and the chart shows why.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from plerion.cli.told import Told
from plerion.controller.inputs import Input
from plerion.controller.state import Settings
from plerion.eventlog.writer import LogWriter
from plerion.experiments.learner import Learner, LearnerError
from plerion.experiments.replay import Replay, Totals
from plerion.experiments.weather import ADVERTISEMENTS, INCIDENTS, SCHEMA, SUBSCRIPTIONS, Weather
from plerion.index.content_index import ContentIndex
from plerion.topology.generate import fat_tree

TICKS_A_SECOND = 4
LEARN_AT = ((0.3, 0.5), (0.6, 0.8))
"""Shares of the events: at the first of each Spark begins, at the second the events wait for it."""
EPOCH_BITS = 2
IN_FLIGHT = 2_000  # observations that publishers send while the index changes


@dataclass(slots=True)
class EmulatedDemo:
    """Made of a replay and a learner; `run` it once."""

    console: Console
    events: Weather
    seconds: float
    replay: Replay
    learner: Learner
    told: Told = field(default_factory=Told)
    logged: int = 0
    due: deque[tuple[float, float]] = field(default_factory=lambda: deque(LEARN_AT))

    async def run(self) -> tuple[Totals, bool]:
        """The totals, and whether the last tables are proven right."""
        ticks = max(1, int(self.seconds * TICKS_A_SECOND))
        incidents, count, began = deque(INCIDENTS), len(self.events), monotonic()
        self.told.news += [
            f"{len(self.events.refused)} observation refused: {line}" for line in self.events.refused
        ]
        with Live(console=self.console, refresh_per_second=TICKS_A_SECOND, transient=False) as live:
            for tick in range(ticks):
                first, last = count * tick // ticks, count * (tick + 1) // ticks
                while incidents and incidents[0][0] * count <= first:
                    await self._happen(*incidents.popleft()[1:], first)
                await self._learn(first, live)
                await self._send(first, last, (tick + 1) / TICKS_A_SECOND)
                live.update(self._screen(last / count))
                await asyncio.sleep(max(0.0, began + (tick + 1) / TICKS_A_SECOND - monotonic()))
            live.update(self._screen(1.0))
        return self.replay.totals, await self.replay.proof()

    async def _happen(self, line: str, received: Input, first: int) -> None:
        answer = await self.replay.tell(received)
        self.told.news.append(
            f"event {first:,}: {line}{'' if answer.ready else f' refused: {answer.reason}'}"
        )

    async def _send(self, first: int, last: int, at: float) -> None:
        found = await self.replay.send(self.events.points[first:last], self.events.sender[first:last])
        delivered, wrong = int(found.host_deliveries.sum()), int(found.host_false_positives.sum())
        self.told.look(at, delivered, wrong)

    async def _learn(self, first: int, live: Live) -> None:
        """Begins to learn when enough was seen, and takes what was found as soon as it is there."""
        share = first / len(self.events)
        if self.told.failure or not self.due or share < self.due[0][0]:
            return
        state = self.replay.controller.state
        if not self.learner.begun:
            self._log(first)
            self.learner.begin(state.settings.index, state.subscriptions.values())
            self.told.news.append(f"event {first:,}: Spark looks for a better index in what was seen so far")
        try:
            while (found := self.learner.found()) is None and share >= self.due[0][1]:
                live.update(self._screen(share, "the events wait for Spark"))
                await asyncio.sleep(1 / TICKS_A_SECOND)
        except LearnerError as error:
            self.told.failure = str(error)
            self.told.news.append(f"no better index: {error}")
            return
        if found is None:
            return
        self.due.popleft()
        if found.replaced:
            await self._change(found.index, first)
        else:
            self.told.news.append(f"event {first:,}: nothing is better than the index in use")

    def _log(self, last: int) -> None:
        """What was sent since the log was last written."""
        first, self.logged = self.logged, last
        with LogWriter(self.learner.log, SCHEMA, "demo") as log:
            times, numbers = np.full(last - first, time.time()), np.arange(first, last)
            log.append_events(times, "weather", numbers, 0, self.events.points[first:last])

    async def _change(self, index: ContentIndex, first: int) -> None:
        rows = slice(first, first + IN_FLIGHT)
        done, report = await self.replay.change(index, self.events.points[rows], self.events.sender[rows])
        if done.reason:
            self.told.failure = done.reason
        else:
            self.told.change()
        strategy = done.prepared.plan.strategy
        self.told.news.append(
            f"event {first:,}: the new index goes live ({strategy}); of {report.events:,} events on their way "
            f"{report.lost} lost, {report.doubled} doubled"
        )

    def _subscriptions(self) -> Table:
        table = Table(
            title="fat tree, 10 switches, 8 hosts: weather of New York's airports, 2013", title_justify="left"
        )
        for name in ("subscription", "host", "filter"):
            table.add_column(name, overflow="ellipsis", no_wrap=name != "filter")
        for name in ("delivered", "wanted", "false positives", "rate"):
            table.add_column(name, justify="right")
        for name, tally in self.replay.tallies.items():
            wanted = tally.delivered - tally.false_positives
            rate = f"{tally.false_positives / max(1, tally.delivered):.1%}"
            numbers = (f"{tally.delivered:,}", f"{wanted:,}", f"{tally.false_positives:,}", rate)
            subscription = tally.subscription
            style = "" if tally.live else "dim strike"
            table.add_row(name, subscription.host, str(subscription.filter), *numbers, style=style)
        return table

    def _screen(self, share: float, note: str = "") -> Group:
        totals, entries = self.replay.totals, int(self.replay.controller.state.table.sizes.sum())
        line = (
            f"{totals.events:,} events, {totals.deliveries:,} deliveries, {totals.lost} lost, "
            f"{totals.doubled} doubled; {entries:,} flow entries"
        )
        bar = Table.grid(expand=True)
        bar.add_row(ProgressBar(total=1.0, completed=share))
        news = map(Text, [*self.told.news, *([note] if note else [])])
        return Group(
            self._subscriptions(),
            bar,
            Text(line, style="bold"),
            *self.told.picture(),
            *news,
        )


async def replayed(
    console: Console, events: Weather, index: ContentIndex, budget: int, seconds: float
) -> tuple[Totals, bool, Told]:
    """The whole demo."""
    replay = await Replay.start(Settings(fat_tree(4, 2), index, budget, epoch_bits=EPOCH_BITS))
    first_inputs: list[Input] = [*ADVERTISEMENTS, *SUBSCRIPTIONS]
    for received in first_inputs:
        answer = await replay.tell(received)
        assert answer.ready, answer.reason
    with tempfile.TemporaryDirectory(prefix="plerion-demo-") as folder:
        learner = Learner(Path(folder), SCHEMA, index.bits, budget)
        try:
            shown = EmulatedDemo(console, events, seconds, replay, learner)
            return (*await shown.run(), shown.told)
        finally:
            learner.end()
