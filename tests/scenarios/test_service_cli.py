"""`check`, `up` and `flows` as a user gets them: facts, or one line that says what to do."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from tests.scenarios.test_cli import EXAMPLES, plerion


def folder(at: Path) -> Path:
    for name in ("plerion.yaml", "schema.yaml"):
        shutil.copy(EXAMPLES / name, at)
    plerion("index", "build", "--schema", at / "schema.yaml", "--bits", 24, "--out", at / "index.json")
    return at / "plerion.yaml"


def test_check_says_what_a_configuration_comes_to(tmp_path: Path) -> None:
    told = json.loads(plerion("check", folder(tmp_path), "--json"))
    assert (told["switches"], told["hosts"], told["bits"]) == (10, 8, 24)
    assert "is fine" in " ".join(plerion("check", tmp_path / "plerion.yaml").split())


def test_what_is_wrong_is_one_line_with_its_place_for_check_and_up(tmp_path: Path) -> None:
    path = folder(tmp_path)
    path.write_text(path.read_text().replace("budget: 32", "budget: lots"))
    for words in (("check", path), ("up", "--config", path)):
        told = plerion(*words, code=2)
        assert "plerion.yaml:6:9: 'lots' is no number here; give a whole number, 1 to 65536" in told
        assert len(told.strip().splitlines()) == 1


def test_flows_without_a_controller_says_how_to_start_one() -> None:
    told = plerion("flows", "--api", "http://127.0.0.1:9", code=2)
    assert "no controller answers" in told
    assert "plerion up" in told
    assert len(told.strip().splitlines()) == 1
    assert "is no address" in plerion("flows", "--api", "file:///etc/hosts", code=2)


def test_up_ends_cleanly_when_it_is_told_to(tmp_path: Path) -> None:
    path = folder(tmp_path)
    text = path.read_text().replace("127.0.0.1:6653", "127.0.0.1:0").replace("127.0.0.1:8080", "127.0.0.1:0")
    path.write_text(text)
    words = [str(Path(sys.executable).with_name("plerion")), "up", "--config", str(path)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        lines = []
        for line in running.stderr:
            lines.append(json.loads(line))
            if "switches are expected" in lines[-1]["message"]:
                running.terminate()
        assert running.wait(20) == 0
    assert lines[-1]["message"] == "ended; the switches keep what they hold"
