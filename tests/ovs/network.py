"""A network for scenarios: switches and hosts of a lab, a controller of its own process, publishers that send at a
paced rate and subscribers that come and go, all through the SDK in the hosts, and a witness beside them who judges.

Nothing here depends on how fast the machine is: time is counted in events, the rate is one that the lab was shown to
hold twice over, an event may be on its way for twice as long as the slowest one took, and kernels are compiled before
anybody waits for a program. Each scene finds the network as the first one found it: a scene ends when all that it did
is undone, and after one that failed the next one gets another network.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import numpy as np

from plerion.client.rehearsal import rehearse as rehearse_client
from plerion.content.schema import Number, Schema
from plerion.controller.rehearsal import rehearse as rehearse_controller
from plerion.experiments.live import GuestProcess, LiveNetwork
from plerion.index.propose import regular
from plerion.southbound.openflow.driver import OpenFlowSouthbound
from plerion.topology import Topology
from tests.ovs.witness import IN_FLIGHT_SECONDS, Verdict, Wish, Witness, judged, watching

SCHEMA = Schema((Number("x", 0, 255, integer=True),))  # covers are exact: whatever comes unasked is a mistake
RATES = (1_000.0, 500.0, 250.0, 125.0)  # events a second, of all publishers together: the first that is held
SHOWN = 1_500  # events of which none may be lost to show that a rate is held
LEASE_SECONDS = 20.0
QUIET_SECONDS = 0.15
USUAL: dict[str, object] = {"grace_seconds": 1.0}
LONGEST_SECONDS = 2.0  # that an event may ever be on its way


@dataclass
class Scene:
    """A network under traffic, and what was wished for in it. Times are seconds since 1970."""

    net: LiveNetwork
    witness: Witness
    publishers: list[str]
    subscribers: list[str]
    rate: float = RATES[0]
    spent: bool = False  # whether no other scene can follow
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

    @property
    def flight(self) -> float:
        """Seconds that an event may be on its way here."""
        longest = self.witness.longest()
        assert longest < LONGEST_SECONDS, f"an event took {longest:.1f} s"
        return max(IN_FLIGHT_SECONDS, 2 * longest)

    @contextmanager
    def traffic(self, times: float = 1.0) -> Iterator[None]:
        """Publishers send until the end of the block, and then what was on its way has arrived."""
        self.witness.forget()
        self.began, self.ended, self.disturbed = time.time(), [], []
        points = str(self.net.folder / "points.npy")
        each = times * self.rate / len(self.publishers)
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
        longest = QUIET_SECONDS + self.witness.longest()
        count, since = self.witness.count(), time.monotonic()
        while time.monotonic() - since < longest:
            time.sleep(0.02)
            if (now := self.witness.count()) != count:
                count, since = now, time.monotonic()

    def steady(self, seconds: float) -> None:
        """As many events as are sent in this time usually, and nothing else happens meanwhile."""
        until = self.witness.sent + seconds * self.rate
        self.net.until(f"{seconds} s of events are sent", lambda: self.witness.sent >= until)

    @contextmanager
    def disturbance(self) -> Iterator[None]:
        """Something breaks or returns in the block, and at its end the network has got over it."""
        since = time.time() - self.flight
        yield
        self.disturbed.append((since, time.time()))

    def verdict(self) -> Verdict:
        """On all events since the traffic began, but for those sent while the network was disturbed."""
        assert self.witness.dropped == 0, "the witness itself was too slow"
        starts = [self.began, *(until for _, until in self.disturbed)]
        ends = [*(since for since, _ in self.disturbed), time.time()]
        spans = [span for span in zip(starts, ends, strict=True) if span[0] < span[1]]
        return judged(self.witness.seen(), [*self.wishes.values(), *self.ended], spans, self.flight)

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

    def tables(self) -> dict[str, list[str]]:
        """What each switch forwards by, in its own words."""
        lab = self.net.lab
        return {
            switch: sorted(
                line.strip()
                for line in lab.ofctl(switch, "dump-flows", "--no-stats", "table=1").splitlines()
                if "actions=" in line
            )
            for switch in self.net.topology.switches
        }

    def end(self) -> None:
        """All that the scene asked for is withdrawn; returns when the network is as it was at first."""
        for host, name in list(self.wishes):
            self.unsubscribe(host, name)
        self.net.until("nothing is left of a scene", self._as_at_first)

    def _as_at_first(self) -> bool:
        topology, ready = self.net.asked("/v1/topology"), self.net.asked("/readyz")["ready"]
        asked = self.net.asked("/v1/subscriptions")["count"]
        failed = topology["links_down"] or topology["switches_down"]
        return ready and not asked and not failed and all(len(kept) == 1 for kept in self.tables().values())


class Stage:
    """Where scenes take place, one after the other; each finds the network as the first one did."""

    def __init__(
        self, topology: Topology, folder: Path, publishers: list[str], subscribers: list[str]
    ) -> None:
        self._topology, self._folder = topology, folder
        self._publishers, self._subscribers = publishers, subscribers
        self._scene: Scene | None = None
        self._opened = ExitStack()

    @contextmanager
    def scene(self) -> Iterator[Scene]:
        """For one scene. What a failure leaves behind is nobody's: the next one gets another network."""
        try:
            if self._scene is None:
                folder = self._folder / uuid4().hex[:8]
                folder.mkdir()
                opening = opened(self._topology, folder, self._publishers, self._subscribers)
                self._scene = self._opened.enter_context(opening)
            yield self._scene
            if not self._scene.spent:
                self._scene.end()
                return
        except BaseException:
            self.close()
            raise
        self.close()

    def carry_out(self, law: Callable[[Scene], None]) -> None:
        with self.scene() as found:
            law(found)

    def close(self) -> None:
        self._scene = None
        self._opened.close()


@contextmanager
def opened(
    topology: Topology, folder: Path, publishers: list[str], subscribers: list[str]
) -> Iterator[Scene]:
    """Everything is up, every guest has joined, publishers have advertised, and the lab is shown to hold the rate."""
    name, index = f"scene-{os.getpid()}-{uuid4().hex[:8]}", regular(SCHEMA, 8)
    for rehearse in (rehearse_client, rehearse_controller):
        rehearse(index)
    OpenFlowSouthbound(topology).rehearse()
    np.save(folder / "points.npy", np.random.default_rng(7).integers(0, 256, (10_000, 1)).astype(np.float64))
    with (
        LiveNetwork(topology, index, folder, name, **USUAL) as net,
        watching(net.lab, list(topology.hosts)) as witness,
    ):
        found = Scene(net, witness, publishers, subscribers)
        found.join(*publishers, *subscribers)
        for host in publishers:
            found.guests[host].ask("advertise", name="all", filter="TRUE")
        find_a_rate(found)
        yield found


def find_a_rate(found: Scene) -> None:
    """All publishers at twice the rate to all subscribers, and nothing is lost: a later loss is no fault of the lab."""
    for host in found.subscribers:
        found.subscribe(host, "everything", 0, 255)
    for rate in RATES:
        found.rate = rate
        with found.traffic(2.0):
            found.steady(SHOWN / rate)
        verdict = found.verdict()
        if not verdict.lost:
            break
    assert verdict.fine, found.story()
    found.end()
