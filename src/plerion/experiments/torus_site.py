"""A torus of switches whose index changes or whose tree moves: what seeds 001 and 004 try their updates on.

Every switch has a host; half of them, drawn by the seed, publish and half subscribe. There is one tree, whose
root is a publisher's switch, so that the index may change without any path's changing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from plerion.experiments.drift import Drift, Territory, shared_out
from plerion.experiments.figure import BITS
from plerion.flow.fabric import fabric
from plerion.flow.table import NetworkTable
from plerion.index.content_index import ContentIndex
from plerion.index.cover import DEFAULT_BUDGET, covers
from plerion.index.dzset import EVERYTHING, DzSet
from plerion.index.encode import encode
from plerion.learning.propose import Request, propose, summaries
from plerion.learning.workload import Workload
from plerion.matching.bitset import BitsetMatcher
from plerion.routing.interest import Advertisement, AdvertisementId
from plerion.routing.tree import Forest, Tree, sources, spanning
from plerion.simnet.traffic import Sample
from plerion.topology import HostId, Port, SwitchId, Topology, torus
from plerion.update.orders import by_distance
from plerion.update.state import NetworkState, Options, Stamp

SHAPES: Final = {8: (2, 4), 16: (4, 4), 32: (4, 8), 64: (8, 8)}
EVENTS: Final = 4_000
OPTIONS: Final = Options(epoch_bits=1)


@dataclass(frozen=True, eq=False)
class Site:
    """The network, who is where, and the workload."""

    topology: Topology
    publishers: tuple[HostId, ...]
    subscribers: tuple[HostId, ...]
    drift: Drift
    budget: int = DEFAULT_BUDGET

    @classmethod
    def drawn(
        cls,
        switches: int,
        seed: int,
        subscriptions: int = 0,
        events: int = EVENTS,
        budget: int = DEFAULT_BUDGET,
    ) -> Site:
        """With so many subscriptions, or one a subscriber; all that is drawn follows from the seed."""
        topology = torus(*SHAPES[switches])
        drawn = np.random.default_rng((seed, switches)).permutation(switches).tolist()
        half = switches // 2
        publishers, subscribers = ([topology.hosts[i] for i in some] for some in (drawn[:half], drawn[half:]))
        drift = Drift.drawn(subscriptions or half, events, half, seed)
        return cls(topology, tuple(publishers), tuple(subscribers), drift, budget)

    @property
    def root(self) -> SwitchId:
        return SwitchId(self.topology.attachment(self.publishers[0]).node)

    @property
    def far(self) -> SwitchId:
        """As far from the root as any other switch: where a tree moves to."""
        return by_distance(self.topology, self.publishers[:1])[-1]

    @cached_property
    def territories(self) -> tuple[Territory, Territory]:
        """Of the publishers, before and after."""
        before, after = (
            shared_out(load, len(self.publishers)) for load in (self.drift.before, self.drift.after)
        )
        return before, after

    def hosts(self) -> list[HostId]:
        """The host of each subscription."""
        return [self.subscribers[number] for number in self.drift.before.hosts.tolist()]

    def state(self, index: ContentIndex, root: SwitchId | None = None) -> NetworkState:
        """All interests on one tree under this index."""
        load, whole = self.drift.before, fabric(self.topology)
        sent = self._announced(index)
        listed = tuple(Advertisement(AdvertisementId(host), host, cells) for host, cells in sent.items())
        grown = Forest((Tree(root or self.root, EVERYTHING),), listed, 1, EVERYTHING)
        table = NetworkTable(whole)
        table.route(sources(grown, self.topology), self._spanning, "whole")
        table.load(covers(index, load.offsets, load.bounds, self.budget), self.hosts())
        return NetworkState(table.tables(), sent, Stamp(epoch=0))

    def _spanning(self, root: SwitchId) -> dict[Port, int]:
        return spanning(self.topology, root, fabric(self.topology).host_number)

    def _announced(self, index: ContentIndex) -> dict[HostId, DzSet]:
        boxes = np.stack([territory.boxes for territory in self.territories], axis=1)
        offsets = 2 * np.arange(len(boxes) + 1)
        found = covers(index, offsets, boxes.reshape(-1, *boxes.shape[2:]), self.budget)
        return {host: DzSet.of(found[i]) for i, host in enumerate(self.publishers)}

    def samples(self, old: ContentIndex, new: ContentIndex, *, drifted: bool = True) -> list[Sample]:
        """Events of after the drift, or of before it, that no index was made of, as their publishers send them."""
        _, load = (self.drift.after if drifted else self.drift.before).halves()
        senders = self.territories[drifted].sender[1::2]
        matched = BitsetMatcher.of(load.offsets, load.bounds).matches(load.points)
        host_of = np.array(self.hosts(), object)
        codes = zip(*(list(encode(index, load.points).dz) for index in (old, new)), strict=True)
        return [
            Sample(self.publishers[sender], one, other, frozenset(host_of[wanted]))
            for sender, (one, other), wanted in zip(senders.tolist(), codes, matched, strict=True)
        ]


def learned(load: Workload, budget: int, method: str, select: str) -> ContentIndex:
    """The index for these events, made of half of them."""
    choosing, _ = load.halves()
    request = Request(bits=BITS, budget=budget, method=method, select=select)
    return propose(choosing, summaries(choosing), request).index
