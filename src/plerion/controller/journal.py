"""The controller's memory: every accepted input, on disk before it is answered.

SQLite in WAL mode with full synchronisation: an input that `append` returned from survives a kill and a power cut. A
journal belongs to one set of settings; opened with others it says so instead of replaying nonsense.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import msgspec

from plerion.controller.inputs import Input
from plerion.controller.state import Settings
from plerion.index.codec import to_json

VERSION = "1"


class JournalError(RuntimeError):
    """A journal that cannot be used, with its file and what to do."""


class Journal:
    """An append-only list of inputs in one file."""

    def __init__(self, path: str | Path, settings: Settings) -> None:
        self._path = path
        try:
            self._database = sqlite3.connect(path, isolation_level=None)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = FULL")
            self._database.execute("CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT)")
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS inputs (number INTEGER PRIMARY KEY, body BLOB)"
            )
            self._check(fingerprint(settings))
        except sqlite3.Error as error:
            raise JournalError(f"{path}: {error}: it is not a journal, or not writable") from None

    def append(self, inputs: Iterable[Input]) -> None:
        """Returns when all of them are on disk; all or none."""
        with self._transaction():
            self._insert(inputs)

    def replay(self) -> Iterator[Input]:
        """All inputs in their order; one that cannot be read stops it with its number."""
        for number, body in self._database.execute("SELECT number, body FROM inputs ORDER BY number"):
            try:
                yield msgspec.msgpack.decode(body, type=Input)
            except msgspec.MsgspecError as error:
                raise JournalError(f"{self._path}: input {number} is damaged: {error}") from None

    def compact(self, live: Iterable[Input]) -> None:
        """Replaces the whole list by a shorter one with the same outcome, in one transaction."""
        with self._transaction():
            self._database.execute("DELETE FROM inputs")
            self._insert(live)

    def __len__(self) -> int:
        (count,) = self._database.execute("SELECT count(*) FROM inputs").fetchone()
        return int(count)

    def close(self) -> None:
        self._database.close()

    def _insert(self, inputs: Iterable[Input]) -> None:
        rows = ((msgspec.msgpack.encode(received),) for received in inputs)
        self._database.executemany("INSERT INTO inputs (body) VALUES (?)", rows)

    def _check(self, expected: str) -> None:
        self._database.execute("INSERT OR IGNORE INTO about VALUES ('version', ?)", (VERSION,))
        self._database.execute("INSERT OR IGNORE INTO about VALUES ('settings', ?)", (expected,))
        about = dict(self._database.execute("SELECT name, value FROM about").fetchall())
        if about["version"] != VERSION:
            raise JournalError(
                f"{self._path}: version {about['version']}, this release reads version {VERSION}"
            )
        if about["settings"] != expected:
            raise JournalError(
                f"{self._path}: written for another topology or index; give this one a file of its own"
            )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")


def fingerprint(settings: Settings) -> str:
    """Tells apart settings under which the same inputs would mean something else."""
    document = (
        settings.topology.to_json(),
        settings.budget,
        settings.max_trees,
        sorted(settings.tcam.items()),
    )
    return sha256(msgspec.json.encode(document) + to_json(settings.index)).hexdigest()
