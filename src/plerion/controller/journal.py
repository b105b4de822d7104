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
        with self._named("it is not a journal, or not writable"):
            self._database = sqlite3.connect(path, isolation_level=None)
        try:
            with self._named("it is not a journal, or not writable"):
                self._database.execute("PRAGMA journal_mode = WAL")
                self._database.execute("PRAGMA synchronous = FULL")
                self._database.execute("CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT)")
                self._database.execute(
                    "CREATE TABLE IF NOT EXISTS inputs (number INTEGER PRIMARY KEY, body BLOB)"
                )
                self._check(fingerprint(settings))
        except JournalError:
            self.close()
            raise

    def append(self, inputs: Iterable[Input]) -> None:
        """Returns when all of them are on disk; all or none. Raises `JournalError` when the disk does not take them."""
        with self._transaction():
            self._insert(inputs)

    def replay(self) -> Iterator[Input]:
        """All inputs in their order; one that cannot be read stops it with its number."""
        with self._named("the file is damaged; put a copy of it in its place"):
            for number, body in self._database.execute("SELECT number, body FROM inputs ORDER BY number"):
                try:
                    received = msgspec.msgpack.decode(body, type=Input)
                except (msgspec.MsgspecError, TypeError) as error:
                    raise JournalError(f"{self._path}: input {number} is damaged: {error}") from None
                yield received

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
        with self._named("nothing of this was kept"):
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:  # SQLite itself ends one that the disk had no room for
                    self._database.execute("ROLLBACK")
                raise

    @contextmanager
    def _named(self, meaning: str) -> Iterator[None]:
        """What SQLite says, with the file's name and what it means for a journal."""
        try:
            yield
        except sqlite3.Error as error:
            raise JournalError(f"{self._path}: {error}: {meaning}") from None


def fingerprint(settings: Settings) -> str:
    """Tells apart settings under which the same inputs would mean something else."""
    document = (
        settings.topology.to_json(),
        settings.budget,
        settings.max_trees,
        sorted(settings.tcam.items()),
    )
    return sha256(msgspec.json.encode(document) + to_json(settings.index)).hexdigest()
