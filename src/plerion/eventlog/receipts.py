"""What a log remembers of the files that were imported into it: one receipt a file, told by its content.

Receipts and everything else under construction lie in folders that start with '_', which readers and Spark pass over.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import file_digest
from pathlib import Path

import msgspec

from plerion.eventlog.disk import write_whole
from plerion.eventlog.records import Kind, LogError

FOLDER = "_imports"


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one file: of `rows` rows, `kept` are in the log in `files` parts, by the given options.

    Events have sequence numbers from `first_sequence` on. `first` and `last` are the earliest and latest time of all
    rows, in seconds since 1970. The counts are by attribute and leave out zeros.
    """

    version: int = 1
    kind: Kind
    source: str
    digest: str
    options: dict[str, str | float | None]
    rows: int
    kept: int
    files: int
    first_sequence: int = 0
    first: float | None = None
    last: float | None = None
    missing: dict[str, int] = {}
    clamped: dict[str, int] = {}
    absent: list[str] = []


def digest_of(path: Path) -> str:
    """Tells contents of files apart; reads all of it."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()[:32]


def writer_of(digest: str) -> str:
    """The writer's name in the parts that come from a file."""
    return f"import.{digest[:16]}"


def parts_of(log: Path, kind: Kind, digest: str) -> list[Path]:
    """The parts in the log that come from a file."""
    return list((log / kind).glob(f"hour=*/part-{writer_of(digest)}-*"))


def receipts(log: Path) -> list[Receipt]:
    """All receipts that can be read, by their source's name; a file without one is imported anew."""
    found = []
    for path in (log / FOLDER).glob("[!._]*.json"):
        with suppress(OSError, msgspec.MsgspecError):
            found.append(msgspec.json.decode(path.read_bytes(), type=Receipt))
    return sorted(found, key=lambda receipt: (receipt.source, receipt.digest))


def keep(log: Path, receipt: Receipt) -> None:
    """The receipt, or the one that was there before, survives whatever happens."""
    write_whole(log / FOLDER / f"{receipt.kind}-{receipt.digest}.json", msgspec.json.encode(receipt))


@contextmanager
def alone(log: Path) -> Iterator[None]:
    """One import at a time; the directory is made, and goes again if nothing came into it."""
    log.mkdir(parents=True, exist_ok=True)
    opened = os.open(log, os.O_RDONLY)
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LogError(f"{log}: another import is under way", "wait until it has ended") from None
        yield
    finally:
        os.close(opened)
        with suppress(OSError):  # something is in it
            log.rmdir()
