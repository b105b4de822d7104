"""Reading a log: what is left out and why, ranges of time, and who was subscribed when."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plerion.content.parse import parse
from plerion.content.read import Interests
from plerion.content.schema import Enumeration, Number, Schema
from plerion.eventlog.part import encoded, part_name
from plerion.eventlog.reader import LogReader, Skipped
from plerion.eventlog.records import Kind, LogError, columns
from plerion.eventlog.writer import LogWriter

SCHEMA = Schema((Number("x", 0, 10), Enumeration("c", ("a", "b"))))
OTHER = Schema((Number("x", 0, 11), Enumeration("c", ("a", "b"))))
HOUR = 3600.0


def write(log: Path, first: int, count: int, time: float = 0.0, schema: Schema = SCHEMA) -> Path:
    """One file of events with these numbers, a second apart; where it is."""
    before = set(log.rglob("part-*"))
    numbers = np.arange(first, first + count)
    with LogWriter(log, schema, f"w{first}") as writer:
        writer.append_events(time + np.arange(count), "h1", numbers, 0, np.zeros((count, 2)))
    (path,) = set(log.rglob("part-*")) - before
    return path


def sequences(reader: LogReader, *span: float | None) -> list[int]:
    return [int(number) for number in reader.events(*span).events.sequences]


def rewritten(path: Path, table: pa.Table, said: dict[bytes, bytes]) -> Path:
    """The file with other rows or another footer, under a name that promises its content."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, store_schema=False) as file:
        file.write_table(table)
        file.add_key_value_metadata(said)
    content = bytes(sink.getvalue())
    path.unlink()
    target = path.with_name(part_name("w0", 0, content))
    target.write_bytes(content)
    return target


def resaid(**said: str) -> Callable[[Path], Path]:
    """Changes what the footer says."""

    def change(path: Path) -> Path:
        with pq.ParquetFile(path) as file:
            held = {key: value for key, value in file.metadata.metadata.items() if key.startswith(b"plerion")}
            changes = {f"plerion.{key}".encode(): value.encode() for key, value in said.items()}
            return rewritten(path, file.read(), held | changes)

    return change


def foreign(path: Path) -> Path:
    """What another program would put there."""
    with pq.ParquetFile(path) as file:
        table = file.read()
    return rewritten(path, table, {})


def narrowed(path: Path) -> Path:
    """A column is gone."""
    with pq.ParquetFile(path) as file:
        return rewritten(path, file.read().drop_columns(["weight"]), file.metadata.metadata)


def moved(path: Path, *names: str) -> Path:
    target = path.parent.parent.joinpath(*names)
    target.parent.mkdir(exist_ok=True)
    return path.rename(target)


def hollowed(path: Path) -> Path:
    path.unlink()
    path.mkdir()
    return path


def overwritten(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


DAMAGE: dict[str, tuple[Callable[[Path], Path], str]] = {
    "cut": (lambda path: overwritten(path, path.read_bytes()[:-1]), "torn"),
    "empty": (lambda path: overwritten(path, b""), "torn"),
    "text": (lambda path: overwritten(path, b"time,x\n1,2\n" * 100), "torn or foreign"),
    "foreign": (foreign, "foreign: the footer does not say plerion-log"),
    "renamed": (lambda path: path.rename(path.with_name("part-00000.parquet")), "foreign: the log gives no file"),
    "format": (resaid(format="plerion-index"), "foreign: the footer does not say plerion-log"),
    "version": (resaid(version="2"), "version '2': this release reads version 1"),
    "kind": (resaid(kind="deliveries"), "holds 'deliveries' where events belong"),
    "schema": (resaid(schema='{"attributes": []}'), "the schema cannot be read: attributes: 0 attributes"),
    "no schema": (resaid(schema="["), "the schema cannot be read"),
    "columns": (narrowed, "the columns are not those of events in version 1"),
    "times": (resaid(first="x"), "the footer has no first and last time"),
    "hour": (lambda path: moved(path, "hour=2001010100", path.name), "the times are not those of 'hour=2001010100'"),
    "folder": (lambda path: moved(path, "today", path.name).parent, "foreign: it is no hour"),
    "loose": (lambda path: moved(path, path.name), "foreign: it is no hour"),
    "directory": (hollowed, "cannot be read (Is a directory)"),
}  # fmt: skip


@pytest.mark.parametrize(("damage", "reason"), DAMAGE.values(), ids=DAMAGE)
def test_what_is_none_of_the_log_is_named_with_its_reason_and_the_rest_is_read(
    tmp_path: Path, damage: Callable[[Path], Path], reason: str
) -> None:
    victim = write(tmp_path, 0, 5)
    others = {write(tmp_path, 5, 5), write(tmp_path, 10, 5, HOUR)}
    assert sequences(LogReader(tmp_path, SCHEMA)) == list(range(15))
    left = damage(victim)
    reader = LogReader(tmp_path, SCHEMA)
    events, skipped = reader.events()
    assert sorted(events.sequences.tolist()) == list(range(5, 15))
    assert [skip.path for skip in skipped] == [left]
    assert reason in skipped[0].reason or skipped[0].reason.startswith("torn or altered")
    good, named = reader.paths(Kind.EVENTS)
    assert (set(good), [skip.path for skip in named]) == (others, [left])
    assert reason in named[0].reason
    assert reader.paths(Kind.EVENTS, whole=True) == (good, skipped)


def test_a_flipped_bit_in_the_rows_is_seen_by_reading_whole_and_not_by_the_footer(tmp_path: Path) -> None:
    path = write(tmp_path, 0, 500)
    content = bytearray(path.read_bytes())
    content[40] ^= 1
    path.write_bytes(content)
    reader = LogReader(tmp_path, SCHEMA)
    assert reader.paths(Kind.EVENTS).good == (path,)
    assert reader.paths(Kind.EVENTS, whole=True) == (
        (),
        (Skipped(path, "torn or altered: the content is not what the name promises"),),
    )
    assert reader.events().events.sequences.size == 0


def test_records_of_another_schema_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, 0, 5)
    later = write(tmp_path, 5, 5, HOUR, OTHER)
    reader = LogReader(tmp_path, SCHEMA)
    assert sequences(reader) == list(range(5))
    assert reader.events().skipped == (Skipped(later, "it has another schema"),)
    assert sequences(LogReader(tmp_path, OTHER)) == list(range(5, 10))


def test_without_a_schema_that_of_the_latest_whole_file_counts(tmp_path: Path) -> None:
    write(tmp_path, 0, 5)
    later = write(tmp_path, 5, 5, HOUR, OTHER)
    assert LogReader(tmp_path).schema == OTHER
    later.write_bytes(later.read_bytes().replace(b'"high":11', b'"high":12'))
    assert LogReader(tmp_path).schema == SCHEMA


def test_a_directory_without_files_is_an_empty_log(tmp_path: Path) -> None:
    for log in (tmp_path, tmp_path / "nowhere"):
        reader = LogReader(log)
        assert reader.schema is None
        assert reader.paths(Kind.EVENTS) == ((), ())
        with pytest.raises(LogError, match="holds no log"):
            reader.events()
        assert sequences(LogReader(log, SCHEMA)) == []
        assert LogReader(log, SCHEMA).subscriptions_at(0.0).interests.ids == ()
    empty = LogReader(tmp_path)
    write(tmp_path, 0, 1)
    assert empty.schema == SCHEMA, "a log that was empty is not so for ever"


def test_hidden_files_and_folders_are_passed_over(tmp_path: Path) -> None:
    path = write(tmp_path, 0, 5)
    (path.parent / f".{path.name}.partial").write_bytes(path.read_bytes()[:50])
    (path.parent / "_SUCCESS").touch()
    (tmp_path / "events" / "_temporary").mkdir()
    (tmp_path / "_imports").mkdir()
    assert LogReader(tmp_path).paths(Kind.EVENTS) == ((path,), ())


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        (None, None, range(12)),
        (2.0, None, range(2, 12)),
        (1.000001, 4.0, range(2, 4)),
        (4.0, HOUR, [4, 5]),
        (HOUR + 1, HOUR + 2, [7]),
        (10.0, 20.0, []),
        (5.0, 5.0, []),
    ],
)
def test_a_range_has_its_beginning_and_not_its_end(
    tmp_path: Path, since: float | None, until: float | None, expected: Any
) -> None:
    write(tmp_path, 0, 6)
    write(tmp_path, 6, 6, HOUR)
    assert sequences(LogReader(tmp_path), since, until) == list(expected)


def test_files_outside_of_the_range_are_not_opened(tmp_path: Path) -> None:
    near, far = write(tmp_path, 0, 6), write(tmp_path, 6, 6, 5 * HOUR)
    far.write_bytes(b"torn")
    assert LogReader(tmp_path, SCHEMA).paths(Kind.EVENTS, until=HOUR) == ((near,), ())
    assert len(LogReader(tmp_path, SCHEMA).paths(Kind.EVENTS).skipped) == 1


def history(log: Path, *words: tuple[float, str, str | None], host: str = "h1") -> None:
    """(time, id, filter): None ends the subscription. Each word is a file of its own."""
    for number, (time, id, text) in enumerate(words):
        with LogWriter(log, SCHEMA, f"w{number}") as writer:
            writer.append_subscription(time, id, host, text, live=text is not None)


def live(log: Path, time: float) -> dict[str, str]:
    found = LogReader(log, SCHEMA).subscriptions_at(time).interests
    return dict(zip(found.ids, found.texts or (), strict=True))


def test_a_subscription_lives_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    history(tmp_path, (10, "q", "x > 3"), (20, "q", None), (5000, "q", "x > 4"), (15, "p", "c = 'a'"))
    assert live(tmp_path, 9.999999) == {}
    assert live(tmp_path, 10) == {"q": "x > 3"}
    assert live(tmp_path, 15) == {"p": "c = 'a'", "q": "x > 3"}
    assert live(tmp_path, 20) == {"p": "c = 'a'"}
    assert live(tmp_path, 1e9) == {"p": "c = 'a'", "q": "x > 4"}


def test_a_later_word_replaces_an_earlier_one_in_whatever_order_they_were_written(tmp_path: Path) -> None:
    history(tmp_path, (30, "q", "x > 3"), (20, "q", None), (25, "q", "x > 1"))
    assert live(tmp_path, 27) == {"q": "x > 1"}
    assert live(tmp_path, 30) == {"q": "x > 3"}


def test_live_subscriptions_are_the_interests_of_their_filters(tmp_path: Path) -> None:
    texts = {"b": "x > 3 OR c = 'a'", "a": "FALSE", "c": "TRUE"}
    history(tmp_path, *((1.0, id, text) for id, text in texts.items()))
    found = LogReader(tmp_path).subscriptions_at(1.0).interests
    expected = Interests.of([(id, "h1", parse(texts[id], SCHEMA)) for id in sorted(texts)])
    assert (found.ids, found.hosts, found.texts) == (expected.ids, expected.hosts, expected.texts)
    assert found.offsets.tolist() == expected.offsets.tolist()
    assert found.bounds.tobytes() == expected.bounds.tobytes()


def test_boxes_are_interests_too(tmp_path: Path) -> None:
    box = np.array([[[3.0, 5.0], [-np.inf, np.inf]], [[6.0, 7.0], [0.0, 1.0]]])
    with LogWriter(tmp_path, SCHEMA, "w") as writer:
        writer.append_subscription(1.0, "q", "h2", box)
        writer.append_subscription(1.0, "r", "h3", "x > 9")
    found = LogReader(tmp_path).subscriptions_at(1.0).interests
    assert (found.ids, found.hosts, found.texts, found.offsets.tolist()) == (
        ("q", "r"),
        ("h2", "h3"),
        None,
        [0, 2, 3],
    )
    assert found.bounds[:2].tobytes() == box.tobytes()


def test_a_filter_that_cannot_be_read_is_skipped_and_the_others_stay(tmp_path: Path) -> None:
    history(
        tmp_path,
        (1, "bad", "x >"),
        (1, "good", "x > 1"),
        (1, "strange", "z > 1"),
        (2, "gone", "x >"),
        (3, "gone", None),
    )
    found, skipped = LogReader(tmp_path).subscriptions_at(5.0)
    assert found.ids == ("good",)
    assert [skip.reason.split(":")[0] for skip in skipped] == ["subscription 'bad'", "subscription 'strange'"]
    assert all(skip.path.parent.parent == tmp_path / "subscriptions" for skip in skipped)


def test_a_file_that_is_right_but_for_its_place_is_the_logs_own(tmp_path: Path) -> None:
    """`encoded` and `part_name` are all that a file needs; the tests above change one thing at a time."""
    path = write(tmp_path, 0, 5)
    with pq.ParquetFile(path) as file:
        table = file.read().cast(columns(Kind.EVENTS, SCHEMA))
    content = encoded(table, Kind.EVENTS, SCHEMA)
    assert path.name == part_name("w0", 0, content)
    assert path.read_bytes() == content
