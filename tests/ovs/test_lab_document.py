"""The commands that docs/lab.md shows work, in their order, in a world of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.repository import ROOT
from tests.architecture.test_documents import FENCE
from tests.ovs.test_lab_leaves_nothing import A_WORLD

pytestmark = pytest.mark.ovs

ENTER = "mount -t tmpfs tmpfs /run; ip link set lo up; "


def commands() -> list[str]:
    blocks = FENCE.findall((ROOT / "docs" / "lab.md").read_text())
    return [line for kind, body in blocks if kind == "sh" for line in body.splitlines()]


def shown(script: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [*A_WORLD, "bash", "-euc", ENTER + script],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_commands_of_the_document_run() -> None:
    lines = commands()
    assert len(lines) >= 4
    done = shown("; ".join(lines))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fd00::1/128" in done.stdout


def test_a_command_that_fails_is_noticed() -> None:
    assert shown("plerion lab exec h1 -- true").returncode == 2
