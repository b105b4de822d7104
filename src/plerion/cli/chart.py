"""Numbers over time as a picture: in the terminal while they come, and as a file afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

BLOCKS = " ▁▂▃▄▅▆▇█"


def chart(values: Sequence[float], width: int, height: int = 5, marks: Sequence[int] = ()) -> Text:
    """The values from 0 to 1 as bars, the latest on the right; columns that are marked have another colour."""
    shown = [*values][-width:]
    skipped = len(values) - len(shown)
    lines = []
    for row in range(height, 0, -1):
        label = f"{row / height:4.0%} " if row in (height, 1) else "     "
        line = Text(label, style="dim")
        for at, value in enumerate(shown):
            level = round(min(1.0, max(0.0, value)) * height * 8) - 8 * (row - 1)
            colour = "green" if any(mark <= at + skipped for mark in marks) else "yellow"
            line.append(BLOCKS[min(8, max(0, level))], style=colour)
        lines.append(line)
    return Text("\n").join(lines)


def save(
    path: Path, times: Sequence[float], rates: Sequence[float], changed: Sequence[float], title: str
) -> None:
    """The rate over time, with the moment at which the index changed."""
    import matplotlib as mpl  # noqa: PLC0415 - it loads slowly

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415 - as above

    figure, panel = plt.subplots(figsize=(8, 3.6), layout="constrained")
    panel.plot(times, [100 * rate for rate in rates], color="#0072b2")
    for at in changed:
        panel.axvline(at, color="#d55e00", linestyle="--")
        panel.annotate("new index live", (at, 94), xytext=(4, 0), textcoords="offset points", color="#d55e00")
    panel.set_xlabel("seconds")
    panel.set_ylabel("false positives, % of deliveries")
    panel.set_ylim(0, 100)
    panel.grid(alpha=0.3)
    panel.set_title(title)
    figure.savefig(path, dpi=150)
    plt.close(figure)
