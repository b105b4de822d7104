"""The papers' figures as a user gets them: tables, pictures, verdicts, and one line for what cannot be done."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from plerion.experiments.figures import FIGURES


def reproduce(*words: str) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [Path(sys.executable).with_name("plerion"), "reproduce", *words]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)


@pytest.mark.slow
@pytest.mark.spark
def test_figures_are_computed_on_spark_and_written_with_their_verdicts(tmp_path: Path) -> None:
    common = ("--scale", "0.02", "--master", "local[2]", "--out", str(tmp_path), "--json")
    outcome = reproduce("004-12b", "000-7e", *common)
    assert outcome.returncode == 0, outcome.stderr
    told = json.loads(outcome.stdout)
    assert [fact["figure"] for fact in told] == ["004-12b", "000-7e"]
    for fact in told:
        assert fact["verdict"] in ("holds", "holds in part", "does not hold")
        assert {(tmp_path / f"{fact['figure']}.{kind}").stat().st_size > 0 for kind in ("png", "svg")} == {
            True
        }
    with (tmp_path / "004-12b.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 * 8
    assert {row["line"] for row in rows} == {"EVS", "EMCS", "random", "boundary (ours)"}
    kept = json.loads((tmp_path / "verdicts.json").read_text())
    assert {fact["figure"] for fact in kept} == {"004-12b", "000-7e"}


def test_the_figures_are_listed_with_their_claims() -> None:
    outcome = reproduce("--list", "--json")
    assert [fact["figure"] for fact in json.loads(outcome.stdout)] == list(FIGURES)
    assert "GS takes longest" in reproduce("--list", "004-13a").stdout.replace("\n", " ")


def test_what_cannot_be_computed_is_one_line(tmp_path: Path) -> None:
    for words, line in (
        (["004-99z"], "there is no figure '004-99z'"),
        (["004-14b"], "004-14b needs real data sets; name their directory with --data"),
        (["--data", str(tmp_path)], "004-14b needs stocks/sp500_daily_2013_2018_a.csv.gz, which is not in"),
    ):
        outcome = reproduce(*words)
        assert outcome.returncode == 2
        assert line in outcome.stderr
        assert len(outcome.stderr.strip().splitlines()) == 1
