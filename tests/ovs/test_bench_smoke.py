"""What measures real switches runs and tells what it should; its figures are for a quiet machine."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from plerion.experiments.figures import FIGURES
from plerion.experiments.lab_site import free_port
from plerion.lab import Lab, labs
from plerion.topology import fat_tree

pytestmark = [pytest.mark.ovs, pytest.mark.campaign]

TINY = "0.001"


def plerion(*words: str | Path) -> str:
    command = [Path(sys.executable).with_name("plerion"), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def measured(*words: str) -> dict[str, float]:
    found = json.loads(plerion("bench", *words, "--scale", TINY, "--json"))
    return {row["what"]: row["measured"] for row in found["rows"]}


def test_delays_through_our_tables_and_through_one_entry_are_compared() -> None:
    found = measured("latency")
    assert all(0 < found[what] < 1_000 for what in found if what.startswith("delay"))
    assert any("added" in what for what in found)


def test_what_one_publisher_sends_slowly_all_arrives_in_a_lab_that_is_named_and_stays() -> None:
    name = f"bench-{os.getpid()}"
    lab = asyncio.run(Lab.up(fat_tree(4, 2), name, f"tcp:127.0.0.1:{free_port()}"))
    try:
        found = measured("throughput", "--lab", name)
        assert found["events a second of one publisher, all received"] > 200
        assert name in {one.name for one in labs()}
        left = lab.ofctl("s7", "dump-flows", "table=1")
        assert left.count("actions=") == 1, left
    finally:
        asyncio.run(lab.down())


def test_requests_of_hosts_are_timed_and_a_restart_tells_switches_nothing() -> None:
    found = measured("control")
    assert found["… flow-mods that tables needed"] == 0
    assert found["… 64 at a time"] > 1
    assert found["… by ovs-ofctl --bundle, in turns with ours"] > 0


@pytest.mark.parametrize("name", ["000-7b", "000-7c", "000-7f"])
def test_a_point_of_a_measured_figure_has_rows(name: str) -> None:
    figure = FIGURES[name]
    start = figure.starts[0]
    rows = figure.rows(type(start)(start.figure, start.panel, at=start.at, scale=0.02))
    assert rows
    assert all(row.y > 0 and row.panel == start.panel for row in rows)


def test_a_figure_that_is_measured_becomes_a_table_a_picture_and_a_verdict(tmp_path: Path) -> None:
    told = json.loads(plerion("reproduce", "000-7a", "--scale", TINY, "--out", tmp_path, "--json"))
    assert told[0]["verdict"] in ("holds", "holds in part", "does not hold")
    assert (tmp_path / "000-7a.png").read_bytes().startswith(b"\x89PNG")
    with (tmp_path / "000-7a.csv").open() as file:
        lines = {line["line"] for line in csv.DictReader(file)}
    assert lines == {"median, first time", "median, again", "mean of all"}
