"""The journal: what was acknowledged is there after a kill, what is not a journal is refused."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from plerion.content.schema import Number, Schema
from plerion.controller.inputs import (
    Advertise,
    Input,
    LinkDown,
    LinkUp,
    Subscribe,
    SwitchDown,
    SwitchUp,
    Unadvertise,
    Unsubscribe,
)
from plerion.controller.journal import MAX_REGION_BYTES, Journal, JournalError, digest, fingerprint
from plerion.controller.state import Settings
from plerion.index.propose import regular
from plerion.topology import SwitchId, line, ring

SCHEMA = Schema((Number("x", 0, 15, integer=True),))
SETTINGS = Settings(line(2), regular(SCHEMA, 4))
ONE_OF_EACH: list[Input] = [
    Advertise("a", "h1", "x > 3"),
    Subscribe("q", "h2", (((0.0, 4.0),), ((8.0, float("inf")),))),
    Unadvertise("a"),
    Unsubscribe("q"),
    LinkDown("s1:1"),
    LinkUp("s1:1"),
    SwitchDown("s1"),
    SwitchUp("s1"),
]


def reopened(path: Path) -> list[Input]:
    journal = Journal(path, SETTINGS)
    found = list(journal.replay())
    assert len(journal) == len(found)
    journal.close()
    return found


def test_every_kind_of_input_comes_back_as_it_was(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", SETTINGS)
    journal.append(ONE_OF_EACH[:3])
    journal.append(())
    journal.append(ONE_OF_EACH[3:])
    journal.close()
    assert reopened(tmp_path / "j") == ONE_OF_EACH


def broken_off(inputs: Sequence[Input]) -> Iterator[Input]:
    """Inputs that stop coming halfway."""
    yield from inputs
    raise OSError("no more")


def test_an_append_is_all_or_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", SETTINGS)
    journal.append(ONE_OF_EACH[:1])
    with pytest.raises(OSError, match="no more"):
        journal.append(broken_off(ONE_OF_EACH[1:]))
    journal.append(ONE_OF_EACH[1:2])
    assert list(journal.replay()) == ONE_OF_EACH[:2]


def test_compaction_replaces_everything_or_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", SETTINGS)
    journal.append(ONE_OF_EACH)
    with pytest.raises(OSError, match="no more"):
        journal.compact(broken_off(ONE_OF_EACH[1:]))
    assert list(journal.replay()) == ONE_OF_EACH
    journal.compact(ONE_OF_EACH[:2])
    journal.append(ONE_OF_EACH[4:5])
    journal.close()
    assert reopened(tmp_path / "j") == [*ONE_OF_EACH[:2], ONE_OF_EACH[4]]


def test_a_full_disk_is_said_and_the_journal_goes_on(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", SETTINGS)
    journal.append(ONE_OF_EACH)
    (pages,) = journal._database.execute("PRAGMA page_count").fetchone()
    journal._database.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(JournalError, match=r"j: database or disk is full: nothing of this was kept"):
        journal.append(Subscribe(f"q{i}", "h1", "x > 1" * 500) for i in range(50))
    assert list(journal.replay()) == ONE_OF_EACH
    journal._database.execute("PRAGMA max_page_count = 100000")
    journal.append(ONE_OF_EACH)
    journal.close()
    assert reopened(tmp_path / "j") == [*ONE_OF_EACH, *ONE_OF_EACH]


OTHERS = {
    "topology": Settings(ring(3), SETTINGS.index),
    "index": Settings(SETTINGS.topology, regular(SCHEMA, 3)),
    "epoch": Settings(SETTINGS.topology, regular(SCHEMA, 4, epoch=1)),
}
SAME = {
    "budget": Settings(SETTINGS.topology, SETTINGS.index, budget=31),
    "trees": Settings(SETTINGS.topology, SETTINGS.index, max_trees=3),
    "limits": Settings(SETTINGS.topology, SETTINGS.index, tcam={SwitchId("s1"): 5}),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_a_journal_of_other_settings_is_refused_and_left_as_it_was(tmp_path: Path, other: Settings) -> None:
    journal = Journal(tmp_path / "j", SETTINGS)
    journal.append(ONE_OF_EACH)
    journal.close()
    with pytest.raises(JournalError, match="another topology or index; give this one a file of its own"):
        Journal(tmp_path / "j", other)
    assert reopened(tmp_path / "j") == ONE_OF_EACH


@pytest.mark.parametrize("other", SAME.values(), ids=SAME)
def test_a_journal_outlives_a_change_of_budget_trees_and_limits(tmp_path: Path, other: Settings) -> None:
    journal = Journal(tmp_path / "j", SETTINGS)
    journal.append(ONE_OF_EACH)
    journal.close()
    again = Journal(tmp_path / "j", other)
    assert list(again.replay()) == ONE_OF_EACH
    again.close()


def test_equal_settings_made_anew_have_the_same_fingerprint() -> None:
    assert fingerprint(SETTINGS) == fingerprint(Settings(line(2), regular(SCHEMA, 4)))
    assert len({fingerprint(settings) for settings in (SETTINGS, *OTHERS.values())}) == 1 + len(OTHERS)


def test_a_later_releases_journal_is_refused(tmp_path: Path) -> None:
    Journal(tmp_path / "j", SETTINGS).close()
    altered(tmp_path / "j", "UPDATE about SET value = '9' WHERE name = 'version'")
    with pytest.raises(JournalError, match="version 9, this release reads version 2"):
        Journal(tmp_path / "j", SETTINGS)


def test_two_controllers_do_not_share_a_journal(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", SETTINGS)
    journal.append(ONE_OF_EACH[:1])
    with pytest.raises(JournalError, match=r"j: database is locked: another controller has it open"):
        Journal(tmp_path / "j", SETTINGS)
    journal.append(ONE_OF_EACH[1:])
    journal.close()
    assert reopened(tmp_path / "j") == ONE_OF_EACH


def test_boxes_of_filter_texts_are_kept_beside_the_inputs(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", SETTINGS)
    boxes, many = np.array([[[4.0, np.inf]]]), np.zeros((MAX_REGION_BYTES // 16 + 1, 1, 2))
    journal.append(ONE_OF_EACH[:1], {"x > 3": boxes, "x = 1 OR …": many, "FALSE": boxes[:0]})
    journal.close()
    journal = Journal(tmp_path / "j", SETTINGS)
    kept = journal.regions()
    assert {key: found.tolist() for key, found in kept.items()} == {
        digest("x > 3"): boxes.tolist(),
        digest("FALSE"): [],
    }
    journal.compact(ONE_OF_EACH[:2])
    assert set(journal.regions()) == {digest("x > 3")}


@pytest.mark.parametrize("content", [b"not a database at all" * 50, b"SQLite format 3\0" + b"\xff" * 2000])
def test_a_file_that_is_no_journal_is_refused_and_left_as_it_was(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "j"
    path.write_bytes(content)
    with pytest.raises(JournalError, match="it is not a journal, or not writable"):
        Journal(path, SETTINGS)
    assert path.read_bytes() == content


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="unable to open database file"):
        Journal(tmp_path / "missing" / "j", SETTINGS)


@pytest.mark.parametrize("body", [b"\xc1", b"", b"\x92\xa9Subscribe\x01", None, 5])
def test_a_damaged_input_stops_the_replay_with_its_number(tmp_path: Path, body: object) -> None:
    journal = Journal(tmp_path / "j", SETTINGS)
    journal.append(ONE_OF_EACH)
    journal.close()
    altered(tmp_path / "j", "UPDATE inputs SET body = ? WHERE number = 3", (body,))
    replayed = Journal(tmp_path / "j", SETTINGS).replay()
    assert list(islice(replayed, 2)) == ONE_OF_EACH[:2]
    with pytest.raises(JournalError, match=r"j: input 3 is damaged"):
        next(replayed)


def test_a_file_with_overwritten_pages_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "j"
    journal = Journal(path, SETTINGS)
    journal.append(Subscribe(f"q{i}", "h1", "x > 3") for i in range(2000))
    journal.close()
    content = bytearray(path.read_bytes())
    content[4096 * 4 : 4096 * 12] = b"\xa5" * 4096 * 8
    path.write_bytes(content)
    with pytest.raises(JournalError, match="the file is damaged"):
        list(Journal(path, SETTINGS).replay())


def altered(path: Path, statement: str, values: Sequence[object] = ()) -> None:
    database = sqlite3.connect(path)
    with database:
        database.execute(statement, values)
    database.close()


def forever(path: Path, body: str) -> subprocess.Popen[str]:
    """A process that writes inputs to the journal until it is killed, and a line for each that it acknowledges."""
    start = f"""
        from tests.unit.test_controller_journal import Journal, SETTINGS, Subscribe, numbered
        journal = Journal({str(path)!r}, SETTINGS)
    """
    script = dedent(start) + dedent(body)
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=ROOT)


ROOT = Path(__file__).resolve().parents[2]


def numbered(first: int, last: int) -> list[Input]:
    return [Subscribe(f"q{i}", "h1", "x > 3") for i in range(first, last)]


def killed_after(process: subprocess.Popen[str], lines: int) -> int:
    """Kills the process as soon as it has acknowledged so many lines; how many inputs these were."""
    assert process.stdout is not None
    acknowledged = [int(line) for line in islice(process.stdout, lines)]
    process.kill()
    acknowledged += [int(line) for line in process.stdout.read().split("\n")[:-1]]
    process.stdout.close()
    assert process.wait() == -9, "it was killed at work"
    return acknowledged[-1] if acknowledged else 0


APPENDING = """
    for i in range(10 ** 9):
        journal.append(numbered(3 * i, 3 * i + 3))
        print(3 * i + 3, flush=True)
"""
COMPACTING = """
    for i in range(10 ** 9):
        journal.append(numbered(3 * i, 3 * i + 3))
        print(3 * i + 3, flush=True)
        journal.compact(numbered(0, 3 * i + 3))
"""
TOO_EARLY = """
    journal.append(numbered(0, 3))
    print(3, flush=True)
    journal._database.execute("BEGIN")
    journal._insert(numbered(3, 6))
    print(6, flush=True)
    while True:
        pass
"""


@pytest.mark.slow
@pytest.mark.parametrize("lines", [1, 2, 37, 200])
@pytest.mark.parametrize("body", [APPENDING, COMPACTING], ids=["appending", "compacting"])
def test_every_acknowledged_input_survives_a_kill_at_any_point(tmp_path: Path, body: str, lines: int) -> None:
    acknowledged = killed_after(forever(tmp_path / "j", body), lines)
    found = reopened(tmp_path / "j")
    assert len(found) % 3 == 0, "a batch is there as a whole or not at all"
    assert len(found) >= acknowledged >= 3 * lines
    assert found == numbered(0, len(found))


@pytest.mark.slow
def test_an_acknowledgement_before_the_disk_has_it_would_be_noticed(tmp_path: Path) -> None:
    acknowledged = killed_after(forever(tmp_path / "j", TOO_EARLY), 2)
    assert acknowledged == 6
    assert reopened(tmp_path / "j") == numbered(0, 3)
