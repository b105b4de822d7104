"""Hypothesis strategies for what is deployed on a network, and plain references to hold the results against.

Cells are drawn from a short code space, so that every code in it can be tried one by one. The space hangs
under a *base*, a prefix that all cells share: an empty one, one that puts the cells across the border of the
first 64-bit word, and one that lets them end at the last bit that a dz can have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from plerion.flow.compile import compiled
from plerion.flow.entry import FlowEntry, Tables, tables_of
from plerion.flow.fabric import Fabric, fabric
from plerion.flow.table import NetworkTable
from plerion.flow.verify import CounterExample, Fault
from plerion.flow.walk import ModelNetwork
from plerion.index.cover import Covers
from plerion.index.dz import MAX_LENGTH, WHOLE, Dz
from plerion.index.dzset import DzColumns, DzSet
from plerion.routing.demand import demands
from plerion.routing.interest import Advertisement, AdvertisementId, Subscription, SubscriptionId
from plerion.routing.tree import Forest, Spanning, forest, sources, spanning
from plerion.topology import HostId, Port, SwitchId, Topology, ring, torus
from tests.laws.topologies import topologies

DEPTH = 4  # bits of the short code space
BASES = (WHOLE, Dz.parse("10" * 31), Dz.parse("1" * (MAX_LENGTH - DEPTH)))

bases = st.sampled_from(BASES)


def networks(max_switches: int = 5) -> st.SearchStrategy[Topology]:
    """Any small network, and every other time one with cycles, where two trees take different ways."""
    return topologies(max_switches) | st.sampled_from((ring(4), ring(5), torus(2, 3)))


def cells(base: Dz = WHOLE, depth: int = DEPTH) -> st.SearchStrategy[Dz]:
    """Any cell of the short code space under the base; the base itself is one."""
    lengths = st.sampled_from(sorted(range(depth + 1), key=lambda length: abs(length - 2)))
    short = lengths.flatmap(
        lambda length: st.integers(0, (1 << length) - 1).map(lambda bits: Dz(bits, length))
    )
    return short.map(base.append)


def dz_sets(base: Dz = WHOLE, depth: int = DEPTH) -> st.SearchStrategy[DzSet]:
    return st.lists(cells(base, depth), min_size=1, max_size=3).map(DzSet.of)


def advertisements(topology: Topology, base: Dz = WHOLE, number: int = 0) -> st.SearchStrategy[Advertisement]:
    name = AdvertisementId(f"a{number}")
    return st.builds(Advertisement, st.just(name), st.sampled_from(topology.hosts), dz_sets(base))


def subscriptions(topology: Topology, base: Dz = WHOLE, number: int = 0) -> st.SearchStrategy[Subscription]:
    name = SubscriptionId(f"q{number}")
    return st.builds(Subscription, st.just(name), st.sampled_from(topology.hosts), dz_sets(base))


def surviving(topology: Topology) -> st.SearchStrategy[Topology]:
    """What is left of a network after few failures; parts may be cut off from each other."""
    ports = st.sampled_from([link.ends[0] for link in topology.links])
    switches = st.sampled_from(topology.switches)
    return st.builds(topology.without, st.lists(switches, max_size=1), st.lists(ports, max_size=2))


@dataclass(frozen=True)
class Deployment:
    """Interests on what survives of a network. `topology` is the whole one, which tables are numbered by."""

    topology: Topology
    alive: Topology
    advertisements: tuple[Advertisement, ...]
    subscriptions: tuple[Subscription, ...]
    max_trees: int = 64
    base: Dz = WHOLE

    @property
    def fabric(self) -> Fabric:
        return fabric(self.topology)

    @property
    def forest(self) -> Forest:
        return forest(self.alive, self.advertisements, self.max_trees)

    @property
    def hosts(self) -> list[HostId]:
        return [subscription.host for subscription in self.subscriptions]

    @property
    def covers(self) -> Covers:
        sizes = [len(subscription.dz) for subscription in self.subscriptions]
        cells = DzColumns.of(dz for subscription in self.subscriptions for dz in subscription.dz)
        return Covers(np.cumsum([0, *sizes]).astype(np.int64), cells)

    @property
    def advertised(self) -> dict[HostId, DzSet]:
        sent: dict[HostId, DzSet] = {}
        for advertisement in self.advertisements:
            sent[advertisement.host] = sent.get(advertisement.host, DzSet()) | advertisement.dz
        return sent

    def spanning(self, root: SwitchId) -> Spanning:
        return spanning(self.alive, root, self.fabric.host_number)

    def definition(self) -> Tables:
        """The tables straight from the demands, without the trie."""
        return compiled(self.fabric, demands(self.alive, self.forest, self.subscriptions))

    def table(self) -> NetworkTable:
        """The tables as a controller would build them: some subscriptions come before the routes, some after."""
        made = NetworkTable(self.fabric)
        for number, subscription in enumerate(self.subscriptions):
            if number == 2:
                made.route(sources(self.forest, self.alive), self.spanning, self.alive)
            made.subscribe(DzColumns.of(subscription.dz), subscription.host)
        made.route(sources(self.forest, self.alive), self.spanning, self.alive)
        return made

    def codes(self) -> list[Dz]:
        """Both ends of every smallest cell of the short code space."""
        return [end for i in range(1 << DEPTH) for end in ends_of(self.base.append(Dz(i, DEPTH)))]

    def sendings(self) -> Iterator[tuple[Dz, HostId]]:
        """Every (code, publisher) that an advertisement allows, from hosts that are still there."""
        for host, sent in self.advertised.items():
            if host in self.alive.hosts:
                yield from ((code, host) for code in self.codes() if sent.covers(code))

    def wanted(self, code: Dz, publisher: HostId) -> set[HostId]:
        """The hosts that must get the event: by the covers and by who is connected, nothing else."""
        return {
            subscription.host
            for subscription in self.subscriptions
            if subscription.host != publisher
            and joined(self.alive, publisher, subscription.host)
            and subscription.dz.covers(code)
        }


def ends_of(cell: Dz) -> set[Dz]:
    """The first and the last full-length code under a cell."""
    return {Dz(cell.start, MAX_LENGTH), Dz(cell.end - 1, MAX_LENGTH)}


def joined(topology: Topology, a: HostId, b: HostId) -> bool:
    """Whether the network connects two hosts, found by walking from switch to switch."""
    if not {a, b} <= set(topology.hosts):
        return False
    start, goal = topology.attachment(a).node, topology.attachment(b).node
    seen, waiting = {start}, [start]
    while waiting:
        for near in topology.neighbours(waiting.pop()):
            if near.peer in topology.switches and near.peer not in seen:
                seen.add(near.peer)
                waiting.append(near.peer)
    return goal in seen


@st.composite
def deployments(draw: st.DrawFn, max_switches: int = 5, failures: bool = True) -> Deployment:
    """Several interests on a small network that may have lost something; now and then there is no interest."""
    topology = draw(networks(max_switches))
    base = draw(bases)
    few = st.sampled_from((2, 3, 4, 1, 2, 3, 4, 0))
    sent = tuple(draw(advertisements(topology, base, i)) for i in range(draw(few)))
    asked = tuple(draw(subscriptions(topology, base, i)) for i in range(draw(few)))
    alive = draw(surviving(topology)) if failures and draw(st.booleans()) else topology
    return Deployment(topology, alive, sent, asked, draw(st.sampled_from((64, 2, 1))), base)


def brute_faults(deployment: Deployment, tables: Tables) -> Iterator[tuple[Fault, Dz, HostId]]:
    """Faults found by sending every code of the short space; the same verdicts that `verify` must come to."""
    network = ModelNetwork(tables, deployment.alive)
    for code, publisher in deployment.sendings():
        journey = network.walk(code, publisher)
        if journey.looped:
            yield "looping", code, publisher
        elif max(Counter(journey.delivered).values(), default=0) > 1:
            yield "doubled", code, publisher
        elif not deployment.wanted(code, publisher) <= set(journey.delivered):
            yield "lost", code, publisher


def shows(example: CounterExample, deployment: Deployment, tables: Tables) -> bool:
    """Whether the event of a counter-example, walked alone, does what it is said to do."""
    assert example.code is not None
    assert example.publisher is not None
    assert deployment.advertised[example.publisher].covers(example.code)
    journey = ModelNetwork(tables, deployment.alive).walk(example.code, example.publisher)
    if example.fault == "looping":
        return journey.looped
    assert example.host is not None
    if example.fault == "doubled":
        return journey.delivered.count(example.host) > 1
    wanted = deployment.wanted(example.code, example.publisher)
    return example.host in wanted and example.host not in journey.delivered


Written = Mapping[SwitchId, Mapping[Dz, frozenset[int]]]


def written(tables: Tables) -> dict[SwitchId, dict[Dz, frozenset[int]]]:
    """Tables as plain dictionaries, to look into and to alter."""
    return {s: {e.dz: e.ports for e in tables.entries(s)} for s in tables.fabric.topology.switches}


def unwritten(whole: Fabric, entries: Written) -> Tables:
    """The inverse of `written`."""
    return tables_of(
        whole, {s: [FlowEntry(*entry) for entry in table.items()] for s, table in entries.items()}
    )


@st.composite
def tampered(draw: st.DrawFn, tables: Tables, base: Dz) -> Tables:
    """The tables with up to three entries dropped, added or told other ports."""
    entries = written(tables)
    for _ in range(draw(st.integers(1, 3))):
        switch = draw(st.sampled_from(tables.fabric.topology.switches))
        ports = tables.fabric.topology.ports(switch)
        known = sorted(entries[switch])
        dz = draw(st.sampled_from(known) | cells(base) if known else cells(base))
        chosen = draw(st.frozensets(st.sampled_from(ports))) if ports else frozenset[int]()
        if draw(st.booleans()):
            entries[switch].pop(dz, None)
        else:
            entries[switch][dz] = chosen
    return unwritten(tables.fabric, entries)


def slots_out(tables: Tables, hops: Iterator[tuple[SwitchId, int]]) -> Counter[int]:
    """How often events left by each slot."""
    return Counter(tables.fabric.slot(Port(switch, port)) for switch, port in hops)
