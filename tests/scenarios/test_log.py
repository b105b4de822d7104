"""`plerion log` as a user runs it: real files, real processes, exit codes, and one line for what is wrong."""

from __future__ import annotations

import csv
import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plerion.content.read import read_events, read_interests
from plerion.content.schema import read_schema
from plerion.eventlog.reader import LogReader
from tests.architecture.repository import ROOT
from tests.scenarios.test_cli import plerion

EXAMPLES = ROOT / "examples"
SHARED = ROOT.parent / "shared" / "data"


def in_a_shell(*words: object, code: int = 0) -> str:
    """What the installed command prints that ends with this exit code."""
    command = [str(Path(sys.executable).with_name("plerion")), *map(str, words)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, cwd=EXAMPLES, timeout=300)
    assert ended.returncode == code, f"{words}: exit {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def imported(log: Path, *words: object, events: object = "events.csv", schema: object = "schema.yaml") -> Any:
    given = ["--schema", schema, "--events", events, "--log", log]
    return json.loads(plerion("log", "import", *given, *words, "--json"))


def shown(log: Path, *words: object, code: int = 0) -> Any:
    return json.loads(plerion("log", "show", "--log", log, "--json", *words, code=code))


def test_what_is_imported_is_what_the_files_say(tmp_path: Path) -> None:
    files = ["--events", "events.csv", "--subscriptions", "subscriptions.csv"]
    words = ["--schema", "schema.yaml", *files, "--log", tmp_path / "log", "--json"]
    told = json.loads(in_a_shell("log", "import", *words))
    assert (told["events"]["rows"], told["events"]["kept"], told["events"]["already"]) == (1008, 1008, False)
    assert told["subscriptions"]["rows"] == 6
    schema = read_schema(EXAMPLES / "schema.yaml")
    given = read_events(EXAMPLES / "events.csv", schema)
    reader = LogReader(tmp_path / "log")
    assert reader.schema == schema
    found = reader.events().events
    order = np.argsort(found.sequences)
    assert found.points[order].tobytes() == given.points.tobytes()
    assert given.times is not None
    assert found.times[order].tolist() == given.times.tolist()
    assert tuple(found.publishers[at] for at in order) == given.publishers
    asked, wanted = (
        read_interests(EXAMPLES / "subscriptions.csv", schema),
        reader.subscriptions_at(given.times[0]),
    )
    by_id = sorted(zip(asked.ids, asked.hosts, asked.texts or (), strict=True))
    live = wanted.interests
    assert list(zip(live.ids, live.hosts, live.texts or (), strict=True)) == by_id


def test_importing_again_changes_nothing_and_says_so(tmp_path: Path) -> None:
    words = ["--schema", "schema.yaml", "--events", "events.csv", "--log", tmp_path / "log"]
    assert f"events.csv (events) is now in {tmp_path / 'log'}" in plerion("log", "import", *words).replace(
        "\n", ""
    )
    before = shown(tmp_path / "log")
    assert "was there already, nothing changed" in plerion("log", "import", *words)
    assert imported(tmp_path / "log")["events"]["already"]
    assert shown(tmp_path / "log") == before
    told = plerion("log", "import", *words, "--sample", "0.5", code=2)
    assert "imported already with other options" in told


def test_show_counts_what_is_there_and_names_what_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / "log"
    imported(log, "--subscriptions", "subscriptions.csv")
    told = shown(log, "--check")
    assert told["attributes"] == ["airport", "temperature", "humidity", "wind", "visibility", "hour"]
    assert told["imported"] == ["events.csv", "subscriptions.csv"]
    assert told["kinds"]["events"] == {
        "files": 336,
        "rows": 1008,
        "hours": 336,
        "first": "2013-04-01T00:00:00Z",
        "last": "2013-04-14T23:00:00Z",
    }
    assert (told["kinds"]["subscriptions"]["rows"], told["kinds"]["deliveries"]["rows"]) == (6, 0)
    assert told["skipped"] == []
    torn, flipped = sorted((log / "events").rglob("part-*"))[:2]
    torn.write_bytes(torn.read_bytes()[:-5])
    content = bytearray(flipped.read_bytes())
    content[10] ^= 4
    flipped.write_bytes(content)
    assert [skip["path"] for skip in shown(log)["skipped"]] == [str(torn)]
    checked = json.loads(in_a_shell("log", "show", "--log", log, "--check", "--json", code=1))
    assert [skip["path"] for skip in checked["skipped"]] == [str(torn), str(flipped)]
    assert checked["kinds"]["events"]["rows"] == 1008 - 6
    assert "left out" in plerion("log", "show", "--log", log)


def test_bad_input_is_one_clear_line_and_leaves_no_log_behind(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("temperature,airport\n20,EWR\n20,XYZ\n")
    (tmp_path / "torn.csv.gz").write_bytes(gzip.compress(b"temperature\n" * 5000)[:-9])
    (tmp_path / "bad.yaml").write_text("attributes: [{name: x, low: 1, high: 0}]\n")
    (tmp_path / "ids.csv").write_text("id,host,filter\na,h1,temperature >\n")
    given = {"--schema": "schema.yaml", "--events": "events.csv", "--log": tmp_path / "log"}
    cases: list[tuple[dict[str, object], str]] = [
        (
            {"--events": tmp_path / "bad.csv"},
            "bad.csv:3: row 1, column airport: 'XYZ' is not one of the 3 values",
        ),
        ({"--events": tmp_path / "nowhere.csv"}, "nowhere.csv: cannot be read"),
        ({"--events": tmp_path / "torn.csv.gz"}, "torn.csv.gz"),
        ({"--events": tmp_path}, "the name does not tell the format"),
        ({"--schema": tmp_path / "bad.yaml"}, "bad.yaml:1"),
        ({"--subscriptions": tmp_path / "ids.csv"}, "ids.csv:2: row 0, column filter"),
        ({"--sample": 0}, "a sampling rate of 0"),
        ({"--start": "yesterday"}, "--start 'yesterday' is no time"),
        ({"--start": "1e15"}, "is no time from the year 1 to 9999"),
        ({"--log": EXAMPLES / "events.csv"}, "events.csv: File exists"),
    ]
    for changes, told in cases:
        words = [word for pair in (given | changes).items() for word in pair]
        assert told in plerion("log", "import", *words, code=2), changes
        assert not (tmp_path / "log").exists(), "a command that failed leaves no log behind"
    assert "no such directory" in plerion("log", "show", "--log", tmp_path / "log", code=2)


def test_a_directory_without_a_log_is_empty(tmp_path: Path) -> None:
    assert shown(tmp_path)["kinds"]["events"]["files"] == 0
    assert "empty" in plerion("log", "show", "--log", tmp_path)


def test_both_commands_explain_themselves_with_an_example() -> None:
    for verb in ("log import", "log show"):
        assert f"plerion {verb}" in plerion(*verb.split(), "--help")


QUAKES = {"latitude": (-90, 90), "longitude": (-180, 180), "depth": (0, 600), "mag": (0, 6), "gap": (0, 360)}


def quakes_as_rows() -> list[dict[str, str]]:
    """The file as Python reads it, without any of the code under test."""
    with gzip.open(SHARED / "events" / "usgs_quakes_2015_2021.csv.gz", "rt", newline="") as text:
        return list(csv.DictReader(text))


def clamped(cell: str, low: float, high: float) -> float:
    return min(max(float(cell), low), high) if cell else -np.inf


def test_real_earthquakes_are_imported_row_by_row(tmp_path: Path) -> None:
    listed = "".join(
        f"  - {{name: {name}, low: {low}, high: {high}}}\n" for name, (low, high) in QUAKES.items()
    )
    (tmp_path / "schema.yaml").write_text(f"attributes:\n{listed}")
    source = SHARED / "events" / "usgs_quakes_2015_2021.csv.gz"
    told = imported(
        tmp_path / "log", "--start", "2020-02-01T00:30:00Z", events=source, schema=tmp_path / "schema.yaml"
    )["events"]
    rows = quakes_as_rows()
    expected = [[clamped(row[name], *bounds) for name, bounds in QUAKES.items()] for row in rows]
    found = LogReader(tmp_path / "log").events().events
    assert found.points.tolist() == expected
    assert found.times[0] == 1_580_517_000.0
    assert found.sequences.tolist() == list(range(len(rows))) == list(range(told["rows"]))
    outside = {
        name: sum(1 for r in rows if r[name] and clamped(r[name], *b) != float(r[name]))
        for name, b in QUAKES.items()
    }
    assert told["clamped"] == {name: count for name, count in outside.items() if count} != {}
    missing = {name: sum(not row[name] for row in rows) for name in QUAKES}
    assert told["missing"] == {name: count for name, count in missing.items() if count} != {}
    assert told["files"] == 12


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Arrow's own account of its peak, for a file and for one with five times its rows."""
    (tmp_path / "schema.yaml").write_text(
        "attributes:\n" + "".join(f"  - {{name: a{i}, low: 0, high: 1}}\n" for i in range(4))
    )
    peaks = []
    for rows in (400_000, 2_000_000):
        numbers = np.random.default_rng(rows).random(rows)
        table = pa.table({"time": np.arange(rows) / 100, **{f"a{i}": numbers for i in range(4)}})
        pq.write_table(table, tmp_path / "events.parquet", row_group_size=200_000)
        script = f"""
from pathlib import Path
import pyarrow
from plerion.content.schema import read_schema
from plerion.eventlog.imports import import_files
root = Path({str(tmp_path)!r})
import_files(root / "log", read_schema(root / "schema.yaml"), root / "events.parquet")
print(pyarrow.default_memory_pool().max_memory())
"""
        ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        peaks.append(int(ended.stdout))
        shutil.rmtree(tmp_path / "log")
    assert peaks[1] < 1.5 * peaks[0]
    assert peaks[1] < 2_000_000 * 8 * 5, "less than the table takes alone"


@pytest.mark.slow
def test_an_import_that_is_killed_and_repeated_has_every_event_once(tmp_path: Path) -> None:
    lines = ["time,temperature", *(f"{60 * row},{row % 50}" for row in range(30_000))]
    (tmp_path / "events.csv").write_text("\n".join(lines) + "\n")
    words = ["--schema", "schema.yaml", "--events", tmp_path / "events.csv", "--log", tmp_path / "log"]
    command = [str(Path(sys.executable).with_name("plerion")), "log", "import", *map(str, words)]
    process = subprocess.Popen(command, cwd=EXAMPLES)
    while not list(tmp_path.glob("log/_importing/events/hour=*/part-*")):
        assert process.poll() is None, "it ended before it could be killed"
        os.sched_yield()
    process.kill()
    assert process.wait() == -9
    assert shown(tmp_path / "log", "--check")["skipped"] == []
    assert not imported(tmp_path / "log", events=tmp_path / "events.csv")["events"]["already"]
    assert sorted(LogReader(tmp_path / "log").events().events.sequences.tolist()) == list(range(30_000))
    assert not (tmp_path / "log" / "_importing").exists()
