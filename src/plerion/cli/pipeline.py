"""`plerion pipeline`: watch a log on Spark, and get a new index proposed when the one in use no longer fits."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Annotated, Any

import typer

from plerion.cli.options import BUDGET, MASTER, Budget, IndexFile, Json, Master, Remote
from plerion.cli.output import complain, print_json
from plerion.content.errors import InputError
from plerion.index.codec import read_index
from plerion.learning.propose import METHODS, Request
from plerion.pipeline.options import CLUSTERS, Options

Line = dict[str, Any]
Tell = Callable[[Line], None]

LogFolder = Annotated[
    Path, typer.Option("--log", help="Directory of the log, as clients and `log import` write it.")
]
Checkpoint = Annotated[
    Path,
    typer.Option(help="Directory that remembers what was read; holds the results, too: windows, proposals."),
]
Subscriptions = Annotated[
    Path | None, typer.Option(help="Subscriptions: CSV or Parquet; default: those in the log.")
]
Window = Annotated[float, typer.Option(min=0.001, help="Seconds of a window, of the events' time.")]
Late = Annotated[float, typer.Option(min=0.0, help="Seconds that a window stays open past its end.")]
Threshold = Annotated[
    float, typer.Option(min=0.0, max=1.0, help="False-positive rate above which a new index is asked for.")
]
Period = Annotated[float | None, typer.Option(min=0.001, help="Ask for one after so many seconds anyhow.")]
Drift = Annotated[
    float,
    typer.Option(min=0.0, max=1.0, help="Distance of an attribute's values from before that is too much."),
]
Margin = Annotated[
    float, typer.Option(min=0.0, max=1.0, help="By which part a new rate has to be lower to be proposed.")
]
Proposals = Annotated[Path | None, typer.Option(help="Where proposals go; default: in the checkpoint.")]
Bits = Annotated[
    int | None, typer.Option(min=1, max=112, help="Bits of a new index; default: as the one in use.")
]
Method = Annotated[str, typer.Option(help=f"How cuts are found: {', '.join(METHODS)}.")]
Select = Annotated[str, typer.Option(help="How attributes are selected, or their names; none means all.")]
Clusters = Annotated[
    int, typer.Option(min=1, max=256, help="Clusters of a new index; fewer are found sooner.")
]
Sample = Annotated[int, typer.Option(min=200, max=1 << 20, help="Recent events that an index is made from.")]
Once = Annotated[bool, typer.Option("--once", help="Read what is in the log now, and end.")]

COLUMNS = {
    "window": 17,
    "events": 11,
    "deliveries": 12,
    "wanted": 11,
    "false_positives": 15,
    "rate": 8,
    "drift": 7,
    "verdict": 10,
}

app = typer.Typer(
    help="Watch a log on Spark, and get a better index proposed.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def pipeline() -> None:
    """Watch a log on Spark, and get a better index proposed."""


@app.command()
def watch(
    *,
    log: LogFolder,
    index: IndexFile,
    checkpoint: Checkpoint,
    subscriptions: Subscriptions = None,
    window: Window = 60.0,
    late: Late = 2.0,
    threshold: Threshold = 0.5,
    period: Period = None,
    drift: Drift = 0.2,
    margin: Margin = 0.05,
    proposals: Proposals = None,
    bits: Bits = None,
    method: Method = "boundary",
    select: Select = "none",
    clusters: Clusters = CLUSTERS,
    budget: Budget = BUDGET,
    sample: Sample = 8192,
    master: Master = MASTER,
    remote: Remote = None,
    once: Once = False,
    json: Json = False,
) -> None:
    """Tell the false-positive rate by window as the log grows, and propose a new index when it drifts; Ctrl-C ends it.

    plerion pipeline watch --log log --index index.json --checkpoint watch --once
    """
    wanted = Request(budget=budget, method=method, select=select, clusters=clusters)
    options = Options(
        log, index, checkpoint, subscriptions, proposals, window, late, threshold, drift, period
    )
    options = replace(options, margin=margin, sample=sample, bits=bits, request=wanted)
    _run(options, master, remote, once, print_line if json else table_rows())


def _run(options: Options, master: str, remote: str | None, once: bool, tell: Tell) -> None:
    if remote:
        what = "--remote: a watch works in the process that runs Spark, not through Spark Connect"
        raise InputError(what, "use --master")
    read_index(options.index)  # before Spark takes seconds to start
    from plerion.pipeline.session import session  # noqa: PLC0415 - Spark loads slowly

    with _stopping() as stop, session(master) as running:
        from plerion.pipeline.stream import watch as watched  # noqa: PLC0415 - Spark loads slowly

        left = watched(running.spark, options, stop, once, tell, complain)
    complain(
        f"{left.open_windows} windows are open and wait for later events; since the last line "
        f"{left.late} records were late and {left.skipped} files left out"
    )


@contextmanager
def _stopping() -> Iterator[Event]:
    """An event that Ctrl-C or a termination sets, so that what is under way comes to its end."""
    stop = Event()
    kept = [
        (number, signal.signal(number, lambda *_: stop.set())) for number in (signal.SIGINT, signal.SIGTERM)
    ]
    try:
        yield stop
    finally:
        for number, handler in kept:
            signal.signal(number, handler)


def print_line(line: Line) -> None:
    print_json(line)
    sys.stdout.flush()


def table_rows() -> Tell:
    """Prints a row a window, the names of the columns before the first."""
    told = False

    def tell(line: Line) -> None:
        nonlocal told
        if not told:
            _print_cells([name.replace("_", " ") for name in COLUMNS])
            told = True
        cells = [_brief(line[name]) for name in COLUMNS]
        _print_cells([*cells[:-1], f"{cells[-1]} ({line['reason']})" if line["reason"] else cells[-1]])

    return tell


def _brief(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4f}" if 0 < abs(value) < 1 else f"{value:,.0f}"
    return str(value)


def _print_cells(cells: list[str]) -> None:
    first, *middle, last = zip(cells, COLUMNS.values(), strict=True)
    print(first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in middle), "", last[0], flush=True)


command = app
