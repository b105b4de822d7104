"""The contracts of `.importlinter` hold, and each of them can be broken."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.repository import PACKAGE, ROOT

VIOLATIONS = {
    "Imports point one way": ("content", "import plerion.index"),
    "Pure layers know no clock, no chance, no I/O": ("flow", "from time import monotonic"),
    "Only content knows the parser": ("routing", "from lark import Lark"),
    "Only kernel knows numba": ("simnet", "import numba"),
    "Only the pipeline knows Spark": ("cli", "import pyspark.sql"),
}


def lint_imports(directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(directory / "src"), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The package and its contracts in a place where they may be broken."""
    shutil.copytree(PACKAGE, tmp_path / "src" / "plerion", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / ".importlinter", tmp_path)
    return tmp_path


def test_imports_point_one_way() -> None:
    outcome = lint_imports(ROOT)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


def test_every_contract_notices_its_violation(copied: Path) -> None:
    for layer, line in VIOLATIONS.values():
        folder = copied / "src" / "plerion" / layer
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").touch()
        (folder / "intruder.py").write_text(line + "\n")
    outcome = lint_imports(copied)
    assert outcome.returncode == 1, outcome.stderr
    for contract in VIOLATIONS:
        assert f"{contract} BROKEN" in outcome.stdout
    for layer, _ in VIOLATIONS.values():
        assert f"plerion.{layer}.intruder ->" in outcome.stdout


def test_a_folder_outside_the_layers_is_noticed(copied: Path) -> None:
    stray = copied / "src" / "plerion" / "stray"
    stray.mkdir()
    (stray / "__init__.py").touch()
    assert "plerion.stray" in lint_imports(copied).stdout
