"""What commands print: JSON for machines, tables for people, complaints on the other stream."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from plerion.content.errors import InputError


def complain(line: str) -> None:
    """One line on standard error, free of characters that a terminal would obey."""
    print("".join(c if c.isprintable() else "·" for c in line), file=sys.stderr)


def print_json(document: Any) -> None:
    sys.stdout.write(msgspec.json.encode(document).decode() + "\n")


def print_facts(title: str, facts: Mapping[str, object]) -> None:
    """Names and values, one a line."""
    print_table(title, ("", ""), ((name, _text(value)) for name, value in facts.items()))


def print_table(title: str, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    table = Table(header_style="bold", box=None, pad_edge=False, show_header=any(columns := tuple(columns)))
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(_text, row))
    console = Console(highlight=False, markup=False)
    console.print(title, style="bold")
    console.print(table)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


@contextmanager
def progress(what: str) -> Iterator[None]:
    """A line that moves on a terminal while something long goes on, and nothing in a pipe."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as shown:
        shown.add_task(what, total=None)
        yield


@contextmanager
def writer(path: str) -> Iterator[IO[bytes]]:
    """The file, or standard output for ``-``; a file that could not be finished does not stay behind."""
    if path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    if not target.name or target.is_dir():
        raise InputError(
            "this is no file", "give the name of a file, or - for standard output", path or "--out"
        )
    partial = target.with_name(f".{target.name}.partial")
    try:
        with partial.open("wb") as file:
            yield file
        partial.replace(target)
    except OSError as error:
        if error.filename == str(partial):
            error.filename = path
        raise
    finally:
        partial.unlink(missing_ok=True)
