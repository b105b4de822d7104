"""A lab is there whole or not at all, however it comes to its end: every scene of `lab_world`, each in a fresh one."""

import subprocess
import sys

import pytest

from tests.architecture.repository import ROOT
from tests.ovs.lab_world import SCENES, the_world_is_seen_to_change

pytestmark = pytest.mark.ovs

A_WORLD = ["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]


@pytest.mark.parametrize("scene", [scene.__name__ for scene in [*SCENES, the_world_is_seen_to_change]])
def test(scene: str) -> None:
    done = subprocess.run(
        [*A_WORLD, sys.executable, "-m", "tests.ovs.lab_world", scene],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_scene_that_fails_is_noticed() -> None:
    done = subprocess.run(
        [*A_WORLD, sys.executable, "-m", "tests.ovs.lab_world", "no_such_scene"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert done.returncode != 0
