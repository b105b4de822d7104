"""Events replayed through a live network: controller, simulated switches, and an account of every delivery."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from plerion.controller.answer import Answer
from plerion.controller.inputs import Input, Subscribe
from plerion.controller.prepare import Prepared, Wanted
from plerion.controller.rolling import Ended
from plerion.controller.service import Controller
from plerion.controller.state import Settings
from plerion.controller.step import regions
from plerion.flow.entry import Tables
from plerion.flow.fabric import fabric
from plerion.flow.verify import verify
from plerion.index.content_index import ContentIndex
from plerion.index.cover import Covers
from plerion.index.encode import encode
from plerion.matching.bitset import BitsetMatcher
from plerion.simnet.account import Account, account
from plerion.simnet.bulk import BulkNetwork
from plerion.simnet.check import Report, check
from plerion.simnet.traffic import Sample
from plerion.southbound.simulated import SimulatedSouthbound
from plerion.topology.graph import HostId


@dataclass(slots=True)
class Tally:
    """What one subscription got so far."""

    subscription: Subscribe
    live: bool = True
    delivered: int = 0
    false_positives: int = 0


@dataclass(slots=True)
class Totals:
    """The whole replay in numbers; deliveries are (event, host) pairs."""

    events: int = 0
    deliveries: int = 0
    false_positives: int = 0
    lost: int = 0
    doubled: int = 0

    @property
    def false_positive_rate(self) -> float:
        return self.false_positives / max(1, self.deliveries)


@dataclass(slots=True)
class Replay:
    """A network under traffic. `tell` changes it, `send` forwards a batch through the tables its switches hold."""

    controller: Controller
    southbound: SimulatedSouthbound
    tallies: dict[str, Tally] = field(default_factory=dict)
    totals: Totals = field(default_factory=Totals)
    _prepared: tuple[BulkNetwork, BitsetMatcher, Covers] | None = None

    @classmethod
    async def start(cls, settings: Settings) -> Replay:
        southbound = SimulatedSouthbound(fabric(settings.topology))
        return cls(await Controller.start(settings, None, southbound), southbound)

    async def tell(self, received: Input) -> Answer:
        answer = await self.controller.handle(received)
        self._prepared = None
        live = self.controller.state.subscriptions
        for name, subscription in live.items():
            self.tallies.setdefault(name, Tally(subscription))
        for name, tally in self.tallies.items():
            tally.live = name in live
        return answer

    async def tables(self) -> Tables:
        return await self.southbound.tables()

    async def send(self, points: npt.NDArray[np.float64], senders: npt.NDArray[np.int64]) -> Account:
        """Forwards the events and adds what became of them to the tallies and totals."""
        network, matcher, covers = await self._ready()
        state = self.controller.state
        codes = encode(state.settings.index, points)
        traffic = network.forward(codes.dz, senders[codes.event])
        hosts = np.array(
            [state.fabric.host_number[HostId(s.host)] for s in state.subscriptions.values()], np.int64
        )
        found = account(traffic, points, codes, senders, matcher, covers, hosts, network.reachable())
        for name, delivered, wrong in zip(
            state.subscriptions,
            found.subscription_deliveries,
            found.subscription_false_positives,
            strict=True,
        ):
            self.tallies[name].delivered += int(delivered)
            self.tallies[name].false_positives += int(wrong)
        self.totals.events += found.events
        self.totals.deliveries += int(found.host_deliveries.sum())
        self.totals.false_positives += int(found.host_false_positives.sum())
        self.totals.lost += int(found.lost.sum())
        self.totals.doubled += int(found.doubled.sum())
        return found

    async def change(
        self,
        index: ContentIndex,
        points: npt.NDArray[np.float64],
        senders: npt.NDArray[np.int64],
        seed: int = 1,
    ) -> tuple[Ended, Report]:
        """Takes the network to another index while these events are on their way.

        The plan is played on the timeline, where packets are in flight and switches out of step with each other, and
        what became of each event there is added to the totals; then the switches are taken through it.
        """
        prepared = await self.controller.prepare(Wanted(index))
        samples = await self._samples(prepared, points, senders)
        report = check(prepared.plan, samples, [seed])
        self.totals.events += report.events
        self.totals.deliveries += report.deliveries
        self.totals.false_positives += report.false_positives
        self.totals.lost += report.lost
        self.totals.doubled += report.doubled
        ended = await self.controller.change(Wanted(index, prepared.plan.strategy))
        self._prepared = None
        return ended, report

    async def _samples(
        self, prepared: Prepared, points: npt.NDArray[np.float64], senders: npt.NDArray[np.int64]
    ) -> list[Sample]:
        """The events with their codes in both indexes, and who wants them; those that have one code in each."""
        _, matcher, _ = await self._ready()
        asking = [one.host for one in self.controller.state.subscriptions.values()]
        names = {number: host for host, number in self.controller.state.fabric.host_number.items()}
        old, new = (state.settings.index for state in (prepared.old, prepared.new))
        found = []
        for point, sender, wanted in zip(points.tolist(), senders, matcher.matches(points), strict=True):
            codes = old.codes(point), new.codes(point)
            if all(len(several) == 1 for several in codes):
                takers = {HostId(asking[at]) for at in np.flatnonzero(wanted).tolist()}
                publisher = names[int(sender)]
                found.append(Sample(publisher, codes[0][0], codes[1][0], frozenset(takers - {publisher})))
        return found

    async def proof(self) -> bool:
        """Whether what the switches hold now is proven to deliver, on what survives of the network."""
        state = self.controller.state
        covers = Covers.of(list(state.covers.values()))
        hosts = [HostId(s.host) for s in state.subscriptions.values()]
        held, limits = await self.tables(), state.settings.tcam
        return bool(verify(held, covers, hosts, state.sent(), state.surviving, limits))

    async def _ready(self) -> tuple[BulkNetwork, BitsetMatcher, Covers]:
        """What forwarding and judging need, prepared once after each change."""
        if self._prepared is None:
            state = self.controller.state
            schema = state.settings.index.schema
            covers = Covers.of(list(state.covers.values()))
            asked = [regions(state, s.filter) for s in state.subscriptions.values()]
            offsets = np.cumsum([0, *map(len, asked)])
            matcher = BitsetMatcher.of(
                offsets, np.concatenate([np.empty((0, len(schema.attributes), 2)), *asked])
            )
            self._prepared = BulkNetwork(await self.tables(), state.surviving), matcher, covers
        return self._prepared
