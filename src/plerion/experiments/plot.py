"""Rows as a picture: one axis a panel, one line a name, the spread over seeds as a band."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

from plerion.experiments.figure import Figure, Row, curve, is_ours, lines, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Page

# Okabe and Ito's colours, which stay apart for every kind of colour vision; yellow is too pale for a line.
COLOURS: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#000000")
OURS_COLOUR: Final = "#D55E00"
MARKERS: Final = "os^vDP"
STYLE: Final = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
WIDE: Final = 3  # panels side by side
DENSE: Final = 16  # dots of a line, from which on they are not marked one by one


def draw(figure: Figure, rows: Sequence[Row], note: str, stem: Path) -> None:
    """Writes `stem`.png and `stem`.svg."""
    import matplotlib as mpl  # noqa: PLC0415 - takes a second, and only pictures need it

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - as above

    shown = panels(rows)
    across = 2 if len(shown) == 4 else min(WIDE, len(shown))
    down = -(-len(shown) // across)
    size = (6.4 if across == 1 else 4.2 * across, 4.4 if down == 1 else 3.6 * down + 0.6)
    style: Any = {**STYLE, "svg.hashsalt": figure.name}  # else equal pictures would have different ids
    with plt.rc_context(style):
        page, grid = plt.subplots(down, across, figsize=size, squeeze=False, layout="constrained")
        for axes, panel in zip(grid.flat, shown, strict=False):
            _panel(axes, figure, [row for row in rows if row.panel == panel], panel if len(shown) > 1 else "")
        for axes in list(grid.flat)[len(shown) :]:
            axes.set_axis_off()
        _legend(page, fill(note, int(14 * size[0])))
        page.suptitle(figure.title, fontsize=12, fontweight="bold")
        for kind in ("png", "svg"):
            page.savefig(
                stem.with_name(f"{stem.name}.{kind}"),
                dpi=144,
                metadata={"Date": None} if kind == "svg" else None,
            )
        plt.close(page)


def _legend(page: Page, note: str) -> None:
    """Below the panels, which all have the same lines, and outside them: it would hide dots."""
    shapes, names = page.axes[0].get_legend_handles_labels()
    below = page.legend(
        shapes,
        names,
        loc="outside lower center",
        ncols=3,
        fontsize=9,
        frameon=False,
        title=note,
        title_fontsize=8,
    )
    below.get_title().set(color="0.35", ha="center")


def _panel(axes: Axes, figure: Figure, rows: Sequence[Row], title: str) -> None:
    for place, line in enumerate(lines(rows)):
        ours = is_ours(line)
        means = curve(rows, line)
        colour = OURS_COLOUR if ours else COLOURS[place % len(COLOURS)]
        xs = list(means)
        axes.plot(
            xs,
            list(means.values()),
            color=colour,
            label=line,
            markersize=9 if ours else max(3.5, 8 - 1.5 * place),  # none hides another
            marker="" if len(xs) >= DENSE else "*" if ours else MARKERS[place % len(MARKERS)],
            linestyle="--" if ours else "-",
        )
        by_x = [[row.y for row in rows if row.line == line and row.x == x] for x in xs]
        axes.fill_between(
            xs, [min(ys) for ys in by_x], [max(ys) for ys in by_x], color=colour, alpha=0.12, lw=0
        )
    _axes(axes, figure, rows)
    axes.set_title(title, fontsize=10)


def _axes(axes: Axes, figure: Figure, rows: Sequence[Row]) -> None:
    from matplotlib.ticker import FuncFormatter, NullLocator, StrMethodFormatter  # noqa: PLC0415 - as above

    xs = sorted({row.x for row in rows})
    if "x" in figure.log:
        axes.set_xscale("log")
    if len(xs) < DENSE:
        axes.set_xticks(xs, [f"{x:,.0f}" for x in xs])
        axes.xaxis.set_minor_locator(NullLocator())
    if "y" in figure.log:
        axes.set_yscale("log")
    elif figure.rates:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{100 * y:g} %"))
    else:
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    if figure.emulated and "y" not in figure.log:
        axes.set_ylim(bottom=0)
    if figure.reversed_x:
        axes.invert_xaxis()
    axes.set_xlabel(figure.x)
    axes.set_ylabel(figure.y)
    axes.grid(alpha=0.3)
