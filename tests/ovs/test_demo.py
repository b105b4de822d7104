"""`DATAPLANE=ovs plerion demo`: real switches deliver real weather, and nothing is left, however it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plerion.lab import labs

pytestmark = [pytest.mark.ovs, pytest.mark.campaign]

PLERION = Path(sys.executable).with_name("plerion")
ENVIRONMENT = {**os.environ, "DATAPLANE": "ovs"}


def started(*words: str) -> subprocess.Popen[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([PLERION, "demo", *words], env=ENVIRONMENT, text=True, **pipes)  # type: ignore[call-overload,no-any-return]  # pipes by name


def left(pid: int) -> list[str]:
    """Labs of this demo, and processes that know its folder."""
    lines = subprocess.run(
        ["ps", "-eo", "args"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return [one.name for one in labs() if one.name == f"demo-{pid}"] + [
        line for line in lines if "plerion-demo-" in line
    ]


def test_the_weather_crosses_real_switches_and_nothing_is_lost_or_doubled() -> None:
    demo = started("--seconds", "12", "--json")
    out, error = demo.communicate(timeout=240)
    facts = json.loads(out)
    assert (demo.returncode, error) == (0, ""), facts
    assert facts["events"] == 26_114
    assert facts["deliveries"] > 3_000
    assert (facts["lost"], facts["doubled"]) == (0, 0)
    assert left(demo.pid) == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_told_to_end_it_takes_everything_down(how: signal.Signals) -> None:
    demo = started("--seconds", "60", "--json")
    give_up = time.monotonic() + 120
    while not any(one.name == f"demo-{demo.pid}" and one.connected for one in labs()):
        assert time.monotonic() < give_up
        assert demo.poll() is None
        time.sleep(0.05)
    assert left(demo.pid)
    demo.send_signal(how)
    _, error = demo.communicate(timeout=60)
    assert (demo.returncode, "Traceback" in error) == (130, False), error
    assert left(demo.pid) == []


def test_without_root_it_says_so_in_one_line(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for path in (home, *tmp_path.parents[:2], tmp_path):
        path.chmod(0o777)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    code = "import sys; from plerion.cli.main import run; sys.argv = ['plerion', 'demo']; run()"
    environment = {**ENVIRONMENT, "HOME": str(home)}
    words = [*nobody, sys.executable, "-c", code]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: DATAPLANE=ovs needs root")
    assert done.stderr.count("\n") == 1
