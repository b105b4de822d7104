"""A network under a controller, checked after every input: proven over all events, and tried with random ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plerion.content.schema import Number, Schema
from plerion.controller.inputs import Advertise, Boxes, Input, Subscribe
from plerion.controller.service import Controller
from plerion.controller.state import Settings, State
from plerion.flow.entry import Tables
from plerion.flow.fabric import fabric
from plerion.flow.verify import Proof, verify
from plerion.index.cover import Covers
from plerion.index.dzset import DzColumns
from plerion.index.encode import encode
from plerion.index.propose import regular
from plerion.matching.bitset import BitsetMatcher
from plerion.simnet.account import Account, account
from plerion.simnet.bulk import BulkNetwork
from plerion.southbound.simulated import SimulatedSouthbound
from plerion.topology import HostId, SwitchId, Topology

SCHEMA = Schema(tuple(Number(name, 0, 1023, integer=True) for name in ("temperature", "humidity", "wind")))
INDEX = regular(SCHEMA, 24)
EVENTS = 300  # an advertisement and check


def random_box(random: np.random.Generator, least: int, most: int) -> Boxes:
    """One box whose sides are `least` to `most` of 1024 long."""
    sides = random.integers(least, most + 1, 3)
    lows = [int(random.integers(0, 1025 - side)) for side in sides]
    return (tuple((float(low), float(low + side)) for low, side in zip(lows, sides, strict=True)),)


@dataclass
class NetworkDay:
    """One controller with simulated switches; `take` gives it an input and checks what the network then does."""

    controller: Controller
    switches: SimulatedSouthbound
    random: np.random.Generator
    checks: int = 0
    deliveries: int = 0
    unwanted: int = 0

    @classmethod
    async def start(
        cls, topology: Topology, seed: int, budget: int = 8, trees: int = 64, tcam: int | None = None
    ) -> NetworkDay:
        limits = dict.fromkeys(topology.switches, tcam) if tcam else {}
        settings = Settings(topology, INDEX, budget, trees, limits)
        switches = SimulatedSouthbound(fabric(topology))
        return cls(await Controller.start(settings, None, switches), switches, np.random.default_rng(seed))

    @property
    def state(self) -> State:
        return self.controller.state

    def some_host(self) -> HostId:
        hosts = self.state.settings.topology.hosts
        return hosts[int(self.random.integers(len(hosts)))]

    def some_switch(self) -> SwitchId:
        switches = self.state.settings.topology.switches
        return switches[int(self.random.integers(len(switches)))]

    async def advertise(self, name: str, host: HostId | None = None) -> None:
        await self.take(Advertise(name, host or self.some_host(), random_box(self.random, 500, 1024)))

    async def subscribe(self, name: str, host: HostId | None = None) -> None:
        await self.take(Subscribe(name, host or self.some_host(), random_box(self.random, 100, 700)))

    async def take(self, *received: Input) -> None:
        answers = await self.controller.handle_all(received)
        assert all(answer.ready for answer in answers), answers
        await self.check()

    async def check(self) -> None:
        tables = await self.switches.tables()
        proof, counted = self.proof(tables), self.send(tables)
        assert proof, str(proof.counter_example)
        assert not counted.lost.any()
        assert not counted.doubled.any()
        self.checks += 1
        self.deliveries += int(counted.host_deliveries.sum())
        self.unwanted += proof.unwanted

    def proof(self, tables: Tables) -> Proof:
        state = self.state
        hosts = [HostId(state.subscriptions[name].host) for name in state.covers]
        return verify(tables, self.covers(), hosts, state.sent(), state.surviving, state.settings.tcam)

    def covers(self) -> Covers:
        cells = list(self.state.covers.values())
        offsets = np.cumsum([0, *map(len, cells)]).astype(np.int64)
        return Covers(offsets, DzColumns.of(dz for columns in cells for dz in columns))

    def send(self, tables: Tables) -> Account:
        """Random events of every advertisement through the tables, held against exact matching."""
        numbers = self.state.fabric.host_number
        points, publishers = self.events()
        codes = encode(INDEX, points)
        network = BulkNetwork(tables, self.state.surviving)
        traffic = network.forward(codes.dz, publishers[codes.event])
        assert not traffic.looped.any()
        asked = list(self.state.subscriptions.values())
        bounds = np.array([one.filter[0] for one in asked], np.float64).reshape(-1, 3, 2)
        return account(
            traffic,
            points,
            codes,
            publishers,
            BitsetMatcher.of(np.arange(len(asked) + 1), bounds),
            self.covers(),
            np.array([numbers[HostId(one.host)] for one in asked], np.int64),
            network.reachable(),
        )

    def events(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        numbers = self.state.fabric.host_number
        points, publishers = [np.empty((0, 3))], [np.empty(0, np.int64)]
        for advertisement in self.state.advertisements.values():
            ends = np.array(advertisement.filter[0], np.float64)
            points.append(np.floor(self.random.uniform(ends[:, 0], ends[:, 1], (EVENTS, 3))))
            publishers.append(np.full(EVENTS, numbers[HostId(advertisement.host)], np.int64))
        return np.concatenate(points), np.concatenate(publishers)
