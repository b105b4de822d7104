"""Writing a log: when files appear, what they are called, and what happens when the disk does not take them."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plerion.content.parse import parse
from plerion.content.schema import MISSING, Number, Schema
from plerion.eventlog.reader import LogReader
from plerion.eventlog.records import Kind, LogError
from plerion.eventlog.writer import LogWriter

SCHEMA = Schema((Number("hour", 0, 24), Number("y", -1, 1)))
NOON = 1_600_000_000.0 - 1_600_000_000.0 % 3600


def files(log: Path) -> list[str]:
    return sorted(path.relative_to(log).as_posix() for path in log.rglob("*") if path.is_file())


def append(writer: LogWriter, first: int, count: int, time: float = NOON) -> int:
    numbers = np.arange(first, first + count)
    return writer.append_events(np.full(count, time), "h1", numbers, 0, np.zeros((count, 2)))


def sequences(log: Path) -> list[int]:
    return sorted(LogReader(log, SCHEMA).events().events.sequences.tolist())


def test_a_file_lies_in_the_folder_of_its_kind_and_hour_and_says_what_it_is(tmp_path: Path) -> None:
    with LogWriter(tmp_path, SCHEMA, "h1") as writer:
        append(writer, 0, 3)
        writer.append_deliveries(NOON, "q", "h2", "h1", 0, 7, True)
        writer.append_subscription(NOON, "q", "h2", "hour > 3")
    found = files(tmp_path)
    assert [name.rpartition("-")[0] for name in found] == [
        f"{kind}/hour=2020091312/part-h1-{number:06}"
        for kind, number in (("deliveries", 1), ("events", 0), ("subscriptions", 2))
    ]
    said = pq.read_metadata(tmp_path / found[1]).metadata
    assert said[b"plerion.format"] == b"plerion-log"
    assert said[b"plerion.version"] == b"1"
    assert said[b"plerion.kind"] == b"events"
    assert b'"name":"hour"' in said[b"plerion.schema"]


def test_rows_and_bytes_that_wait_are_limited(tmp_path: Path) -> None:
    by_rows = LogWriter(tmp_path / "rows", SCHEMA, "h1", max_rows=10)
    append(by_rows, 0, 9)
    assert files(tmp_path) == []
    append(by_rows, 9, 1)
    assert len(files(tmp_path)) == 1
    by_bytes = LogWriter(tmp_path / "bytes", SCHEMA, "h1", max_bytes=4096)
    for first in range(300):
        append(by_bytes, first, 1)
    assert 2 <= len(files(tmp_path / "bytes")) <= 30


def test_nothing_is_written_for_nothing(tmp_path: Path) -> None:
    with LogWriter(tmp_path / "log", SCHEMA, "h1") as writer:
        append(writer, 0, 0)
        writer.flush()
    assert not (tmp_path / "log").exists()


def test_events_added_one_by_one_are_one_file_in_their_order(tmp_path: Path) -> None:
    with LogWriter(tmp_path, SCHEMA, "h1") as writer:
        for number in range(3000):
            append(writer, number, 1)
    assert len(files(tmp_path)) == 1
    assert LogReader(tmp_path, SCHEMA).events().events.sequences.tolist() == list(range(3000))


def test_the_same_records_from_the_same_writer_are_the_same_file(tmp_path: Path) -> None:
    for _ in range(2):
        with LogWriter(tmp_path, SCHEMA, "h1") as writer:
            append(writer, 0, 5)
    assert len(files(tmp_path)) == 1
    with LogWriter(tmp_path, SCHEMA, "h2") as writer:
        append(writer, 0, 5)
    with LogWriter(tmp_path, SCHEMA, "h1") as writer:
        append(writer, 5, 5)
    assert len(files(tmp_path)) == 3


def test_a_part_that_could_not_be_written_waits_and_nothing_is_written_twice(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, SCHEMA, "h1")
    for hour in range(5):
        append(writer, 10 * hour, 10, NOON + 3600 * hour)
    obstacle = tmp_path / "events" / "hour=2020091314"
    obstacle.parent.mkdir()
    obstacle.touch()
    with pytest.raises(OSError, match="hour=2020091314"):
        writer.flush()
    assert sequences(tmp_path) == list(range(20))
    append(writer, 50, 10, NOON)
    with pytest.raises(OSError, match="hour=2020091314"):
        writer.flush()
    obstacle.unlink()
    writer.flush()
    writer.close()
    assert sequences(tmp_path) == list(range(60))
    assert len(files(tmp_path)) == 6
    assert len({name.split("-")[-2] for name in files(tmp_path)}) == 6


def test_events_and_their_deliveries_are_sampled_alike_and_weigh_what_they_stand_for(tmp_path: Path) -> None:
    numbers = np.arange(4000)
    with LogWriter(tmp_path, SCHEMA, "h1", rate=0.25) as writer:
        count = append(writer, 0, 4000)
        again = writer.append_deliveries(
            numbers + NOON, "q", ["h2"] * 4000, "h1", numbers, 0, numbers % 2 == 0
        )
    reader = LogReader(tmp_path, SCHEMA)
    events, deliveries = reader.read(Kind.EVENTS).table, reader.read(Kind.DELIVERIES).table
    assert count == again == events.num_rows == deliveries.num_rows
    assert sorted(events["sequence"].to_pylist()) == sorted(deliveries["sequence"].to_pylist())
    assert set(events["weight"].to_pylist()) == set(deliveries["weight"].to_pylist()) == {4.0}
    assert 3600 < sum(events["weight"].to_pylist()) < 4400


def test_one_value_stands_for_all_records_and_arrow_arrays_are_taken_as_they_are(tmp_path: Path) -> None:
    with LogWriter(tmp_path, SCHEMA, "h1") as writer:
        writer.append_deliveries(
            [NOON, NOON], [None, "q"], "h2", pa.array(["h1", "h3"]), [4, 5], 9, [False, True]
        )
    table = LogReader(tmp_path, SCHEMA).read(Kind.DELIVERIES).table.drop_columns(["time", "weight"])
    assert table.to_pylist() == [
        {"subscription": None, "host": "h2", "publisher": "h1", "sequence": 4, "epoch": 9, "wanted": False},
        {"subscription": "q", "host": "h2", "publisher": "h3", "sequence": 5, "epoch": 9, "wanted": True},
    ]


REFUSED: dict[str, tuple[Callable[[LogWriter], object], str]] = {
    "time": (lambda w: w.append_events(math.nan, "h1", 0, 0, [[0, 0]]), "is no time"),
    "shape": (lambda w: w.append_events([0.0, 1.0], "h1", [0, 1], 0, [[0], [0]]), "points of shape"),
    "count": (lambda w: w.append_events([0.0, 1.0], "h1", [0, 1], 0, [[0, 0]]), "1 points at 2 times"),
    "publisher": (lambda w: w.append_events(0.0, [None], 0, 0, [[0, 0]]), "has no publisher"),
    "host": (lambda w: w.append_deliveries(0.0, "q", [None], "h1", 0, 0, True), "has no host"),
    "filter": (lambda w: w.append_subscription(0.0, "q", "h1", None), "'q' has no filter"),
}


@pytest.mark.parametrize(("act", "told"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_leaves_nothing_behind(
    tmp_path: Path, act: Callable[[LogWriter], object], told: str
) -> None:
    with LogWriter(tmp_path / "log", SCHEMA, "h1") as writer, pytest.raises(LogError, match=told):
        act(writer)
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize("name", ["", ".h1", "a/b", "a b", "x" * 65, "h\n"])
def test_a_writer_has_a_name_that_a_file_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(LogError, match="a writer named"):
        LogWriter(tmp_path, SCHEMA, name)


def test_records_are_kept_when_the_block_that_adds_them_fails(tmp_path: Path) -> None:
    def failing() -> None:
        with LogWriter(tmp_path, SCHEMA, "h1") as writer:
            append(writer, 0, 3)
            raise RuntimeError("elsewhere")

    with pytest.raises(RuntimeError, match="elsewhere"):
        failing()
    assert sequences(tmp_path) == [0, 1, 2]


def test_a_subscription_is_its_text_its_filter_or_its_boxes(tmp_path: Path) -> None:
    box = np.array([[[3.0, 5.0], [-np.inf, np.inf]]])
    with LogWriter(tmp_path, SCHEMA, "h1") as writer:
        writer.append_subscription(NOON, "a", "h1", "hour >= 3")
        writer.append_subscription(NOON, "b", "h1", parse("hour >= 3", SCHEMA))
        writer.append_subscription(NOON, "c", "h1", box)
        writer.append_subscription(NOON, "d", "h1", None, live=False)
    table = LogReader(tmp_path, SCHEMA).read(Kind.SUBSCRIPTIONS).table
    assert table["filter"].to_pylist() == ["hour >= 3", "hour >= 3", None, None]
    assert table["boxes"].to_pylist() == [None, None, '[{"hour":[3.0,5.0]}]', None]
    assert table["live"].to_pylist() == [True, True, True, False]


def test_a_missing_value_is_null_for_other_programs_and_missing_again_here(tmp_path: Path) -> None:
    with LogWriter(tmp_path, SCHEMA, "h1") as writer:
        writer.append_events([NOON] * 2, "h1", [0, 1], 0, [[MISSING, 0.5], [1.5, math.nan]])
    (path,) = tmp_path.rglob("part-*.parquet")
    assert pq.read_table(path, partitioning=None)["x0_hour"].to_pylist() == [None, 1.5]
    assert LogReader(tmp_path).events().events.points.tolist() == [[MISSING, 0.5], [1.5, MISSING]]
