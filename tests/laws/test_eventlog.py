"""Laws of the log: what was written comes back to the last bit, damage costs its own file, and a kill does none.

The twin of a log is a plain list of what was appended to it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plerion.content.box import Box, bounds
from plerion.content.schema import Number, Schema
from plerion.eventlog.part import Part, hour_start
from plerion.eventlog.reader import LogReader
from plerion.eventlog.records import MICROS, EventRecords, Floats, Kind
from plerion.eventlog.writer import LogWriter
from tests.architecture.repository import ROOT
from tests.laws.indexes import boxes, points, schemas

law = settings(max_examples=40, deadline=None)

# Near the ends of hours, before 1970, and past the day on which 32 bits of seconds end.
MOMENTS = st.sampled_from([0, 3599_999_999, 3600_000_000, -1, 1_365_000_000_123_457, 2**32 * MICROS - 1])
TIMES = (MOMENTS | st.integers(-(10**15), 2**32 * MICROS - 1)).map(lambda micro: micro / MICROS)
NAMES = st.sampled_from(["h1", "h2", "größe", ""])
WHOLE = st.integers(0, 2**63 - 1)


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


class Appended(NamedTuple):
    """Some events, appended at once."""

    times: list[Any]
    publishers: list[Any]
    sequences: list[Any]
    epoch: int
    points: Floats
    flushed: bool


@st.composite
def appends(draw: st.DrawFn, schema: Schema) -> Appended:
    found = draw(points(schema))
    events = [draw(st.tuples(TIMES, NAMES, WHOLE)) for _ in found]
    times, names, numbers = ([event[part] for event in events] for part in range(3))
    return Appended(times, names, numbers, draw(WHOLE), found, draw(st.booleans()))


@st.composite
def histories(draw: st.DrawFn) -> tuple[Schema, list[Appended]]:
    schema = draw(schemas())
    return schema, draw(st.lists(appends(schema), max_size=5))


def write(log: Path, schema: Schema, history: list[Appended]) -> None:
    with LogWriter(log, schema, "w", synced=False) as writer:
        for some in history:
            writer.append_events(some.times, some.publishers, some.sequences, some.epoch, some.points)
            if some.flushed:
                writer.flush()


def twin(history: list[Appended]) -> Counter[tuple[object, ...]]:
    """Every event with the bits of its position, as often as it was appended."""
    return Counter(
        (time, publisher, sequence, some.epoch, 1.0, place.tobytes())
        for some in history
        for time, publisher, sequence, place in zip(
            some.times, some.publishers, some.sequences, some.points, strict=True
        )
    )


def rows(events: EventRecords) -> Counter[tuple[object, ...]]:
    numbers = (events.times, events.sequences, events.epochs, events.weights)
    times, sequences, epochs, weights = (column.tolist() for column in numbers)
    places = [place.tobytes() for place in events.points]
    return Counter(zip(times, events.publishers, sequences, epochs, weights, places, strict=True))


def whole_parts(log: Path, schema: Schema) -> list[tuple[Path, pa.Table]]:
    parts = LogReader(log, schema).parts(Kind.EVENTS, whole=True)
    return [(part.path, part.table) for part in parts if isinstance(part, Part)]


@law
@given(histories())
def test_events_come_back_to_the_last_bit(given: tuple[Schema, list[Appended]]) -> None:
    schema, history = given
    with folder() as log:
        write(log, schema, history)
        events, skipped = LogReader(log, schema).events()
        assert skipped == ()
        assert rows(events) == twin(history)


@law
@given(histories())
def test_every_file_holds_times_of_its_hour_only(given: tuple[Schema, list[Appended]]) -> None:
    schema, history = given
    with folder() as log:
        write(log, schema, history)
        for path, table in whole_parts(log, schema):
            start = hour_start(path.parent.name)
            assert start is not None
            offsets = table["time"].cast(pa.int64()).to_numpy() - start
            assert ((offsets >= 0) & (offsets < 3600 * MICROS)).all()


@law
@given(histories(), TIMES, TIMES)
def test_a_range_is_what_a_look_at_every_event_finds(
    given: tuple[Schema, list[Appended]], since: float, until: float
) -> None:
    schema, history = given
    with folder() as log:
        write(log, schema, history)
        found = rows(LogReader(log, schema).events(since, until).events)
        within = {event: n for event, n in twin(history).items() if since <= float(str(event[0])) < until}
        assert found == Counter(within)


def test_the_twin_can_disagree() -> None:
    schema = Schema((Number("x", -1, 1),))
    history = [Appended([1.0], ["h1"], [7], 0, np.array([[0.0]]), False)]
    with folder() as log:
        write(log, schema, history)
        found = rows(LogReader(log, schema).events().events)
    assert found == twin(history)
    (some,) = history
    for other in (
        some._replace(points=np.array([[-0.0]])),
        some._replace(points=np.array([[5e-324]])),
        some._replace(times=[1.000001]),
        some._replace(publishers=["h2"]),
        some._replace(epoch=1),
    ):
        assert found != twin([other])
    assert found != twin([some, some])
    assert found != twin([])


@st.composite
def damages(draw: st.DrawFn) -> tuple[str, float, int]:
    """What happens to a file, how far into it, and to which bit."""
    return draw(st.sampled_from(["cut", "flip", "foreign"])), draw(st.floats(0, 1)), draw(st.integers(0, 7))


def damaged(content: bytes, damage: tuple[str, float, int]) -> bytes:
    what, share, bit = damage
    at = min(int(share * len(content)), len(content) - 1)
    if what == "cut":
        return content[:at]
    if what == "foreign":
        return bytes(range(256)) * (1 + at)
    altered = bytearray(content)
    altered[at] ^= 1 << bit
    return bytes(altered)


@settings(law, max_examples=80)
@given(histories().filter(lambda given: sum(len(some.times) for some in given[1]) > 1), st.data())
def test_a_damaged_file_is_left_out_alone_and_named(
    given: tuple[Schema, list[Appended]], data: st.DataObject
) -> None:
    schema, history = given
    with folder() as log:
        write(log, schema, history)
        tables = dict(whole_parts(log, schema))
        victim = data.draw(st.sampled_from(list(tables)))
        survivors = Counter[tuple[object, ...]]()
        for path, table in tables.items():
            survivors += rows(EventRecords.of(table, schema)) if path != victim else Counter()
        damage = data.draw(damages())
        victim.write_bytes(damaged(victim.read_bytes(), damage))
        events, skipped = LogReader(log, schema).events()
        assert rows(events) == survivors
        assert [skip.path for skip in skipped] == [victim]
        good, named = LogReader(log, schema).paths(Kind.EVENTS)
        assert {*good, *(skip.path for skip in named)} == {*tables}
        assert [skip.path for skip in named] == [victim] or damage[0] == "flip", (
            "a footer shows what is cut or foreign"
        )


@st.composite
def subscriptions(draw: st.DrawFn) -> tuple[Schema, list[tuple[float, str, list[Box] | None]]]:
    """A history of words, in the order of time: an id begins with boxes or ends."""
    schema = draw(schemas(2))
    ids = st.sampled_from(["a", "b", "c"])
    asked = st.none() | st.lists(boxes(schema), max_size=3)
    words = draw(st.lists(st.tuples(TIMES, ids, asked), max_size=8))
    return schema, sorted(words, key=lambda word: word[0])


@law
@given(subscriptions(), TIMES)
def test_live_is_what_replaying_every_word_up_to_a_time_leaves(
    given: tuple[Schema, list[tuple[float, str, list[Box] | None]]], time: float
) -> None:
    schema, words = given
    expected: dict[str, bytes] = {}
    with folder() as log:
        with LogWriter(log, schema, "w", synced=False) as writer:
            for when, id, asked in words:
                held = None if asked is None else bounds(asked, schema)
                writer.append_subscription(when, id, "h1", held, live=held is not None)
                if when <= time:
                    expected.pop(id, None)
                    expected |= {} if held is None else {id: held.tobytes()}
        found, skipped = LogReader(log, schema).subscriptions_at(time)
    assert skipped == ()
    spans = zip(found.ids, found.offsets, found.offsets[1:], strict=False)
    assert {id: found.bounds[start:end].tobytes() for id, start, end in spans} == expected


SCHEMA = Schema((Number("x", 0, 1e9),))
WRITING = """
    import numpy as np
    from tests.laws.test_eventlog import LogWriter, SCHEMA
    writer = LogWriter({log!r}, SCHEMA, "w")
    for i in range(10 ** 9):
        numbers = np.arange(100 * i, 100 * i + 100)
        writer.append_events(numbers * 60.0, "h1", numbers, 0, numbers[:, None])
        writer.flush()
        print(100 * i + 100, flush=True)
"""
IN_PLACE = """
    from pathlib import Path
    import plerion.eventlog.writer
    def torn(path, content, synced):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content[: len(content) // 2])
        print(100, flush=True)
        while True:
            pass
    plerion.eventlog.writer.write_whole = torn
"""


def killed_after(log: Path, script: str, lines: int) -> int:
    """Kills a process that writes to the log when it has said so many lines; how many events it had flushed."""
    process = subprocess.Popen(
        [sys.executable, "-c", dedent(script).format(log=str(log))],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    said = [int(line) for line in islice(process.stdout, lines)]
    process.kill()
    said += [int(line) for line in process.stdout.read().split("\n")[:-1]]
    process.stdout.close()
    assert process.wait() == -9, "it was killed at work"
    return said[-1]


@pytest.mark.slow
@pytest.mark.parametrize("lines", [1, 5, 23])
def test_a_kill_leaves_whole_files_only_and_all_that_was_flushed(tmp_path: Path, lines: int) -> None:
    flushed = killed_after(tmp_path, WRITING, lines)
    events, skipped = LogReader(tmp_path, SCHEMA).events()
    assert skipped == ()
    assert LogReader(tmp_path, SCHEMA).paths(Kind.EVENTS, whole=True).skipped == ()
    assert set(range(flushed)) <= set(events.sequences.tolist())
    assert len(set(events.sequences.tolist())) == len(events.sequences)


@pytest.mark.slow
def test_a_file_written_in_place_would_be_noticed(tmp_path: Path) -> None:
    killed_after(tmp_path, dedent(IN_PLACE) + dedent(WRITING), 1)
    assert len(LogReader(tmp_path, SCHEMA).events().skipped) == 1
