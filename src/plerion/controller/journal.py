"""The controller's memory: every accepted input, on disk before it is answered.

SQLite in WAL mode with full synchronisation: an input that `append` returned from survives a kill and a power cut. A
journal belongs to one topology and index; opened with others it says so instead of replaying nonsense, while budgets
and limits may change from start to start. It belongs to one controller, too: while one has it open another one is
refused, because each would undo what the other tells switches.

It keeps what the controller speaks, too: the language that is in force with those before it, and of a rollout that is
under way how far it has come, so that a controller that was killed in it leads it on, or back.

Beside the inputs it keeps what their filter texts were found to mean. That is a copy of what parsing gives, there
because parsing takes most of the time of a start; nothing but time is lost with it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b, sha256
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

from plerion.controller.inputs import Advertise, Input, Subscribe
from plerion.controller.language import Language
from plerion.controller.state import Settings
from plerion.index.codec import to_json
from plerion.index.cover import Floats

VERSION = "2"
T = TypeVar("T")
LANGUAGES = 16  # the latest that are kept
PATIENCE_SECONDS = 1.0  # for a predecessor that is just ending
MAX_REGION_BYTES = 4096  # larger ones cost more to keep than to find again


class Pending(msgspec.Struct, frozen=True):
    """A rollout that began and did not end: where it leads, by which plan, and how far it has come."""

    language: Language
    strategy: str
    options: bytes  # as the rollout was made with them
    digest: bytes  # of the plan: with other settings or another release it may be another one
    number: int = -1  # of the round that began last
    back: bool = False


class JournalError(RuntimeError):
    """A journal that cannot be used, with its file and what to do."""


class Journal:
    """An append-only list of inputs in one file."""

    def __init__(self, path: str | Path, settings: Settings) -> None:
        self._path = path
        self._width = len(settings.index.schema.attributes)
        with self._named("it is not a journal, or not writable"):
            self._database = sqlite3.connect(path, isolation_level=None, timeout=PATIENCE_SECONDS)
        try:
            with self._named("it is not a journal, or not writable"):
                self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
                self._database.execute("PRAGMA journal_mode = WAL")
                self._database.execute("PRAGMA synchronous = FULL")
                self._database.execute("CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT)")
                self._database.execute(
                    "CREATE TABLE IF NOT EXISTS inputs (number INTEGER PRIMARY KEY, body BLOB)"
                )
                self._database.execute(
                    "CREATE TABLE IF NOT EXISTS regions (filter BLOB PRIMARY KEY, bounds BLOB)"
                )
                self._database.execute(
                    "CREATE TABLE IF NOT EXISTS languages (number INTEGER PRIMARY KEY, body BLOB)"
                )
                self._database.execute(
                    "CREATE TABLE IF NOT EXISTS rollout (one INTEGER PRIMARY KEY, body BLOB)"
                )
                self._check(fingerprint(settings))
        except JournalError:
            self.close()
            raise

    def append(self, inputs: Iterable[Input], regions: Mapping[str, Floats] | None = None) -> None:
        """Returns when all of them are on disk; all or none. Raises `JournalError` when the disk does not take them.

        `regions` gives the boxes of filter texts among them, to be found again by `regions`.
        """
        with self._transaction():
            self._insert(inputs)
            self._insert_regions(regions or {})

    def replay(self) -> Iterator[Input]:
        """All inputs in their order; one that cannot be read stops it with its number."""
        with self._named("the file is damaged; put a copy of it in its place"):
            for number, body in self._database.execute("SELECT number, body FROM inputs ORDER BY number"):
                try:
                    received = msgspec.msgpack.decode(body, type=Input)
                except (msgspec.MsgspecError, TypeError) as error:
                    raise JournalError(f"{self._path}: input {number} is damaged: {error}") from None
                yield received

    def regions(self) -> Mapping[bytes, Floats]:
        """The boxes of filter texts, by `digest`; those of any text may be missing."""
        with self._named("the file is damaged; put a copy of it in its place"):
            rows = self._database.execute("SELECT filter, bounds FROM regions").fetchall()
        sized = (
            (key, np.frombuffer(text, "<f8")) for key, text in rows if len(text) % (16 * self._width) == 0
        )
        return {key: numbers.reshape(-1, self._width, 2) for key, numbers in sized}

    def compact(self, live: Iterable[Input]) -> None:
        """Replaces the whole list by a shorter one with the same outcome, in one transaction."""
        needed: set[bytes] = set()
        with self._transaction():
            self._database.execute("DELETE FROM inputs")
            self._insert(_noting_texts(live, needed))
            kept = [key for (key,) in self._database.execute("SELECT filter FROM regions")]
            gone = ((key,) for key in kept if key not in needed)
            self._database.executemany("DELETE FROM regions WHERE filter = ?", gone)

    def languages(self) -> list[Language]:
        """What was spoken, the present one last; none while it is that of the settings."""
        with self._named("the file is damaged; put a copy of it in its place"):
            rows = self._database.execute("SELECT body FROM languages ORDER BY number").fetchall()
            return [self._read(body, Language) for (body,) in rows]

    def pending(self) -> Pending | None:
        """The rollout that was under way."""
        with self._named("the file is damaged; put a copy of it in its place"):
            row = self._database.execute("SELECT body FROM rollout").fetchone()
            return None if row is None else self._read(row[0], Pending)

    def rolling(self, pending: Pending) -> None:
        """A rollout begins, or a round of it does."""
        with self._transaction():
            self._database.execute(
                "INSERT OR REPLACE INTO rollout VALUES (1, ?)", (msgspec.msgpack.encode(pending),)
            )

    def rolled(self, before: Language, after: Language | None) -> None:
        """The rollout has ended: the network now speaks `after`, or as before when it is None."""
        with self._transaction():
            self._database.execute("DELETE FROM rollout")
            if after is None:
                return
            count = self._database.execute("SELECT count(*) FROM languages").fetchone()[0]
            spoken = [after] if count else [before, after]
            rows = ((msgspec.msgpack.encode(one),) for one in spoken)
            self._database.executemany("INSERT INTO languages (body) VALUES (?)", rows)
            self._database.execute(
                "DELETE FROM languages WHERE number <= (SELECT max(number) FROM languages) - ?", (LANGUAGES,)
            )

    def __len__(self) -> int:
        (count,) = self._database.execute("SELECT count(*) FROM inputs").fetchone()
        return int(count)

    def close(self) -> None:
        self._database.close()

    def _read(self, body: bytes, kind: type[T]) -> T:
        try:
            return msgspec.msgpack.decode(body, type=kind)
        except (msgspec.MsgspecError, TypeError) as error:
            raise JournalError(f"{self._path}: a language or rollout is damaged: {error}") from None

    def _insert(self, inputs: Iterable[Input]) -> None:
        rows = ((msgspec.msgpack.encode(received),) for received in inputs)
        self._database.executemany("INSERT INTO inputs (body) VALUES (?)", rows)

    def _insert_regions(self, regions: Mapping[str, Floats]) -> None:
        rows = (
            (digest(text), found.astype("<f8").tobytes())
            for text, found in regions.items()
            if found.nbytes <= MAX_REGION_BYTES
        )
        self._database.executemany("INSERT OR IGNORE INTO regions VALUES (?, ?)", rows)

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
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                meaning = "another controller has it open; stop that one, or give this one a file of its own"
            raise JournalError(f"{self._path}: {error}: {meaning}") from None


def _noting_texts(inputs: Iterable[Input], digests: set[bytes]) -> Iterator[Input]:
    for received in inputs:
        if isinstance(received, Advertise | Subscribe) and isinstance(received.filter, str):
            digests.add(digest(received.filter))
        yield received


def digest(text: str) -> bytes:
    """What stands for a filter text in `regions`."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def fingerprint(settings: Settings) -> str:
    """Tells apart settings under which the same inputs would mean something else. Budgets and limits say only how.

    The index is the one that the journal began with; what is spoken since is in `languages`.
    """
    return sha256(msgspec.json.encode(settings.topology.to_json()) + to_json(settings.index)).hexdigest()
