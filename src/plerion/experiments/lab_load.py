"""The papers' workloads for labs: what hosts ask for, and what they send, as switches and controllers see it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from plerion.client.mmsg import Addresses
from plerion.client.publication import addresses
from plerion.content.read import Interests
from plerion.controller.deploy import Deployment, deploy
from plerion.controller.inputs import Advertise, Input, Subscribe
from plerion.controller.lease import OPERATOR, Session
from plerion.controller.state import Settings as Deployed
from plerion.experiments.synthetic import Settings, workload
from plerion.flow.admission import Admission, admissions
from plerion.index.address import AddressPlan
from plerion.index.encode import encode
from plerion.index.propose import regular
from plerion.learning.workload import Workload
from plerion.simnet.bulk import BulkNetwork
from plerion.topology.graph import HostId, Topology

Kind = Literal["zipf", "uniform"]

BITS: Final = 96
BUDGET: Final = 8
WIDTHS: Final = (0.002, 0.1)  # of a subscription on an attribute, as a share of its range


@dataclass(frozen=True, eq=False)
class Load:
    """Subscriptions and events on a network; with `zipf` a host asks for one hotspot, with `uniform` for anything."""

    topology: Topology
    drawn: Workload

    @classmethod
    def of(
        cls,
        topology: Topology,
        kind: Kind,
        subscriptions: int,
        events: int,
        seed: int = 1,
        widths: tuple[float, float] = WIDTHS,
    ) -> Load:
        hosts = len(topology.hosts)
        shape = Settings(
            subscriptions=subscriptions, events=events, distribution=kind, hotspots=hosts, hosts=hosts,
            widths=widths, seed=seed,
        )  # fmt: skip
        return cls(topology, workload(shape))

    def shared_by(self, hosts: Sequence[HostId]) -> Load:
        """The same, with all subscriptions at these hosts, dealt out as they were."""
        numbers = np.array([self.topology.host_number(host) - 1 for host in hosts])
        return replace(self, drawn=replace(self.drawn, hosts=numbers[self.drawn.hosts % len(hosts)]))

    def met(self, count: int, seed: int = 1) -> Load:
        """The same, with events that each lie in some subscription, drawn evenly."""
        random = np.random.default_rng(seed)
        box = self.drawn.bounds[random.integers(0, self.drawn.interests, count)]
        points = np.floor(random.uniform(box[:, :, 0], box[:, :, 1]))
        return replace(self, drawn=self.drawn.with_points(points))

    @cached_property
    def settings(self) -> Deployed:
        return Deployed(self.topology, regular(self.drawn.schema, BITS), BUDGET)

    def host(self, i: int) -> HostId:
        return self.topology.hosts[int(self.drawn.hosts[i])]

    def text(self, i: int) -> str:
        """The filter of a subscription, as an application would write it."""
        names = (attribute.name for attribute in self.drawn.schema.attributes)
        pairs = zip(names, self.drawn.bounds[i].tolist(), strict=True)
        return " AND ".join(f"{name} BETWEEN {low:.0f} AND {high - 1:.0f}" for name, (low, high) in pairs)

    def subscription(self, i: int) -> Subscribe:
        """As an operator deploys it, without a lease."""
        return Subscribe(Session(self.host(i), OPERATOR).id(f"q{i}"), self.host(i), self.text(i))

    def inputs(self, count: int) -> Iterator[Input]:
        """Every host may send everything, and the first `count` subscriptions."""
        for host in self.topology.hosts:
            yield Advertise(Session(host, OPERATOR).id("all"), host, "TRUE")
        yield from map(self.subscription, range(count))

    def deployed(self, count: int | None = None) -> Deployment:
        """The tables that the first subscriptions lead to; every host may send everything."""
        count = self.drawn.interests if count is None else count
        found = self.drawn
        ids, hosts = [f"q{i}" for i in range(count)], [str(self.host(i)) for i in range(count)]
        asked = Interests(tuple(ids), tuple(hosts), found.offsets[: count + 1], found.bounds[:count])
        return deploy(self.settings, asked)

    @cached_property
    def addresses(self) -> Addresses:
        """Where each event is sent."""
        return addresses(AddressPlan(), encode(self.settings.index, self.drawn.points).dz)

    def copies(self, deployment: Deployment, publisher: HostId) -> npt.NDArray[np.uint8]:
        """(event, host): how often the model delivers each event of this publisher to each host."""
        codes = encode(self.settings.index, self.drawn.points).dz
        number = np.full(len(codes), self.topology.host_number(publisher) - 1)
        traffic = BulkNetwork(deployment.tables).forward(codes, number)
        return traffic.copies[traffic.course]


def admitted(deployment: Deployment) -> frozenset[Admission]:
    """What the edge of the network lets in."""
    return admissions(deployment.state.surviving, deployment.state.sent())
