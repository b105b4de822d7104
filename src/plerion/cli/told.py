"""What a demo has to tell of its false positives: the rate over time, and when another index was live."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.text import Text

from plerion.cli.chart import chart, save

SMOOTHED = 8  # looks that a rate is of
CHART = (72, 6)


@dataclass(slots=True)
class Told:
    """News, and a rate for each look."""

    news: deque[str] = field(default_factory=lambda: deque(maxlen=6))
    times: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)  # the first rate of each new index
    failure: str = ""
    _recent: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=SMOOTHED))

    def look(self, at: float, delivered: int, wrong: int) -> None:
        """What was delivered since the last look, and how much of it nobody asked for."""
        self._recent.append((delivered, wrong))
        every, unasked = map(sum, zip(*self._recent, strict=True))
        if every:
            self.times.append(at)
            self.rates.append(unasked / every)

    def change(self) -> None:
        """Another index is live from now on."""
        self.changed.append(len(self.rates))
        self._recent.clear()

    def picture(self) -> list[Text]:
        """The rate as it is now, and how it came there."""
        now = f"{self.rates[-1]:.1%}" if self.rates else "–"
        title = Text(f"false positives, share of deliveries: {now} now", style="bold")
        return [title, chart(self.rates, *CHART, self.changed)]

    def to_json(self) -> dict[str, Any]:
        """The rate before the index first changed and since, None where it did not; a mean over equal times."""
        first = self.changed[0] if self.changed else len(self.rates)
        parts = (self.rates[:first], self.rates[first:])
        before, after = (round(sum(part) / len(part), 4) if part else None for part in parts)
        learning = {"changes": len(self.changed), "learning": self.failure or "done"}
        return {"rate_before": before, "rate_after": after} | learning

    def summary(self) -> str:
        rates = self.to_json()
        if rates["rate_before"] is None or rates["rate_after"] is None:
            return f"no new index went live: {self.failure or 'the replay was over before'}"
        before, after = (f"{rates[name]:.1%}" for name in ("rate_before", "rate_after"))
        return f"{before} false positives until Spark's first index was live, {after} since"

    def draw(self, path: Path) -> None:
        changed = [self.times[min(at, len(self.times) - 1)] for at in self.changed]
        save(path, self.times, self.rates, changed, "Weather on a fat tree: a better index goes live")
