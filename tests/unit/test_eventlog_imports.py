"""Files into a log: what is clamped and counted, what is refused and where, and that a file comes in once."""

from __future__ import annotations

import gzip
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plerion.content.errors import InputError
from plerion.content.schema import MISSING, Enumeration, Number, Schema
from plerion.eventlog.imports import STAGING, Imported, Options, import_files
from plerion.eventlog.reader import LogReader
from plerion.eventlog.receipts import alone, receipts
from plerion.eventlog.records import EventRecords, Kind, LogError
from plerion.eventlog.source import CHUNK_ROWS, EventSource

SCHEMA = Schema((Number("t", -10, 10), Number("n", 0, 5, integer=True), Enumeration("c", ("x", "NA", "y"))))
APRIL = 1_365_000_000.0


def events_file(folder: Path, *lines: str, name: str = "events.csv") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    content = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    return path


def imported(log: Path, path: Path, subscriptions: Path | None = None, **options: Any) -> Imported:
    return import_files(log, SCHEMA, path, subscriptions, Options(**options))


def logged(log: Path) -> EventRecords:
    found, skipped = LogReader(log).events()
    assert skipped == ()
    return found


def everything(log: Path) -> dict[str, bytes]:
    return {p.relative_to(log).as_posix(): p.read_bytes() for p in sorted(log.rglob("*")) if p.is_file()}


LINES = ("t,n,c,other", "1.5,3,x,a", "-11,9,y,b", ",,,", "inf,-inf,NA,c", "nan,0,,d", "10,5,x,e")
POINTS = [[1.5, 3, 0], [-10, 5, 2], [MISSING] * 3, [10, 0, 1], [MISSING, 0, MISSING], [10, 5, 0]]


@pytest.mark.parametrize("name", ["events.csv", "events.csv.gz"])
def test_values_outside_are_moved_to_the_border_missing_ones_stay_missing_and_both_are_counted(
    tmp_path: Path, name: str
) -> None:
    (receipt, already), _ = imported(tmp_path / "log", events_file(tmp_path, *LINES, name=name))
    assert not already
    assert (receipt.rows, receipt.kept, receipt.source) == (6, 6, name)
    assert receipt.clamped == {"t": 2, "n": 2}
    assert receipt.missing == {"t": 2, "n": 1, "c": 2}
    found = logged(tmp_path / "log")
    assert found.points.tolist() == POINTS
    assert found.sequences.tolist() == list(range(6))
    assert found.times.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert set(found.publishers) == {"import"}


def test_parquet_means_the_same(tmp_path: Path) -> None:
    table = pa.table(
        {
            "t": pa.array([1.5, -11, None, math.inf, math.nan, 10]),
            "n": pa.array([3, 9, None, -7, 0, 5], pa.int32()),
            "c": pa.array(["x", "y", None, "NA", "", "x"]).dictionary_encode(),
            "time": pa.array([int(APRIL) + i for i in range(6)]).cast(pa.timestamp("s")),
            "publisher": ["h1", None, "h2", "", "h1", "h1"],
        }
    )
    pq.write_table(table, tmp_path / "events.parquet")
    (receipt, _), _ = imported(tmp_path / "log", tmp_path / "events.parquet", publisher="h9")
    assert (receipt.clamped, receipt.missing) == ({"t": 2, "n": 2}, {"t": 2, "n": 1, "c": 2})
    found = logged(tmp_path / "log")
    assert found.points.tolist() == POINTS
    assert found.publishers == ("h1", "h9", "h2", "h9", "h1", "h1")
    assert found.times.tolist() == [APRIL + i for i in range(6)]


TIMES = {
    "seconds": (["1365000000", "1365000001.25"], [APRIL, APRIL + 1.25]),
    "utc": (["2013-04-03T14:40:00Z", "2013-04-03T14:40:01.25Z"], [APRIL, APRIL + 1.25]),
    "zone": (["2013-04-03T16:40:00+02:00", "2013-04-03T14:40:01Z"], [APRIL, APRIL + 1]),
    "no zone": (["2013-04-03 14:40:00", "2013-04-03 14:40:01"], [APRIL, APRIL + 1]),
    "dates": (["2013-04-03", "2013-04-04"], [APRIL - 52_800, APRIL + 33_600]),
    "nanoseconds": (["2013-04-03T14:40:00.123456789Z"] * 2, [APRIL + 0.123456] * 2),
    "mixed": (["2013-04-03T14:40:00Z", "2013-04-03", "1365000000"], [APRIL, APRIL - 52_800, APRIL]),
    "long ago": (["-1", "1900-01-01"], [-1.0, -2_208_988_800.0]),
}


@pytest.mark.parametrize(("cells", "expected"), TIMES.values(), ids=TIMES)
def test_times_are_read_however_they_are_written(
    tmp_path: Path, cells: Sequence[str], expected: Sequence[float]
) -> None:
    imported(tmp_path / "log", events_file(tmp_path, "time,t", *(f"{cell},1" for cell in cells)))
    found = logged(tmp_path / "log")
    assert found.times[np.argsort(found.sequences)].tolist() == list(expected)


def test_a_start_numbers_the_rows_even_of_a_file_with_times(tmp_path: Path) -> None:
    path = events_file(tmp_path, "time,t", "2013-04-03,1", "2013-04-03,2", "garbage,3")
    imported(tmp_path / "log", path, start=APRIL)
    assert logged(tmp_path / "log").times.tolist() == [APRIL, APRIL + 1, APRIL + 2]


def test_an_attribute_may_be_called_time_or_publisher(tmp_path: Path) -> None:
    schema = Schema((Enumeration("publisher", ("h1", "h2")), Number("time", 0, 24)))
    import_files(tmp_path / "log", schema, events_file(tmp_path, "time,publisher", "25,h2", "3,"))
    found = logged(tmp_path / "log")
    assert found.points.tolist() == [[1, 24], [MISSING, 3]]
    assert (found.times.tolist(), found.publishers) == ([25.0, 3.0], ("h2", "import"))
    listed = Schema((Enumeration("time", ("day", "night")), Number("publisher", 0, 1)))
    import_files(tmp_path / "other", listed, events_file(tmp_path, "time,publisher", "night,1"))
    assert logged(tmp_path / "other").publishers == ("import",)


def test_attributes_without_a_column_are_missing_and_named(tmp_path: Path) -> None:
    (receipt, _), _ = imported(tmp_path / "log", events_file(tmp_path, "t", "1", "2"))
    assert receipt.absent == ["n", "c"]
    assert receipt.missing == {"n": 2, "c": 2}


BAD = {
    "fraction": (["t,n", "1,1", "1,2.5"], "events.csv:3: row 1, column n: 'n': 2.5 is not whole"),
    "word": (["t,c", "1,x", "1,Y"], "row 1, column c: 'Y' is not one of the 3 values; did you mean 'y'?"),
    "number": (["t", "1", "one"], "events.csv:3: row 1, column t: 'one' is not a number"),
    "ragged": (["t,n", "1,1", "1"], "row 1: 1 cells under 2 columns"),
    "time": (["time,t", "5,1", "soon,1"], "events.csv:3: row 1, column time: 'soon' is no time"),
    "no time": (["time,t", "5,1", ",1"], "row 1, column time: '' is no time"),
    "far time": (["time,t", "1e15,1"], "row 0, column time: '1e15' is no time from the year 1 to 9999"),
    "columns": (["u,v", "5,1"], "no column is named like an attribute of the schema, such as 't'"),
    "empty": ([""], "the file is empty"),
}


@pytest.mark.parametrize(("lines", "told"), BAD.values(), ids=BAD)
def test_what_is_no_event_is_refused_with_its_place_and_nothing_is_left_behind(
    tmp_path: Path, lines: Sequence[str], told: str
) -> None:
    with pytest.raises(InputError) as caught:
        imported(tmp_path / "log", events_file(tmp_path, *lines))
    assert told in caught.value.summary
    assert not (tmp_path / "log").exists()


def test_a_bad_row_far_down_is_found_by_its_own_number(tmp_path: Path) -> None:
    lines = ["t,c", *(["1,x"] * (2 * CHUNK_ROWS)), "1,z"]
    for name in ("events.csv", "events.csv.gz"):
        with pytest.raises(InputError) as caught:
            imported(tmp_path / "log", events_file(tmp_path, *lines, name=name))
        assert (caught.value.row, caught.value.line) == (2 * CHUNK_ROWS, 2 * CHUNK_ROWS + 2)
    pq.write_table(pa.table({"n": [1] * (2 * CHUNK_ROWS) + [2.5]}), tmp_path / "events.parquet")
    with pytest.raises(InputError) as caught:
        imported(tmp_path / "log", tmp_path / "events.parquet")
    assert (caught.value.row, caught.value.line) == (2 * CHUNK_ROWS, None)
    assert not (tmp_path / "log").exists()


def test_files_that_are_not_whole_are_refused(tmp_path: Path) -> None:
    whole = events_file(tmp_path, "t", *map(str, range(5000)), name="events.csv.gz").read_bytes()
    for name, content in (("a.csv.gz", whole[:-20]), ("b.parquet", b"PAR1" * 9), ("c.csv.gz", b"t\n1\n")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match="cannot be read"):
            imported(tmp_path / "log", tmp_path / name)
    assert not (tmp_path / "log").exists()


def test_chunks_are_bounded_and_are_the_whole_file_in_its_order(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": np.arange(200_000) % 11 - 0.5}), tmp_path / "events.parquet")
    chunks = list(EventSource(tmp_path / "events.parquet", SCHEMA).chunks(timed=False))
    assert max(len(chunk.points) for chunk in chunks) <= CHUNK_ROWS
    assert [chunk.first for chunk in chunks] == [0, *np.cumsum([len(c.points) for c in chunks])[:-1]]
    assert (np.concatenate([c.points[:, 0] for c in chunks]) == np.arange(200_000) % 11 - 0.5).all()


def test_a_file_comes_in_once(tmp_path: Path) -> None:
    path = events_file(tmp_path, *LINES)
    (first, _), _ = imported(tmp_path / "log", path)
    before = everything(tmp_path / "log")
    (again, already), _ = imported(tmp_path / "log", path)
    assert (again, already) == (first, True)
    renamed = shutil.copy(path, tmp_path / "copy.csv")
    assert imported(tmp_path / "log", Path(renamed)).events.already
    assert everything(tmp_path / "log") == before


def test_a_file_that_came_in_otherwise_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    path = events_file(tmp_path, *LINES)
    imported(tmp_path / "log", path)
    before = everything(tmp_path / "log")
    for options in ({"rate": 0.5}, {"publisher": "h7"}, {"start": 5.0}):
        with pytest.raises(
            LogError, match=r"imported already with other options: publisher import, sample 1\.0"
        ):
            imported(tmp_path / "log", path, **options)
    assert everything(tmp_path / "log") == before


def test_two_files_have_different_sequence_numbers(tmp_path: Path) -> None:
    imported(tmp_path / "log", events_file(tmp_path / "a", *LINES))
    imported(tmp_path / "log", events_file(tmp_path / "b", "t", "1", "2"))
    imported(tmp_path / "log", events_file(tmp_path / "c", "t", "3"))
    assert sorted(logged(tmp_path / "log").sequences.tolist()) == list(range(9))


def test_a_log_has_one_schema(tmp_path: Path) -> None:
    imported(tmp_path / "log", events_file(tmp_path, *LINES))
    other = Schema((Number("t", -10, 11),))
    with pytest.raises(LogError, match="holds records of another schema"):
        import_files(tmp_path / "log", other, events_file(tmp_path, "t", "1"))


def test_a_failed_import_leaves_a_log_as_it_was(tmp_path: Path) -> None:
    imported(tmp_path / "log", events_file(tmp_path / "a", *LINES))
    before = everything(tmp_path / "log")
    with pytest.raises(InputError):
        imported(tmp_path / "log", events_file(tmp_path / "b", "n", *(["1"] * 300_000), "1.5"))
    assert everything(tmp_path / "log") == before


def test_what_a_killed_import_left_is_cleared_and_a_lost_part_comes_back(tmp_path: Path) -> None:
    path = events_file(tmp_path, "time,t", *(f"{3600 * hour},{hour}" for hour in range(8)))
    imported(tmp_path / "log", path)
    before = everything(tmp_path / "log")
    (receipt,) = (tmp_path / "log" / "_imports").iterdir()
    parts = sorted((tmp_path / "log").rglob("part-*"))
    receipt.unlink()
    parts[0].unlink()
    parts[1].rename(parts[1].with_name(parts[1].name.replace("-000001-", "-000009-")))
    (tmp_path / "log" / STAGING / "events").mkdir(parents=True)
    (tmp_path / "log" / STAGING / "events" / "rest").touch()
    assert not imported(tmp_path / "log", path).events.already
    assert everything(tmp_path / "log") == before
    parts[2].unlink()
    assert not imported(tmp_path / "log", path).events.already
    assert everything(tmp_path / "log") == before
    receipt.write_text("{torn")
    assert receipts(tmp_path / "log") == []
    assert not imported(tmp_path / "log", path).events.already
    assert everything(tmp_path / "log") == before


def test_an_import_that_the_log_does_not_take_whole_is_not_taken_at_all(tmp_path: Path) -> None:
    imported(tmp_path / "log", events_file(tmp_path / "a", *LINES))
    obstacle = tmp_path / "log" / "events" / "hour=1970010103"
    obstacle.touch()
    before = everything(tmp_path / "log")
    path = events_file(tmp_path / "b", "time,t", *(f"{3600 * hour},{hour}" for hour in range(6)))
    with pytest.raises(OSError, match="hour=1970010103"):
        imported(tmp_path / "log", path)
    assert everything(tmp_path / "log") == before
    obstacle.unlink()
    assert imported(tmp_path / "log", path).events.receipt.files == 6


def test_one_import_at_a_time(tmp_path: Path) -> None:
    path = events_file(tmp_path, *LINES)
    with alone(tmp_path / "log"), pytest.raises(LogError, match="another import is under way"):
        imported(tmp_path / "log", path)
    assert not imported(tmp_path / "log", path).events.already


def test_a_sample_says_what_it_stands_for(tmp_path: Path) -> None:
    path = events_file(tmp_path, "t", *(["1"] * 4000))
    (receipt, _), _ = imported(tmp_path / "log", path, rate=0.25)
    found = logged(tmp_path / "log")
    assert len(found.times) == receipt.kept < receipt.rows == 4000
    assert found.weights.sum() == pytest.approx(4000, rel=0.1)
    with pytest.raises(LogError, match="a sampling rate of 0"):
        imported(tmp_path / "other", path, rate=0.0)
    assert not (tmp_path / "other").exists()


TEXTS = ("id,host,filter", "q1,h1,t > 3", "q2,h2,\"c IN ('x', 'y')\"")
RANGES = ("id,host,t_low,t_high", "r1,h1,3,", "r2,h2,,4")


def test_subscriptions_are_live_from_the_first_event_on(tmp_path: Path) -> None:
    path = events_file(tmp_path, "time,t", f"{APRIL + 60},1", f"{APRIL},1")
    texts, ranges = (events_file(tmp_path / name, *lines) for name, lines in (("q", TEXTS), ("r", RANGES)))
    _, asked = imported(tmp_path / "log", path, texts)
    assert asked is not None
    assert (asked.receipt.rows, asked.already) == (2, False)
    sent, more = imported(tmp_path / "log", path, ranges)
    assert more is not None
    assert (sent.already, more.already) == (True, False)
    assert imported(tmp_path / "log", path, texts)[1] == (asked.receipt, True)
    reader = LogReader(tmp_path / "log")
    assert reader.subscriptions_at(APRIL - 1).interests.ids == ()
    found = reader.subscriptions_at(APRIL).interests
    assert found.ids == ("q1", "q2", "r1", "r2")
    assert found.bounds[found.offsets[3], 0].tolist() == [-10.0, math.nextafter(4.0, 5.0)]


def test_subscriptions_are_moved_to_the_earliest_events(tmp_path: Path) -> None:
    texts = events_file(tmp_path / "q", *TEXTS)
    imported(tmp_path / "log", events_file(tmp_path / "b", "time,t", f"{APRIL},1"), texts)
    imported(tmp_path / "log", events_file(tmp_path / "c", "time,t", f"{APRIL + 9},1"), texts)
    assert len(list((tmp_path / "log" / "subscriptions").rglob("part-*"))) == 1
    imported(tmp_path / "log", events_file(tmp_path / "a", "time,t", "60,1"), texts)
    assert LogReader(tmp_path / "log").subscriptions_at(60).interests.ids == ("q1", "q2")
    assert LogReader(tmp_path / "log").read(Kind.SUBSCRIPTIONS).table.num_rows == 2


def test_an_id_that_is_live_already_is_refused_and_nothing_comes_in(tmp_path: Path) -> None:
    imported(tmp_path / "log", events_file(tmp_path / "a", *LINES), events_file(tmp_path / "q", *TEXTS))
    before = everything(tmp_path / "log")
    changed = events_file(tmp_path / "p", TEXTS[0], "q0,h1,t > 3", "q2,h9,t > 4")
    with pytest.raises(LogError, match="row 1: subscription 'q2' is already live"):
        imported(tmp_path / "log", events_file(tmp_path / "b", "t", "1"), changed)
    assert everything(tmp_path / "log") == before


def test_bad_subscriptions_are_refused_before_any_event_is_read(tmp_path: Path) -> None:
    bad = events_file(tmp_path / "q", TEXTS[0], "q1,h1,t >")
    with pytest.raises(InputError, match="column filter"):
        imported(tmp_path / "log", events_file(tmp_path, "t", "garbage"), bad)
    assert not (tmp_path / "log").exists()
