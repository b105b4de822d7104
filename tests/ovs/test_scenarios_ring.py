"""Scenarios on a ring of six switches, where two ways lead everywhere."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plerion.topology import HostId, from_name
from tests.ovs.network import Scene, scene
from tests.ovs.scenes import LAWS

pytestmark = [pytest.mark.ovs, pytest.mark.campaign]


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("ring")
    with scene(from_name("ring:6"), folder, ["h1", "h4"], ["h2", "h6"]) as found:
        yield found


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_on_a_ring(law: Callable[[Scene], None], ring: Scene) -> None:
    try:
        law(ring)
    finally:
        ring.close()


def plerion(*words: object) -> tuple[int, str, str]:
    program = Path(sys.executable).with_name("plerion")
    done = subprocess.run(
        [program, *map(str, words)], capture_output=True, text=True, check=False, timeout=60
    )
    return done.returncode, done.stdout, done.stderr


def test_top_shows_rates_fill_and_what_sessions_counted(ring: Scene) -> None:
    watched = ring.subscribers[0]
    ring.subscribe(watched, "half", 0, 127)
    try:
        with ring.traffic():
            ring.net.until("a session has said what it counted", lambda: counted(ring, watched) > 0)
            code, out, _ = plerion("top", "--api", ring.net.api, "--once", "--json", "--every", 1)
        shown = json.loads(out)
        assert code == 0
        switches = {one["switch"]: one for one in shown["switches"]}
        home = ring.net.topology.attachment(HostId(watched)).node
        assert switches.keys() == set(ring.net.topology.switches)
        assert switches[home]["events_per_second"] > 100
        assert switches[home]["entries"] > 0
        sessions = {one["host"]: one for one in shown["sessions"]}
        assert sessions.keys() == {*ring.publishers, *ring.subscribers}
        assert (
            sessions[watched]["received"]
            == sessions[watched]["wanted"] + sessions[watched]["false_positives"]
        )
        assert all(one["doubles"] == 0 for one in sessions.values())
        assert plerion("top", "--api", ring.net.api, "--once")[0] == 0
    finally:
        ring.close()


def counted(scene: Scene, host: str) -> int:
    return sum(one["received"] for one in scene.net.asked("/v1/sessions")["sessions"] if one["host"] == host)


def test_trace_asks_the_switches_and_a_difference_to_the_model_is_loud(ring: Scene) -> None:
    sender, receiver = ring.publishers[0], ring.subscribers[0]
    ring.subscribe(receiver, "half", 0, 127)
    words = ["trace", "--api", ring.net.api, "--lab", ring.net.lab.name, "--publisher", sender, "--json"]
    try:
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
        home = ring.net.topology.attachment(HostId(receiver)).node
        ring.net.lab.ofctl(home, "del-flows", "table=1,udp6")
        code, out, error = plerion(*words, "--event", "x=5")
        assert (code, json.loads(out)["agree"]) == (1, False)
        assert f"MODEL AND SWITCH DISAGREE: 00000101: {home} in" in error
        assert ring.net.asked("/v1/resync", {})["changes"] > 0
        assert plerion(*words, "--event", "x=5")[0] == 0
    finally:
        ring.close()
