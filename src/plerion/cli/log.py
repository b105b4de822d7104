"""`plerion log`: fill an event log from files, and see what it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from plerion.cli.options import EventsFile, Json
from plerion.cli.output import complain, print_facts, print_json, print_table
from plerion.content.errors import InputError
from plerion.content.schema import read_schema
from plerion.eventlog.imports import Options, Outcome, import_files
from plerion.eventlog.part import Part
from plerion.eventlog.reader import LogReader, Skipped
from plerion.eventlog.receipts import Receipt, receipts
from plerion.eventlog.records import MICROS, Kind

LogFolder = Annotated[Path, typer.Option("--log", help="Directory of the log.")]
SchemaFile = Annotated[Path, typer.Option("--schema", help="Schema: YAML with a list of attributes.")]
Subscriptions = Annotated[
    Path | None,
    typer.Option(help="Subscriptions, live from the first event on: CSV or Parquet, filters or ranges."),
]
Publisher = Annotated[str, typer.Option(help="Who sent the events of which the file does not say it.")]
Sample = Annotated[float, typer.Option(help="Share of the events to keep, chosen by publisher and number.")]
Start = Annotated[
    str | None,
    typer.Option(
        help="Time of the first row, the others one second apart; default: the file's times, or 1970."
    ),
]
Check = Annotated[bool, typer.Option("--check", help="Read every file whole; exit 1 if any is left out.")]
MANY_FILES, FEW_ROWS = 1000, 100

app = typer.Typer(
    help="Fill an event log from files, and see what it holds.", no_args_is_help=True, rich_markup_mode=None
)


@app.command(name="import")
def import_(
    schema: SchemaFile,
    events: EventsFile,
    log: LogFolder,
    subscriptions: Subscriptions = None,
    publisher: Publisher = "import",
    sample: Sample = 1.0,
    start: Start = None,
    json: Json = False,
) -> None:
    """Import a file of events into a log, once: a second time changes nothing.

    plerion log import --schema schema.yaml --events events.csv --subscriptions subscriptions.csv --log log
    """
    space = read_schema(schema)
    options = Options(publisher, sample, None if start is None else _read_time(start))
    with _rows_read(f"importing {events}") as progress:
        sent, asked = import_files(log, space, events, subscriptions, options, progress)
    if json:
        told = {"log": str(log), "events": _document(sent)}
        print_json(told | ({} if asked is None else {"subscriptions": _document(asked)}))
    else:
        for outcome in filter(None, (sent, asked)):
            _print_outcome(outcome, log)
    if sent.receipt.files > MANY_FILES and sent.receipt.kept < FEW_ROWS * sent.receipt.files:
        complain(
            f"warning: {sent.receipt.files:,} small files, one an hour; --start sets rows a second apart"
        )


@app.command()
def show(log: LogFolder, check: Check = False, json: Json = False) -> None:
    """Show what a log holds, and what in its directory is left out and why.

    plerion log show --log log
    """
    if not log.is_dir():
        raise InputError(
            "there is no such directory", "name one that `log import` or a client wrote", str(log)
        )
    reader = LogReader(log)
    with _rows_read(f"reading {log}") as progress:
        held = {kind: _Held.of(reader.parts(kind, whole=check), progress) for kind in Kind}
    skipped = [skip for kind in held.values() for skip in kind.skipped]
    names = [] if reader.schema is None else list(reader.schema.names)
    if json:
        document = {kind.value: found.facts() for kind, found in held.items()}
        named = [{"path": str(skip.path), "reason": skip.reason} for skip in skipped]
        imported = [receipt.source for receipt in receipts(log)]
        told = {"log": str(log), "attributes": names, "imported": imported}
        print_json(told | {"kinds": document, "skipped": named})
    else:
        rows = [(kind.value, *map(_brief, found.facts().values())) for kind, found in held.items()]
        print_table(f"{log}: {', '.join(names) or 'empty'}", ("", *_Held().facts()), rows)
        if skipped:
            print_table("left out", ("path", "reason"), ((skip.path, skip.reason) for skip in skipped))
    if check and skipped:
        raise typer.Exit(1)


@dataclass(slots=True)
class _Held:
    """What the log holds of one kind."""

    files: int = 0
    rows: int = 0
    hours: set[str] = field(default_factory=set)
    first: int | None = None
    last: int | None = None
    skipped: list[Skipped] = field(default_factory=list)

    @classmethod
    def of(cls, parts: Iterable[Part | Skipped], progress: Callable[[int], None]) -> _Held:
        held = cls()
        for part in parts:
            if isinstance(part, Skipped):
                held.skipped.append(part)
                continue
            held.files += 1
            held.rows += part.rows
            held.hours.add(part.path.parent.name)
            held.first = part.first if held.first is None else min(held.first, part.first)
            held.last = part.last if held.last is None else max(held.last, part.last)
            progress(held.rows)
        return held

    def facts(self) -> dict[str, int | str | None]:
        span = {"first": _written(self.first), "last": _written(self.last)}
        return {"files": self.files, "rows": self.rows, "hours": len(self.hours), **span}


def _document(outcome: Outcome) -> dict[str, Any]:
    receipt = outcome.receipt
    document = {"file": receipt.source, "already": outcome.already, **_numbers(receipt)}
    if receipt.kind == Kind.EVENTS:
        document |= {"missing": receipt.missing, "clamped": receipt.clamped, "absent": receipt.absent}
    return document


def _numbers(receipt: Receipt) -> dict[str, Any]:
    span = [
        None if time is None else _written(round(time * MICROS)) for time in (receipt.first, receipt.last)
    ]
    numbers = {"rows": receipt.rows, "kept": receipt.kept, "files": receipt.files}
    return {**numbers, "first": span[0], "last": span[1]}


def _print_outcome(outcome: Outcome, log: Path) -> None:
    receipt = outcome.receipt
    became = "was there already, nothing changed" if outcome.already else f"is now in {log}"
    facts = _numbers(receipt)
    for name, counts in (("missing", receipt.missing), ("moved to the border", receipt.clamped)):
        if counts:
            facts[name] = ", ".join(f"{attribute} {count:,}" for attribute, count in counts.items())
    if receipt.absent:
        facts["no column"] = ", ".join(receipt.absent)
    print_facts(f"{receipt.source} ({receipt.kind}) {became}", facts)


def _written(micro: int | None) -> str | None:
    """The time in the usual notation, `2013-04-01T00:00:00Z`."""
    return None if micro is None else f"{np.datetime64(micro, 'us').item().isoformat()}Z"


def _brief(fact: int | str | None) -> int | str:
    """For people a time is as long as its minutes."""
    return fact[:16].replace("T", " ") if isinstance(fact, str) else "" if fact is None else fact


def _read_time(text: str) -> float:
    """A number of seconds since 1970, or a time in the usual notation, in UTC unless it says otherwise."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"--start {text!r} is no time", "write it as 2018-04-26T14:48:09Z") from None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


@contextmanager
def _rows_read(what: str) -> Iterator[Callable[[int], None]]:
    """A line with a growing number on a terminal, and nothing in a pipe."""
    console = Console(stderr=True)
    told = TextColumn("{task.description} {task.completed:,.0f} rows", markup=False)
    line = (SpinnerColumn(), told, TimeElapsedColumn())
    with Progress(*line, console=console, transient=True, disable=not console.is_terminal) as shown:
        task = shown.add_task(what, total=None)
        yield lambda rows: shown.update(task, completed=rows)


command = app
