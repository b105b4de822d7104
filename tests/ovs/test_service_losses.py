"""`plerion up` killed, and its switches and links lost, under traffic on real Open vSwitch."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from plerion.lab import Lab
from plerion.wire.control import Advertise, Ready, Refused, Subscribe
from tests.ovs.service_world import Client, Process, a_lab, clients, process, wait_for

pytestmark = pytest.mark.ovs

Make = Callable[[str], Client]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with a_lab() as made:
        yield made


@pytest.fixture
def client(lab: Lab) -> Iterator[Make]:
    with clients(lab) as make:
        yield make


class Traffic:
    """One host sends numbered events at a steady pace until it is told to stop."""

    def __init__(self, sender: Client, per_second: float = 200.0) -> None:
        self.sent = 0
        self._sender, self._pause = sender, 1 / per_second
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(self._pause):
            self._sender.publish(10, self.sent % 256, str(self.sent))
            self.sent += 1

    def stop(self) -> list[str]:
        """What was sent."""
        self._stop.set()
        self._thread.join()
        return [str(i) for i in range(self.sent)]


def kill(controller: Process, done: threading.Event) -> None:
    controller.end(signal.SIGKILL)
    done.set()


def test_killed_at_any_moment_and_started_again_nothing_is_lost_and_nothing_is_sent_again(
    lab: Lab, client: Make, tmp_path: Path
) -> None:
    controller = process(lab, tmp_path / "k")
    controller.start()
    h1, h8 = client("h1"), client("h8")
    h1.join()
    h8.join()
    h1.ask(Advertise(next(h1.numbers), h1.session, "a", "TRUE"))
    assert isinstance(h8.subscribe("q", "x < 64"), Ready)
    traffic = Traffic(h1)
    choose, acknowledged = random.Random(uuid4().int), 0
    try:
        for _ in range(2):
            done = threading.Event()
            killer = threading.Timer(choose.uniform(0.02, 0.4), kill, [controller, done])
            killer.start()
            while not done.is_set():
                asked = Subscribe(
                    next(h8.numbers), h8.session, f"n{acknowledged}", f"y = {acknowledged % 256}"
                )
                h8.send(asked)
                reply = h8.reply(0.2)
                if isinstance(reply, Ready) and reply.number == asked.number:
                    acknowledged += 1
            killer.join()
            controller.start()
            ids = {one["id"] for one in controller.get("/v1/subscriptions")["subscriptions"]}
            missing = {f"h8/{h8.session}/n{i}" for i in range(acknowledged)} - ids
            assert not missing, "acknowledged and gone"
        controller.end(signal.SIGKILL)
        controller.start()
        assert controller.metric("plerion_repairs_total") == 0, "what was right was not sent again"
    finally:
        sent = traffic.stop()
        controller.end()
    assert sorted(h8.received(), key=int) == sent, "traffic never stopped, and nothing came twice"
    assert acknowledged > 0


def test_a_switch_that_restarts_a_cut_link_and_a_full_table(lab: Lab, client: Make, tmp_path: Path) -> None:
    controller = process(lab, tmp_path / "f", "grace_seconds: 1")
    controller.start()
    h1, h8 = client("h1"), client("h8")
    try:
        h1.join()
        h8.join()
        h1.ask(Advertise(next(h1.numbers), h1.session, "a", "TRUE"))
        assert isinstance(h8.subscribe("q", "x < 64"), Ready)

        def crosses() -> bool:
            h8.received(0.01)
            h1.publish(3, 3, "probe")
            return h8.received(0.2) == ["probe"]

        assert crosses()
        used = [one["switch"] for one in controller.get("/v1/switches")["switches"] if one["entries"]]
        middle = next(
            s for s in used if s not in {lab.topology.attachment(h).node for h in lab.topology.hosts}
        )
        (port,) = [n for n in lab.topology.neighbours(middle) if n.peer in used][:1]
        lab.cut(f"{middle}:{port.port}")
        wait_for(lambda: controller.get("/v1/topology")["links_down"], "the cut")
        wait_for(crosses, "a way round the cut")
        lab.heal(f"{middle}:{port.port}")
        wait_for(lambda: not controller.get("/v1/topology")["links_down"], "the healing")
        wait_for(crosses, "the way after the healing")
        lab.stop_switch(middle)
        wait_for(lambda: middle in controller.get("/v1/topology")["switches_down"], "the loss")
        wait_for(crosses, "a way round the switch")
        lab.start_switch(middle)
        wait_for(controller.ready, "the switch with all it needs")
        wait_for(crosses, "the way after its return")
        edge = lab.topology.attachment(lab.topology.hosts[-1]).node
        lab.set_table_limit(edge, 6)
        answers = [h8.subscribe(f"n{i}", f"x = {64 + i} AND y = {5 * i}") for i in range(12)]
        full = [answer for answer in answers if isinstance(answer, Refused)]
        assert isinstance(answers[0], Ready)
        assert full
        assert full[0].reason.startswith(f"{edge} does not take the entries that this needs")
        assert crosses(), "those who were there are not disturbed"
    finally:
        controller.end()
