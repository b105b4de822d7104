"""A controller that is killed again and again while requests and withdrawals stream in and events flow."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field

from tests.ovs.network import Scene
from tests.ovs.witness import Wish

FIRST = "from before"
REQUESTS = 12  # under way, or answered, in each life
STREAM_SECONDS = 0.15  # in which they are made, and in which the controller is killed


@dataclass
class Lives:
    """What was asked for in the lives of a controller, and what was said of it."""

    scene: Scene
    chosen: random.Random
    lived: int = 0
    pending: list[tuple[str, str, Wish, int]] = field(default_factory=list)
    leaving: list[tuple[str, int, int]] = field(default_factory=list)  # host, place in `ended`, number

    def live(self) -> None:
        """Requests stream in, the controller dies among them and is started again, and all of them are answered."""
        self.lived += 1
        moment, began = self.chosen.uniform(0, STREAM_SECONDS), time.monotonic()
        for number in range(REQUESTS):
            if time.monotonic() - began >= moment:
                self._kill()
            self._ask(number)
            self._withdraw_one()
            time.sleep(STREAM_SECONDS / REQUESTS)  # the pace of the stream
        self._kill()
        self.scene.steady(0.2)
        self.scene.net.start_controller()
        self._hear()
        self.scene.net.until_ready()

    def _kill(self) -> None:
        if self.scene.net.controller is not None:
            self.scene.net.kill_controller()

    def _ask(self, number: int) -> None:
        scene, name = self.scene, f"life {self.lived}.{number}"
        host = scene.subscribers[number % len(scene.subscribers)]
        first = self.chosen.randrange(200)
        last = self.chosen.randrange(first, 256)
        wish = Wish(host, first, last, asked=time.time())
        words = {"name": name, "filter": f"x >= {first} AND x <= {last}"}
        self.pending.append((host, name, wish, scene.guests[host].send("subscribe", **words)))

    def _withdraw_one(self) -> None:
        """One of an earlier life, if there is any; a session is known by its interests, so each keeps its first."""
        wishes = [(host, name) for host, name in sorted(self.scene.wishes) if name != FIRST]
        if wishes:
            host, name = self.chosen.choice(wishes)
            wish = self.scene.wishes.pop((host, name))._replace(withdrawn=time.time())
            self.leaving.append(
                (host, len(self.scene.ended), self.scene.guests[host].send("unsubscribe", name=name))
            )
            self.scene.ended.append(wish)

    def _hear(self) -> None:
        """Every request is answered in the end, whichever life it was made in."""
        scene = self.scene
        for host, name, wish, number in self.pending:
            told = scene.guests[host].answer(number)
            scene.wishes[host, name] = wish._replace(ready=told["at_ns"] / 1e9)
        for host, at, number in self.leaving:
            told = scene.guests[host].answer(number)
            scene.ended[at] = scene.ended[at]._replace(gone=told["at_ns"] / 1e9)
        self.pending, self.leaving = [], []


def killed_at_random_moments(scene: Scene, lives: int, seed: int) -> None:
    """No event that was wanted is lost after *ready*, none comes twice, and no session is forgotten."""
    joins = {host: scene.guests[host].ask("counts")["joins"] for host in scene.subscribers}
    with scene.traffic():
        for host in scene.subscribers:
            scene.subscribe(host, FIRST, 0, 127)
        told = Lives(scene, random.Random(seed))
        for _ in range(lives):
            told.live()
        scene.steady(0.3)
    verdict = scene.verdict()
    assert verdict.fine, f"seed {seed}: {scene.story()}"
    assert verdict.due > lives * scene.rate / 10, verdict
    for host in scene.subscribers:
        again = scene.guests[host].ask("counts")["joins"] - joins[host]
        assert not again, f"{host} had to join {again} times more: its session was forgotten"
    accepted = {one["id"].rpartition("/")[2] for one in scene.net.asked("/v1/subscriptions")["subscriptions"]}
    assert accepted == {name for _, name in scene.wishes}, "what was acknowledged is there, and nothing else"
