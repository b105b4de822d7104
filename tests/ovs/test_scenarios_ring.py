"""Scenarios on a ring of six switches, where two ways lead everywhere."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from plerion.experiments.live import SECONDS
from plerion.topology import HostId, from_name
from tests.ovs.kills import killed_at_random_moments
from tests.ovs.network import Scene, Stage
from tests.ovs.scenes import LAWS

pytestmark = pytest.mark.ovs


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("ring")
    with closing(Stage(from_name("ring:6"), folder, ["h1", "h4"], ["h2", "h6"])) as stage:
        yield stage


def plerion(*words: object) -> tuple[int, str, str]:
    program = Path(sys.executable).with_name("plerion")
    done = subprocess.run(
        [program, *map(str, words)], capture_output=True, text=True, check=False, timeout=SECONDS
    )
    return done.returncode, done.stdout, done.stderr


def test_top_shows_rates_fill_and_what_sessions_counted(ring: Stage) -> None:
    with ring.scene() as scene:
        watched, home = scene.subscribers[0], _home(scene, scene.subscribers[0])
        scene.subscribe(watched, "half", 0, 127)
        with scene.traffic():
            scene.net.until("a session has said what it counted", lambda: counted(scene, watched) > 0)
            code, out, _ = plerion("top", "--api", scene.net.api, "--once", "--json", "--every", 1)
        shown = json.loads(out)
        assert code == 0
        switches = {one["switch"]: one for one in shown["switches"]}
        assert switches.keys() == set(scene.net.topology.switches)
        assert switches[home]["events_per_second"] > scene.rate / 10
        assert switches[home]["entries"] > 0
        sessions = {one["host"]: one for one in shown["sessions"]}
        assert sessions.keys() == {*scene.publishers, *scene.subscribers}
        told = sessions[watched]
        assert told["received"] == told["wanted"] + told["false_positives"]
        assert all(one["doubles"] == 0 for one in sessions.values())
        assert plerion("top", "--api", scene.net.api, "--once")[0] == 0


def _home(scene: Scene, host: str) -> str:
    """The switch that the host hangs on."""
    return scene.net.topology.attachment(HostId(host)).node


def counted(scene: Scene, host: str) -> int:
    return sum(one["received"] for one in scene.net.asked("/v1/sessions")["sessions"] if one["host"] == host)


def test_trace_asks_the_switches_and_a_difference_to_the_model_is_loud(ring: Stage) -> None:
    with ring.scene() as scene:
        sender, receiver = scene.publishers[0], scene.subscribers[0]
        scene.subscribe(receiver, "half", 0, 127)
        lab = scene.net.lab
        words = ["trace", "--api", scene.net.api, "--lab", lab.name, "--publisher", sender, "--json"]
        code, out, error = plerion(*words, "--event", "x=5", "--host", receiver)
        told = json.loads(out)
        assert (code, error, told["agree"]) == (0, "", True)
        assert told["host"] == {"host": receiver, "received": True, "why": "a subscription there matches"}
        assert told["real"][0]["delivered"] == told["journeys"][0]["delivered"] == [receiver]
        code, out, _ = plerion(*words, "--event", "x=200", "--host", receiver)
        assert json.loads(out)["host"]["why"] == "none of the 1 subscriptions there matches"
        unsaid = plerion(*words[:-3], "--publisher", receiver, "--event", "x=5")
        assert unsaid[0] == 0
        assert f"{receiver} sends nothing: it did not advertise such events" in unsaid[1]
        home = _home(scene, receiver)
        lab.ofctl(home, "del-flows", "table=1,udp6")
        code, out, error = plerion(*words, "--event", "x=5")
        assert (code, json.loads(out)["agree"]) == (1, False)
        assert f"MODEL AND SWITCH DISAGREE: 00000101: {home} in" in error
        assert scene.net.asked("/v1/resync", {})["changes"] > 0
        assert plerion(*words, "--event", "x=5")[0] == 0


@pytest.mark.campaign
def test_a_controller_is_killed_twenty_times_and_nothing_is_lost(ring: Stage) -> None:
    ring.carry_out(lambda scene: killed_at_random_moments(scene, lives=20, seed=time.time_ns()))


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_on_a_ring(law: Callable[[Scene], None], ring: Stage) -> None:
    ring.carry_out(law)
