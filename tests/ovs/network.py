"""A network for scenarios: switches and hosts of a lab, a controller of its own process, publishers that send at a
paced rate and subscribers that come and go, all through the SDK in the hosts, and a witness beside them who judges."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import numpy as np

from plerion.content.schema import Number, Schema
from plerion.experiments.live import GuestProcess, LiveNetwork
from plerion.index.propose import regular
from plerion.topology import Topology
from tests.ovs.witness import IN_FLIGHT_SECONDS, Verdict, Wish, Witness, judged, watching

SCHEMA = Schema((Number("x", 0, 255, integer=True),))  # covers are exact: whatever comes unasked is a mistake
RATE = 1_000.0  # events a second, of all publishers together
LEASE_SECONDS = 2.0
QUIET_SECONDS = 0.15


@dataclass
class Scene:
    """A network under traffic, and what was wished for in it. Times are seconds since 1970."""

    net: LiveNetwork
    witness: Witness
    publishers: list[str]
    subscribers: list[str]
    guests: dict[str, GuestProcess] = field(default_factory=dict)
    wishes: dict[tuple[str, str], Wish] = field(default_factory=dict)
    ended: list[Wish] = field(default_factory=list)
    disturbed: list[tuple[float, float]] = field(default_factory=list)
    began: float = field(default_factory=time.time)

    def subscribe(self, host: str, name: str, first: int, last: int) -> None:
        """Returns when the SDK says that it is ready."""
        asked = time.time()
        told = self.guests[host].ask("subscribe", name=name, filter=f"x >= {first} AND x <= {last}")
        self.wishes[host, name] = Wish(host, first, last, asked, told["at_ns"] / 1e9)

    def unsubscribe(self, host: str, name: str) -> dict[str, int]:
        """Returns what the SDK counted, when it says that the wish is gone."""
        withdrawn = time.time()
        told = self.guests[host].ask("unsubscribe", name=name)
        wish = self.wishes.pop((host, name))
        self.ended.append(wish._replace(withdrawn=withdrawn, gone=told["at_ns"] / 1e9))
        counts: dict[str, int] = told["counts"]
        return counts

    def join(self, *hosts: str, lease_seconds: float = LEASE_SECONDS) -> None:
        """A program in each of the hosts, all started at once."""
        self.guests |= {host: self.net.guest(host, lease_seconds) for host in hosts}
        for host in hosts:
            self.guests[host].joined()

    @contextmanager
    def traffic(self, rate: float = RATE) -> Iterator[None]:
        """Publishers send until the end of the block, and then what was on its way has arrived."""
        self.began, self.ended, self.disturbed = time.time(), [], []
        points = str(self.net.folder / "points.npy")
        each = rate / len(self.publishers)
        running = {
            host: self.guests[host].send("publish", points=points, rate=each, repeat=True)
            for host in self.publishers
        }
        try:
            yield
        finally:
            for host in running:
                self.guests[host].ask("halt")
            for host, number in running.items():
                self.guests[host].answer(number)
            self.quiet()

    def quiet(self) -> None:
        """Returns when nothing arrives any more."""
        count, since = self.witness.count(), time.monotonic()
        while time.monotonic() - since < QUIET_SECONDS:
            time.sleep(0.02)
            if (now := self.witness.count()) != count:
                count, since = now, time.monotonic()

    def steady(self, seconds: float) -> None:
        """So much time in which nothing happens but events."""
        time.sleep(seconds)

    @contextmanager
    def disturbance(self) -> Iterator[None]:
        """Something breaks or returns in the block, and at its end the network has got over it."""
        since = time.time() - IN_FLIGHT_SECONDS
        yield
        self.disturbed.append((since, time.time()))

    def verdict(self) -> Verdict:
        """On all events since the traffic began, but for those sent while the network was disturbed."""
        assert self.witness.dropped == 0, "the witness itself was too slow"
        starts = [self.began, *(until for _, until in self.disturbed)]
        ends = [*(since for since, _ in self.disturbed), time.time()]
        spans = [span for span in zip(starts, ends, strict=True) if span[0] < span[1]]
        return judged(self.witness.seen(), [*self.wishes.values(), *self.ended], spans)

    def story(self) -> str:
        """What went wrong and what happened when, in seconds since the traffic began."""
        found = self.verdict()
        sent = {one.id: one for one in self.witness.seen() if one.sent}
        lines = [str(found)]
        lines += [f"disturbed {a - self.began:.3f} to {b - self.began:.3f}" for a, b in self.disturbed]
        for wish in [*self.wishes.values(), *self.ended]:
            times = [f"{at - self.began:.3f}" for at in wish[3:]]
            lines.append(
                f"{wish.host} wants {wish.first} to {wish.last}: asked, ready, withdrawn, gone {times}"
            )
        for what in ("lost", "doubled", "unasked"):
            for host, event in getattr(found, what)[:20]:
                one = sent[event]
                at = f"{one.at - self.began:.3f}"
                lines.append(
                    f"{what}: {one.values} from {one.host} to {host}, number {event.sequence}, sent at {at}"
                )
        return "\n".join(lines)

    def close(self) -> None:
        """No subscription is left."""
        for host, name in list(self.wishes):
            self.unsubscribe(host, name)


@contextmanager
def scene(
    topology: Topology, folder: Path, publishers: list[str], subscribers: list[str], **settings: object
) -> Iterator[Scene]:
    """Everything is up, every guest has joined, publishers have advertised, and the lab is shown to hold the rate."""
    name = f"scene-{os.getpid()}-{uuid4().hex[:8]}"
    np.save(folder / "points.npy", np.random.default_rng(7).integers(0, 256, (10_000, 1)).astype(np.float64))
    usual = {"grace_seconds": 1.0, "leases": {"usual_seconds": 5}, **settings}
    with (
        LiveNetwork(topology, regular(SCHEMA, 8), folder, name, **usual) as net,
        watching(net.lab, list(topology.hosts)) as witness,
    ):
        found = Scene(net, witness, publishers, subscribers)
        found.join(*publishers, *subscribers)
        for host in publishers:
            found.guests[host].ask("advertise", name="all", filter="TRUE")
        show_that_it_holds(found)
        yield found


def show_that_it_holds(found: Scene, seconds: float = 1.5) -> None:
    """All publishers at the full rate to all subscribers, and nothing is lost: later losses are no fault of the lab."""
    for host in found.subscribers:
        found.subscribe(host, "everything", 0, 255)
    with found.traffic():
        found.steady(seconds)
    verdict = found.verdict()
    assert verdict.fine, verdict
    assert verdict.sent > 0.8 * RATE * seconds, verdict
    found.close()
