"""The weather of `weather`, through real switches: publishers and subscribers are programs in the hosts of a lab.

What became of each event is measured where it must arrive: which events a subscription should get follows from the
filter and the times at which publishers say they sent, which it got is what the application there was handed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import time_ns
from typing import Any, Self

import msgspec
import numpy as np
import numpy.typing as npt

from plerion.content.box import bounds, boxes
from plerion.content.errors import InputError
from plerion.content.parse import parse
from plerion.controller.inputs import Subscribe
from plerion.experiments.live import GuestProcess, LiveNetwork
from plerion.experiments.weather import ADVERTISEMENTS, AIRPORTS, SCHEMA, SUBSCRIPTIONS, Weather
from plerion.index.codec import to_json
from plerion.index.content_index import ContentIndex
from plerion.topology.generate import fat_tree

LEASE_SECONDS = 6.0
IN_FLIGHT_NS = 200_000_000  # before a failure or a withdrawal: what was sent then may have been on its way


def check_machine() -> None:
    """Refuses in one line where there can be no lab."""
    path = os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin"
    if shutil.which("ovs-vswitchd", path=path) is None or shutil.which("ip", path=path) is None:
        raise InputError("DATAPLANE=ovs needs Open vSwitch, which is not here", "tools/setup --system ovs")
    if os.geteuid() != 0:
        raise InputError(
            "DATAPLANE=ovs needs root, for network namespaces and interfaces",
            "sudo DATAPLANE=ovs make demo, or leave DATAPLANE out for the emulator",
        )
    os.environ["PATH"] = path  # daemons live in sbin, which is not on everybody's path


@dataclass(slots=True)
class Wanted:
    """A subscription, and when it was in force; times in nanoseconds since 1970."""

    asked: Subscribe
    ready_ns: int
    withdrawn_ns: int | None = None


@dataclass(slots=True)
class LiveTotals:
    """The replay in numbers; deliveries are (event, host) pairs.

    `cut_off` were on their way, or were sent, while something failed and the network had not gone round it yet.
    """

    events: int = 0
    deliveries: int = 0
    false_positives: int = 0
    wanted: int = 0
    lost: int = 0
    cut_off: int = 0
    doubled: int = 0

    @property
    def false_positive_rate(self) -> float:
        return self.false_positives / max(1, self.deliveries)


@dataclass(slots=True)
class LiveWeather:
    """A network under weather. Enter it; `begin`, then change what you like, then `totals`."""

    network: LiveNetwork
    weather: Weather
    log: Path | None = None  # where publishers keep what they send
    guests: dict[str, GuestProcess] = field(default_factory=dict)
    wanted: dict[str, Wanted] = field(default_factory=dict)
    failures: list[tuple[int, int]] = field(default_factory=list)
    _publishing: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls, weather: Weather, index: ContentIndex, budget: int, folder: Path, log: Path | None = None
    ) -> Self:
        settings = {"budget": budget, "grace_seconds": 1.0, "leases": {"usual_seconds": LEASE_SECONDS}}
        name = f"demo-{os.getpid()}"
        return cls(LiveNetwork(fat_tree(4, 2), index, folder, name, **settings), weather, log)

    def __enter__(self) -> Self:
        self.network.__enter__()
        try:
            publishing = AIRPORTS.values()
            self.guests = {
                host: self.network.guest(host, LEASE_SECONDS, self.log if host in publishing else None)
                for host in self.network.topology.hosts
            }
            for guest in self.guests.values():
                guest.joined()
            for sent in ADVERTISEMENTS:
                self.guests[sent.host].ask("advertise", name=sent.id, filter=sent.filter)
            for asked in SUBSCRIPTIONS:
                self.subscribe(asked)
        except BaseException:
            self.network.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.network.close()

    def subscribe(self, asked: Subscribe) -> None:
        told = self.guests[asked.host].ask("subscribe", name=asked.id, filter=asked.filter)
        self.wanted[asked.id] = Wanted(asked, told["at_ns"])

    def unsubscribe(self, name: str) -> None:
        found = self.wanted[name]
        found.withdrawn_ns = time_ns()
        self.guests[found.asked.host].ask("unsubscribe", name=name)

    def begin(self, seconds: float) -> None:
        """All observations within so many seconds, each airport's from its own host."""
        for rank, host in enumerate(AIRPORTS.values()):
            points, file = (
                self.weather.points[self.weather.sender == rank],
                self.network.folder / f"{host}.npy",
            )
            np.save(file, points)
            rate = len(points) / seconds
            self._publishing[host] = self.guests[host].send("publish", points=str(file), rate=rate)

    def reindex(self, index: ContentIndex) -> dict[str, Any]:
        """Another index, under traffic; what came of it."""
        found: dict[str, Any] = self.network.asked(
            "/v1/reindex", {"index": msgspec.json.decode(to_json(index))}
        )
        return found

    def cut(self, port: str) -> None:
        """A link fails; returns when events go round it."""
        self._failing(lambda: self.network.lab.cut(port), True)

    def heal(self, port: str) -> None:
        self._failing(lambda: self.network.lab.heal(port), False)

    def _failing(self, happen: Any, down: bool) -> None:
        began = time_ns() - IN_FLIGHT_NS
        happen()
        self.network.until(
            "the network has got over it",
            lambda: (
                bool(self.network.asked("/v1/topology")["links_down"]) == down
                and self.network.asked("/readyz")["ready"]
            ),
        )
        self.failures.append((began, time_ns()))

    def counts(self) -> dict[str, dict[str, Any]]:
        """What every host counted so far."""
        asked = {host: guest.send("counts") for host, guest in self.guests.items()}
        return {host: self.guests[host].answer(number) for host, number in asked.items()}

    def end(self, seconds: float) -> None:
        """Returns when every publisher has sent its last event."""
        for host, number in self._publishing.items():
            self.guests[host].answer(number, seconds)

    def totals(self) -> LiveTotals:
        """The account, once nothing is on its way any more."""
        counts = self.counts()
        found = LiveTotals(
            sum(one["published"] for one in counts.values()),
            sum(one["received"] for one in counts.values()),
            sum(one["false_positives"] for one in counts.values()),
            doubled=sum(one["doubles"] for one in counts.values()),
        )
        sent = {host: self._sent(host) for host in AIRPORTS.values()}
        for name, wanted in self.wanted.items():
            got = self.guests[wanted.asked.host].ask("received", name=name)["received"]
            self._judge(found, wanted, sent, {(publisher, number) for publisher, number in got})
        return found

    def _sent(self, host: str) -> npt.NDArray[np.int64]:
        """When each of the host's observations was sent, in their order."""
        batches = np.array(self.guests[host].ask("batches")["batches"], np.int64).reshape(-1, 2)
        rows = int((self.weather.sender == list(AIRPORTS.values()).index(host)).sum())
        return np.repeat(batches[:, 1], np.diff(np.append(batches[:, 0], rows)))

    def _judge(
        self,
        found: LiveTotals,
        wanted: Wanted,
        sent: Mapping[str, npt.NDArray[np.int64]],
        got: set[tuple[str, int]],
    ) -> None:
        assert isinstance(wanted.asked.filter, str), "the weather's filters are texts"
        filter = parse(wanted.asked.filter, SCHEMA)
        inside = bounds(boxes(filter), SCHEMA)
        until = np.iinfo(np.int64).max if wanted.withdrawn_ns is None else wanted.withdrawn_ns - IN_FLIGHT_NS
        by_host = {publisher.partition("/")[0]: publisher for publisher, _ in got}
        for rank, host in enumerate(AIRPORTS.values()):
            points, times = self.weather.points[self.weather.sender == rank], sent[host]
            matches = (
                ((points[:, None] >= inside[None, :, :, 0]) & (points[:, None] < inside[None, :, :, 1]))
                .all(2)
                .any(1)
            )
            due = np.flatnonzero(matches & (times >= wanted.ready_ns) & (times <= until))
            found.wanted += len(due)
            for number in due.tolist():
                if (by_host.get(host, ""), number) not in got:
                    failing = any(begin <= times[number] <= end for begin, end in self.failures)
                    found.cut_off += failing
                    found.lost += not failing
