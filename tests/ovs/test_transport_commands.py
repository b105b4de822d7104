"""`plerion pub` and `plerion sub` as processes in hosts of a lab: what is printed is exactly what was asked for."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from plerion.client.rehearsal import rehearse as rehearse_client
from plerion.controller.rehearsal import rehearse
from plerion.lab import Lab
from plerion.topology import from_name
from tests.ovs.service_world import INDEX, PROGRAM, SECONDS, Process, free_port, wait_for

pytestmark = pytest.mark.ovs

EVENTS = [{"x": number % 256, "y": number % 100} for number in range(1_000)]


class World:
    """Two switches, a host at each, and a controller; programs run in the hosts."""

    def __init__(self, lab: Lab, up: Process) -> None:
        self.lab, self.up = lab, up
        self.running: list[subprocess.Popen[str]] = []

    def start(self, host: str, *words: str, **options: Any) -> subprocess.Popen[str]:
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self.running.append(self.lab.popen(host, [PROGRAM, *words], **pipes, **options))
        return self.running[-1]

    def subscribers(self, *commands: list[str]) -> list[subprocess.Popen[str]]:
        """A `plerion sub` for each, all of which have said that they are ready."""
        common = ["--json", "--deadline", str(SECONDS)]
        made = [self.start("h2", "sub", *words, *common) for words in commands]
        for program in made:
            assert program.stdout is not None
            line = program.stdout.readline()
            assert "ready" in line, program.communicate()
        return made

    def publish(self, *words: str, text: str | None = None) -> dict[str, Any]:
        publisher = self.start(
            "h1", "pub", "--json", "--deadline", str(SECONDS), *words, stdin=subprocess.PIPE if text else None
        )
        said, complained = publisher.communicate(text, timeout=2 * SECONDS)
        assert publisher.returncode == 0, complained
        found: dict[str, Any] = json.loads(said)
        return found


def ended(program: subprocess.Popen[str]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The events that a subscriber printed after *ready*, and its counts."""
    said, complained = program.communicate(timeout=SECONDS)
    assert program.returncode == 0, complained
    *events, last = map(json.loads, said.splitlines())
    return events, last["counts"]


@contextmanager
def a_world(last_hop: str, folder: Path) -> Iterator[World]:
    rehearse_client(INDEX)
    rehearse(INDEX)
    port = free_port()
    lab = asyncio.run(Lab.up(from_name("line:2"), f"t{uuid4().hex[:10]}", f"tcp:127.0.0.1:{port}"))
    up = Process(folder, port, "line:2", f"last_hop: {last_hop}")
    made = World(lab, up)
    try:
        up.start()
        yield made
        assert up.end() == 0, up.log
    finally:
        if up.running is not None and up.running.poll() is None:
            up.end(signal.SIGKILL)
        for program in made.running:
            if program.poll() is None:
                program.kill()
            program.communicate()
        asyncio.run(lab.down())


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with a_world("raw", tmp_path_factory.mktemp("raw")) as made:
        yield made


def test_a_last_hop_that_rewrites_serves_two_processes_of_a_host(tmp_path: Path) -> None:
    with a_world("rewrite", tmp_path / "up") as world:
        two_processes_print_what_each_asked_for(world, tmp_path)


def test_two_processes_of_a_host_print_what_each_asked_for_and_nothing_twice(
    world: World, tmp_path: Path
) -> None:
    two_processes_print_what_each_asked_for(world, tmp_path)


def two_processes_print_what_each_asked_for(world: World, tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    file.write_text("x,y\n" + "".join(f"{event['x']},{event['y']}\n" for event in EVENTS))
    filters = {"x < 100": lambda event: event["x"] < 100, "y = 7 OR x > 250": _seven}
    programs = dict(zip(filters, world.subscribers(*([text] for text in filters)), strict=True))
    told = world.publish("--filter", "TRUE", "--events", str(file), "--rate", "1000")
    assert told["counts"]["published"] == len(EVENTS)
    assert told["counts"]["rate"] < 1_100
    for text, program in programs.items():
        program.send_signal(signal.SIGTERM)
        events, counts = ended(program)
        assert [one["event"] for one in events] == [event for event in EVENTS if filters[text](event)]
        assert (counts["doubles"], counts["dropped"], counts["malformed"]) == (0, 0, 0)
        assert counts["wanted"] == len(events)
    wait_for(lambda: world.up.get("/v1/subscriptions")["count"] == 0, "everything withdrawn")


def _seven(event: dict[str, int]) -> bool:
    return event["y"] == 7 or event["x"] > 250


def test_lines_of_standard_input_are_published_as_they_are_and_as_cloudevents(world: World) -> None:
    one = ["--count", "1"]
    plain, cloud = world.subscribers(["x = 5", *one], ["x = 6", *one, "--cloudevents"])
    world.publish("--filter", "TRUE", text='{"x": 5, "y": 1}\n\n{"x": 4}\n')
    document = {"specversion": "1.0", "id": "7", "source": "/a", "type": "b", "data": {"x": 6, "unit": "m"}}
    world.publish("--filter", "x = 6", "--cloudevents", text=json.dumps(document) + "\n")
    ((first,), _), ((second,), _) = ended(plain), ended(cloud)
    assert first["event"] == {"x": 5, "y": 1}
    assert second == document


def test_a_subscriber_that_is_killed_is_withdrawn_when_its_lease_ends(world: World) -> None:
    (program,) = world.subscribers(["TRUE", "--lease", "1"])
    assert world.up.get("/v1/subscriptions")["count"] == 1
    program.kill()
    wait_for(lambda: world.up.get("/v1/subscriptions")["count"] == 0, "the lease ended")


BAD = {
    "lies outside of what the session advertised": (["pub", "--filter", "x < 5"], '{"x": 9}\n'),
    "-:2: the schema has no attribute 'z'": (["pub", "--filter", "TRUE"], '{"x": 1}\n{"z": 9}\n'),
    "gone.csv": (["pub", "--filter", "TRUE", "--events", "gone.csv"], ""),
    "line 1, column 5": (["sub", "x = 'five'"], ""),
}


def test_bad_input_gets_one_clear_line(world: World) -> None:
    programs = {said: world.start("h1", *words, stdin=subprocess.PIPE) for said, (words, _) in BAD.items()}
    for said, program in programs.items():
        _, complained = program.communicate(BAD[said][1], timeout=3 * SECONDS)
        assert program.returncode == 2, complained
        (line,) = [line for line in complained.splitlines() if not line.startswith("ready")]
        assert said in line
