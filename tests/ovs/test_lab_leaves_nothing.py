"""A lab is there whole or not at all, however it comes to its end: every scene of `lab_world`, each in a fresh one."""

import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from plerion.lab import labs, take_down
from plerion.lab.place import Place
from plerion.lab.residue import residue
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


def test_a_lab_in_another_world_is_none_of_this_one() -> None:
    """As in a container: its processes can be seen from here, under the same names and directories."""
    name = f"w{uuid4().hex[:12]}"
    words = [*A_WORLD, sys.executable, "-m", "tests.ovs.lab_world", "stay", name]
    with subprocess.Popen(
        words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as inside:
        assert inside.stdin is not None
        assert inside.stdout is not None
        assert inside.stdout.readline() == "up\n"
        there = [path for path in Path("/proc").glob("[0-9]*/cmdline") if f"/{name}/" in path.read_text()]
        assert len(there) == 2
        assert not residue(Place(name))
        assert not take_down(Place(name))
        assert name not in [one.name for one in labs()]
        assert all(f"/{name}/" in path.read_text() for path in there)
        inside.stdin.close()
        assert inside.wait(20) == 0


def test_a_scene_that_fails_is_noticed() -> None:
    done = subprocess.run(
        [*A_WORLD, sys.executable, "-m", "tests.ovs.lab_world", "no_such_scene"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert done.returncode != 0
