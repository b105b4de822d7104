"""`plerion reproduce`: the papers' figures, computed again, each with a verdict on its claim."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from plerion.cli.options import Json
from plerion.cli.output import print_json, print_table, writer
from plerion.content.errors import InputError
from plerion.experiments.figure import Figure, Row
from plerion.experiments.figures import named, points, read_rows, work
from plerion.experiments.lab_site import obstacle
from plerion.experiments.plot import draw
from plerion.pipeline.session import Session, session
from plerion.pipeline.sweep import sweep

Facts = dict[str, Any]
NEEDS_FILES = "needs the real data sets: name their directory with --data"


def reproduce(
    figures: Annotated[list[str] | None, typer.Argument(help="Such as 004-11a; all for none.")] = None,
    out: Annotated[Path, typer.Option(help="Where tables, pictures and verdicts go.")] = Path("figures"),
    data: Annotated[
        Path | None, typer.Option(exists=True, file_okay=False, help="Directory of the real data sets.")
    ] = None,
    scale: Annotated[float, typer.Option(min=0.001, max=1.0, help="Share of the papers' sizes.")] = 1.0,
    seeds: Annotated[int, typer.Option(min=1, help="Workloads that are averaged over.")] = 1,
    master: Annotated[str, typer.Option(help="Where Spark runs.")] = "local[*]",
    json: Json = False,
    listed: Annotated[bool, typer.Option("--list", help="Say what there is, and compute nothing.")] = False,
) -> None:
    """Compute the papers' figures again, and say whether what they claim holds here.

    plerion reproduce 004-11a 004-12b --scale 0.05 --out figures
    """
    chosen = named(figures or [])
    if listed:
        _show("figures", ("figure", "title", "claim"), [_described(figure) for figure in chosen], json)
        return
    _check_files(chosen if figures or data else [], data)
    missing = _missing(chosen, data, named=bool(figures))
    out.mkdir(parents=True, exist_ok=True)
    found: list[Facts] = [_left_out(f, missing[f.name]) for f in chosen if f.name in missing]
    able = [figure for figure in chosen if figure.name not in missing]
    # Spark starts after what clocks are read for, and not at all where nothing is for it.
    able.sort(key=lambda figure: (not figure.lab, not figure.here))
    with ExitStack() as started:
        running: Session | None = None
        for figure in able:
            if running is None and not figure.here:
                running = started.enter_context(session(master))
            found.append(_reproduced(None if figure.here else running, figure, out, scale, seeds, data))
            _keep(out / "verdicts.json", found)
    _show(f"verdicts at scale {scale:g}", ("figure", "verdict", "because", "seconds"), found, json)


def _check_files(figures: list[Figure], data: Path | None) -> None:
    """Refuses what would fail much later, on another machine."""
    for figure in figures:
        if figure.files and data is None:
            raise InputError(f"{figure.name} needs real data sets", "name their directory with --data")
        for file in figure.files:
            if data is not None and not (data / file).is_file():
                raise InputError(f"{figure.name} needs {file}, which is not in {data}")


def _keep(path: Path, found: list[Facts]) -> None:
    """Writes the verdicts beside those of other figures that are there from earlier."""
    earlier: list[Facts] = msgspec.json.decode(path.read_bytes()) if path.exists() else []
    merged = {fact["figure"]: fact for fact in (*earlier, *found)}
    with writer(str(path)) as file:
        file.write(
            msgspec.json.format(msgspec.json.encode([merged[name] for name in sorted(merged)]), indent=1)
        )


def _show(title: str, columns: tuple[str, ...], facts: list[Facts], json: bool) -> None:
    if json:
        print_json(facts)
    else:
        print_table(title, columns, [[fact[column] for column in columns] for fact in facts])


def _described(figure: Figure) -> Facts:
    return {"figure": figure.name, "title": figure.title, "claim": figure.claim, "settings": figure.settings}


def _missing(figures: list[Figure], data: Path | None, named: bool) -> dict[str, str]:
    """What figures need and have not got; refuses one that was named and cannot be measured here."""
    found = {figure.name: NEEDS_FILES for figure in figures if figure.files and data is None}
    measured = [figure.name for figure in figures if figure.lab]
    if measured and (error := obstacle()) is not None:
        if named:
            raise InputError(f"{measured[0]} is measured on real switches: {error}")
        found |= dict.fromkeys(measured, str(error))
    return found


def _left_out(figure: Figure, because: str) -> Facts:
    return {**_described(figure), "verdict": "not computed", "because": because, "seconds": 0.0}


def _reproduced(
    running: Session | None, figure: Figure, out: Path, scale: float, seeds: int, data: Path | None
) -> Facts:
    """Writes the table and the pictures of a figure, and says how its claim fared."""
    began = monotonic()
    todo = points(figure, scale, seeds, "" if data is None else str(data.resolve()))
    rows: list[Row] = []
    with (out / f"{figure.name}.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("panel", "line", "x", "y", "seed"))
        for fresh in _computed(running, figure, todo):
            table.writerows((row.panel, row.line, row.x, row.y, row.seed) for row in fresh)
            file.flush()
            rows += fresh
    places = {start.panel: at for at, start in enumerate(figure.starts)}
    rows.sort(key=lambda row: (places[row.panel], row.line, row.x, row.seed))
    draw(figure, rows, _note(figure, scale, seeds), out / figure.name)
    verdict = figure.verdict(rows)
    facts = {"verdict": verdict.holds, "because": verdict.because, "seconds": round(monotonic() - began, 1)}
    return {**_described(figure), **facts, "scale": scale, "seeds": seeds}


def _note(figure: Figure, scale: float, seeds: int) -> str:
    part = "" if scale == 1 else f"; at {scale:g} of these numbers"
    return f"{figure.settings}{part}; mean of {seeds} seeds" if seeds > 1 else f"{figure.settings}{part}"


def _computed(running: Session | None, figure: Figure, todo: list[str]) -> Iterator[list[Row]]:
    """Rows as they come, with a bar on a terminal; where clocks are read, one point after the other."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
        bar = shown.add_task(figure.name, total=len(todo))
        for some in [todo] if figure.together and not figure.here else [[point] for point in todo]:
            for text in map(work, some) if running is None else sweep(running, some, work):
                yield read_rows(text)
                shown.advance(bar)


command = reproduce
