"""Each window of a log is told once, with the figures that its definition gives, whatever happens in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from pyspark.sql import SparkSession

from plerion.content.errors import InputError
from plerion.content.schema import Number, Schema
from plerion.eventlog.reader import LogReader
from plerion.eventlog.records import Kind
from plerion.eventlog.writer import LogWriter
from plerion.index.codec import from_json, to_json
from plerion.index.cover import DEFAULT_BUDGET, cover
from plerion.index.propose import regular
from plerion.learning.propose import Request
from plerion.pipeline.errors import PipelineError
from plerion.pipeline.live import Live
from plerion.pipeline.options import Options, Outcome
from plerion.pipeline.stream import watch
from tests.spark.clusters import end

SCHEMA = Schema((Number("x", 0, 100), Number("y", 0, 100), Number("z", 0, 100)))
BLIND = regular(SCHEMA, 6, (1, 2))  # spends its bits where no subscription asks for anything
START, LENGTH, EVENTS = 1_700_000_000.0, 10.0, 260
LATE = 1.0
SUBSCRIPTIONS = 12
WAIT_SECONDS = 240.0
COUNTS = ("window", "events", "source", "deliveries", "wanted", "false_positives", "rate")

Floats = npt.NDArray[np.float64]
Line = dict[str, Any]


def drawn(window: int) -> Floats:
    return np.random.default_rng(window + 100).uniform(0, 100, (EVENTS, 3))


def boxes() -> Floats:
    low = np.random.default_rng(5).uniform(0, 90, SUBSCRIPTIONS)
    found = np.full((SUBSCRIPTIONS, 3, 2), (-np.inf, np.inf))
    found[:, 0] = np.stack((low, low + 5), axis=1)
    return found


@dataclass(frozen=True, slots=True)
class Place:
    """A log, the index in use, and where the watch keeps what it knows."""

    folder: Path

    @property
    def options(self) -> Options:
        wanted = Request(method="regular", select="x")
        return Options(
            self.folder / "log",
            self.folder / "index.json",
            self.folder / "watch",
            window=LENGTH,
            lateness=LATE,
            sample=400,
            request=wanted,
        )

    def writer(self, name: str, rate: float = 1.0) -> LogWriter:
        return LogWriter(self.folder / "log", SCHEMA, name, rate=rate, synced=False)

    def subscribe(self) -> None:
        with self.writer("asked") as log:
            for at, box in enumerate(boxes()):
                log.append_subscription(START, f"q{at}", f"h{at % 3}", box[None])

    def write(self, *windows: int, rate: float = 1.0) -> None:
        """Two files a window."""
        for window in windows:
            with self.writer(f"w{window}", rate) as log:
                for half in (0, 1):
                    rows = np.arange(half * EVENTS // 2, (half + 1) * EVENTS // 2)
                    times = START + LENGTH * (window + rows / EVENTS)
                    log.append_events(times, "p", window * EVENTS + rows, 0, drawn(window)[rows])
                    log.flush()

    def windows(self) -> list[Line]:
        found = sorted((self.folder / "watch" / "windows").glob("*/*.json"))
        return [json.loads(path.read_bytes()) for path in found]

    def proposals(self) -> list[Line]:
        found = sorted((self.folder / "watch" / "proposals").glob("*Z.json"))
        return [json.loads(path.read_bytes()) for path in found]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "index.json").write_bytes(to_json(BLIND))
    found = Place(tmp_path)
    found.subscribe()
    return found


Run = Callable[..., tuple[list[Line], list[str], Outcome]]


@pytest.fixture
def run(spark: SparkSession, place: Place) -> Run:
    """Watches what is in the log now; lines, complaints and what is left open."""

    def once(**changes: Any) -> tuple[list[Line], list[str], Outcome]:
        lines: list[Line] = []
        complaints: list[str] = []
        options = replace(place.options, **changes)
        return lines, complaints, watch(spark, options, Event(), True, lines.append, complaints.append)

    return once


def expected(window: int, asked: int = SUBSCRIPTIONS) -> Line:
    """A window by the definition: event by event, subscription by subscription."""
    cells = [cover(BLIND, box[None], DEFAULT_BUDGET) for box in boxes()[:asked]]
    delivered = wanted = 0
    for event in drawn(window).tolist():
        codes = BLIND.codes(event)
        for box, cell in zip(boxes()[:asked].tolist(), cells, strict=True):
            delivered += any(cell.covers(code) for code in codes)
            wanted += all(low <= at < high for at, (low, high) in zip(event, box, strict=True))
    return counted(window, EVENTS, "index", delivered, wanted)


def counted(window: int, events: float, source: str, delivered: float, wanted: float) -> Line:
    start = np.datetime64(int(START + window * LENGTH), "s")
    name = str(start).replace("-", "").replace(":", "") + "Z"
    wrong = delivered - wanted
    return dict(zip(COUNTS, (name, events, source, delivered, wanted, wrong, wrong / delivered), strict=True))


def counts(lines: list[Line]) -> list[Line]:
    return [{name: line[name] for name in COUNTS} for line in lines]


def test_every_window_says_what_its_definition_says_and_a_better_index_is_proposed(
    place: Place, run: Run
) -> None:
    place.write(*range(4))
    lines, complaints, left = run()
    assert counts(lines) == [expected(window) for window in range(3)]
    assert lines == place.windows()
    assert complaints == []
    assert left == Outcome(1, 0, 0), "the last window waits for later events"
    (proposal,) = place.proposals()
    assert proposal["window"] == lines[-1]["window"]
    assert proposal["reason"] == "rate over 0.5"
    assert proposal["proposed_rate"] < proposal["current_rate"] * 0.95
    assert proposal["epoch"] == 1
    assert proposal["choosing"] + proposal["judging"] == 400
    assert [line["verdict"] for line in lines] == ["left to a later window"] * 2 + ["proposed"]
    alone = place.folder / "watch" / "proposals" / f"{proposal['window']}.index.json"
    assert from_json(alone.read_bytes()).epoch == 1
    assert from_json(json.dumps(proposal["index"])) == from_json(alone.read_bytes())


def test_what_is_read_in_parts_says_the_same(place: Place, run: Run) -> None:
    place.write(0, 1)
    first, _, _ = run(threshold=1.0)
    place.write(2)
    second, _, left = run(threshold=1.0)
    assert counts(first + second) == [expected(window) for window in range(2)]
    assert left.open_windows == 1
    assert run(threshold=1.0)[0] == [], "nothing came since"
    assert [line["verdict"] for line in first + second] == ["learning", "learning"]


def test_a_crash_on_either_side_of_the_record_neither_loses_nor_repeats_a_window(
    spark: SparkSession, place: Place, run: Run
) -> None:
    place.write(*range(3))
    records = place.folder / "watch" / "records"
    records.parent.mkdir()
    records.write_text("in the way")
    with pytest.raises(OSError, match="records"):
        run()
    assert place.windows() == place.proposals() == []
    records.unlink()

    def fail(_: Line) -> None:
        raise RuntimeError("the screen is gone")

    with pytest.raises(RuntimeError, match="screen"):
        watch(spark, place.options, Event(), True, fail, print)
    told = place.windows()
    kept = place.proposals()
    assert len(told) == len(kept) == 1, "the window that was told, and the proposal"
    lines, _, _ = run()
    assert counts(place.windows()) == [expected(window) for window in range(2)]
    assert place.windows()[:1] == told
    assert len(lines) == 1
    assert place.proposals() == kept


def test_torn_and_foreign_files_are_named_and_cost_nothing_but_themselves(place: Place, run: Run) -> None:
    place.write(*range(3))
    (good, *_) = sorted((place.folder / "log" / "events").glob("*/*"))
    hour = good.parent
    (hour / ".waiting.partial").write_bytes(b"not yet")
    (hour / good.name.replace("w0", "w9")).write_bytes(good.read_bytes()[:-7])
    (hour / "odd name [1].parquet").write_text("no Parquet")
    (place.folder / "log" / "README").write_text("notes")
    other = Schema((Number("x", 0, 1),))
    with LogWriter(place.folder / "log", other, "other") as log:
        log.append_events(START, "p", 1, 0, [[0.5]])
    lines, complaints, _ = run()
    assert counts(lines) == [expected(window) for window in range(2)]
    assert lines[0]["skipped"] == 4
    assert lines[1]["skipped"] == 0
    for name, reason in {
        "w9": "torn or altered",
        "odd name [1]": "foreign",
        "README": "foreign",
        "part-other": "it has another schema",
    }.items():
        assert any(name in line and reason in line for line in complaints), complaints


def test_what_comes_after_its_window_was_closed_is_counted_and_nothing_else(place: Place, run: Run) -> None:
    place.write(0, 2)
    run(threshold=1.0)
    place.write(1)
    place.write(3)
    lines, _, _ = run(threshold=1.0)
    assert counts(lines) == [expected(2)]
    assert lines[0]["late"] == EVENTS
    assert counts(place.windows()) == [expected(0), expected(2)]


def test_a_clock_ahead_of_time_closes_no_window(place: Place, run: Run) -> None:
    place.write(0, 1)
    with place.writer("ahead") as log:
        log.append_events(START + 1e9, "ahead", 1, 0, drawn(0)[:1])
    assert counts(run(threshold=1.0)[0]) == [expected(0), expected(1)]
    place.write(2)
    _, _, left = run(threshold=1.0)
    assert left.late == EVENTS, "the present is past that window, too"


def test_logged_deliveries_are_what_counts_by_their_weight(place: Place, run: Run) -> None:
    place.write(*range(3), rate=0.5)
    with place.writer("h1", rate=0.5) as log:
        for window in range(3):
            rows = np.arange(EVENTS)
            times = START + LENGTH * (window + rows / EVENTS)
            log.append_deliveries(times, "q1", "h1", "p", window * EVENTS + rows, 0, rows % 4 > 0)
    lines, _, _ = run(threshold=1.0)
    for window, line in enumerate(lines):
        since = START + window * LENGTH
        table = LogReader(place.folder / "log").read(Kind.DELIVERIES, since, since + LENGTH).table
        kept, wanted = table.num_rows, sum(table["wanted"].to_pylist())
        assert 0 < kept < EVENTS
        events = LogReader(place.folder / "log").read(Kind.EVENTS, since, since + LENGTH).table.num_rows
        assert counts([line]) == [counted(window, 2.0 * events, "deliveries", 2.0 * kept, 2.0 * wanted)]
    assert len(lines) == 2


def test_a_window_is_held_against_the_subscriptions_at_its_end(place: Place, run: Run) -> None:
    with place.writer("later") as log:
        for at in range(4, SUBSCRIPTIONS):
            log.append_subscription(START + LENGTH * 1.5, f"q{at}", f"h{at % 3}", None, live=False)
    place.write(*range(3))
    lines, _, _ = run(threshold=1.0)
    assert counts(lines) == [expected(0), expected(1, asked=4)]


def test_an_index_that_is_replaced_is_in_use_from_then_on(place: Place, run: Run) -> None:
    place.write(*range(3))
    run()
    better = place.folder / "watch" / "proposals" / f"{place.windows()[-1]['window']}.index.json"
    place.write(3, 4)
    (place.folder / "index.json").write_bytes(better.read_bytes())
    lines, _, _ = run()
    # The second half of window 2 was still open, and was counted with the index of then.
    assert [line["epoch"] for line in lines] == [1, 1]
    assert lines[-1]["rate"] < 0.5 < expected(3)["rate"]
    assert lines[-1]["wanted"] == expected(3)["wanted"]


def test_a_file_that_cannot_be_read_is_told_of_and_what_was_in_use_stays(place: Place) -> None:
    complaints: list[str] = []
    index, asked = place.options.index, place.folder / "asked.csv"
    asked.write_text("id,host,filter\nq1,h1,x > 5\n")
    live = Live(place.options.log, index, asked, 1, DEFAULT_BUDGET, complaints.append)
    index.write_text("{")
    asked.write_text("id,host,filter\nq1,h1,x >\n")
    assert not live.refresh()
    assert live.index == BLIND
    assert live.interests(3).bounds[0, 0, 0] > 5
    assert [line.split()[0] for line in complaints] == [str(index), str(asked)]
    index.write_bytes(to_json(regular(Schema((Number("x", 0, 1),)), 3)))
    assert not live.refresh()
    assert "has another schema, the index in use stays" in complaints[-1]
    index.write_bytes(to_json(regular(SCHEMA, 3)))
    assert live.refresh()
    assert live.index == regular(SCHEMA, 3)


def test_drift_of_an_attribute_is_told_with_its_name_and_leads_to_a_proposal(place: Place, run: Run) -> None:
    place.write(*range(5))
    with place.writer("shifted") as log:
        for window in (5, 6):
            points = drawn(window) * (1, 1, 0.3)
            times = START + LENGTH * (window + np.arange(EVENTS) / EVENTS)
            log.append_events(times, "p", window * EVENTS + np.arange(EVENTS), 0, points)
    lines, _, _ = run(threshold=1.0)
    assert [line["verdict"] for line in lines] == ["learning"] * 3 + ["fine"] * 2 + ["proposed"]
    assert lines[-1]["attribute"] == "z"
    assert lines[-1]["reason"] == "drift: z"


def test_a_period_asks_in_the_time_of_the_events(place: Place, run: Run) -> None:
    for window in range(6):
        place.write(window)
        run(threshold=1.0, period=2 * LENGTH, margin=1.0)
    told = [(line["reason"], line["verdict"]) for line in place.windows()]
    assert told == [("", "learning")] * 2 + [
        ("period", "nothing better"),
        ("", "fine"),
        ("period", "nothing better"),
    ]
    assert place.proposals() == []


def test_what_cannot_be_watched_is_one_line(place: Place, run: Run, tmp_path: Path) -> None:
    place.write(0)
    run()
    with pytest.raises(InputError, match=r"was begun for .*log with windows of 10\.0 s; use that log"):
        run(window=20.0)
    with pytest.raises(InputError, match="takes a character of this name for a pattern"):
        run(log=tmp_path / "a*b")
    holding = [sys.executable, "-c", HOLD, str(place.folder / "watch")]
    with subprocess.Popen(holding, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(PipelineError, match="is in use by another watch; stop that one"):
            run()
        other.communicate()


HOLD = "import fcntl, os, sys\nfcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX)\n"
HOLD += "print('held', flush=True)\nsys.stdin.read()"


@contextmanager
def watching(place: Place) -> Iterator[subprocess.Popen[bytes]]:
    """The command, as a program of its own in its own process group."""
    words = ["pipeline", "watch", "--log", "log", "--index", "index.json", "--checkpoint", "watch", "--json"]
    words += ["--window", str(LENGTH), "--late", str(LATE), "--method", "regular", "--select", "x"]
    words += ["--master", "local[2]", "--sample", "400"]
    started = [str(Path(sys.executable).with_name("plerion")), *words]
    with (
        (place.folder / "out").open("ab") as out,
        subprocess.Popen(
            started, cwd=place.folder, stdout=out, stderr=out, start_new_session=True
        ) as program,
    ):
        try:
            yield program
        finally:
            end(program)


def await_windows(place: Place, count: int, program: subprocess.Popen[bytes]) -> None:
    deadline, pause = monotonic() + WAIT_SECONDS, Event()
    while len(list((place.folder / "watch" / "windows").glob("*/*.json"))) < count:
        said = (place.folder / "out").read_text()
        assert program.poll() is None, said
        assert monotonic() < deadline, said
        pause.wait(0.01)


def test_killed_in_the_middle_and_started_again_it_tells_every_window_once(place: Place) -> None:
    with watching(place) as program:
        place.write(0, 1)
        await_windows(place, 1, program)
        place.write(2, 3, 4, 5)
        await_windows(place, 2, program)  # and dies while it writes the others
    assert program.returncode == -signal.SIGKILL
    place.write(6)
    with watching(place) as program:
        place.write(7)
        await_windows(place, 7, program)
        os.kill(program.pid, signal.SIGTERM)
        assert program.wait(WAIT_SECONDS) == 0, (place.folder / "out").read_text()
    assert counts(place.windows()) == [expected(window) for window in range(7)]
    out = (place.folder / "out").read_text()
    assert "Traceback" not in out
    told = [json.loads(line)["window"] for line in out.splitlines() if line.startswith("{")]
    assert len(told) == len(set(told))
    assert "1 windows are open and wait for later events" in out
