"""Laws of bulk forwarding: its counts, and the account of them, are those of sending every event alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields

import numpy as np
import numpy.typing as npt
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from plerion.content.box import Box
from plerion.content.schema import Number, Schema
from plerion.flow.entry import Tables
from plerion.flow.walk import ModelNetwork, TableLookup
from plerion.index.content_index import Cluster, ContentIndex, everywhere
from plerion.index.cover import Covers, advertised, covers
from plerion.index.cuts import equal_cuts
from plerion.index.dz import MAX_LENGTH, Dz
from plerion.index.dzset import DzColumns
from plerion.index.encode import encode
from plerion.matching.bitset import BitsetMatcher
from plerion.routing.interest import Advertisement, AdvertisementId, Subscription, SubscriptionId
from plerion.simnet.account import Account, account
from plerion.simnet.bulk import BulkNetwork
from plerion.topology import HostId, Port, SwitchId, Topology, line, ring, star
from tests.laws.networks import Deployment, deployments, joined, surviving, tampered
from tests.laws.topologies import topologies

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

EXAMPLES = settings(max_examples=60, deadline=None)


@EXAMPLES
@given(deployments(), st.data())
def test_forwarding_equals_walking_every_event(deployed: Deployment, data: st.DataObject) -> None:
    exact = deployed.table().tables()
    tables = data.draw(st.just(exact) | tampered(exact, deployed.base))
    hosts = deployed.topology.hosts
    sent = data.draw(
        st.lists(st.tuples(st.sampled_from(deployed.codes()), st.integers(0, len(hosts) - 1)), max_size=40)
    )
    traffic = BulkNetwork(tables, deployed.alive).forward(
        DzColumns.of(code for code, _ in sent), np.array([number for _, number in sent], np.int64)
    )
    model = ModelNetwork(tables, deployed.alive)
    copies, loads, looped = Counter[HostId](), Counter[int](), False
    for (code, number), course in zip(sent, traffic.course, strict=True):
        if hosts[number] not in deployed.alive.hosts:
            assert not traffic.copies[course].any()
            continue
        journey = model.walk(code, hosts[number])
        assert traffic.looped[course] == journey.looped
        looped |= journey.looped
        if not journey.looped:
            reached = dict(zip(hosts, traffic.copies[course].tolist(), strict=True))
            assert reached == {host: journey.delivered.count(host) for host in hosts}
            copies.update(journey.delivered)
            loads.update(
                tables.fabric.slot(Port(hop.switch, p)) for hop in journey.hops for p in hop.out_ports
            )
    if not looped:
        assert traffic.deliveries().tolist() == [copies[host] for host in hosts]
        assert traffic.link_loads().tolist() == [loads[slot] for slot in range(len(tables.fabric.port))]
    assert traffic.events.sum() == len(sent)


SCHEMA = Schema((Number("x", 0, 7, integer=True), Number("y", 0, 7, integer=True)))
X, Y = SCHEMA.attributes


def cluster(name: str, box: Box, bits: int) -> Cluster:
    lows = [max(low, 0.0) for low in box.lows]
    highs = [min(high, 8.0) for high in box.highs]
    cuts = tuple(equal_cuts(a, bits, *ends) for a, *ends in zip((X, Y), lows, highs, strict=True))
    return Cluster(Dz.parse(name), box, (0, 1) * bits, cuts)


CLUSTERS = (
    cluster("0", everywhere(SCHEMA), 1),
    cluster("10", Box((0.0, 0.0), (4.0, 8.0)), 2),
    cluster("11", Box((2.0, 2.0), (6.0, 6.0)), 2),
)
indexes = st.sampled_from([ContentIndex(SCHEMA, CLUSTERS[:n]) for n in (3, 2, 1)])
sides = st.tuples(st.integers(0, 7), st.integers(0, 7)).map(lambda ends: (min(ends), max(ends) + 1))
boxes = st.tuples(sides, sides)
# Two boxes of one subscription are disjoint: the second lies beyond the first.
regions = st.lists(boxes, min_size=1, max_size=1) | st.just([((0, 2), (0, 2)), ((4, 6), (0, 8))])


@dataclass
class Workload:
    """Subscriptions, advertisements and events by values, on tables that may be wrong."""

    deployed: Deployment
    tables: Tables
    index: ContentIndex
    offsets: Ints
    bounds: Floats
    covers: Covers
    points: Floats
    publishers: Ints


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    topology = draw(st.sampled_from((ring(3), line(2), star(3))) | topologies(4))
    index, budget = draw(indexes), draw(st.sampled_from((2, 8, 1)))
    interests = st.tuples(st.sampled_from(topology.hosts), regions)
    wanted = draw(st.lists(interests, min_size=3, max_size=6) | st.lists(interests, max_size=2))
    announced = st.tuples(st.sampled_from(topology.hosts), st.just([((0, 8), (0, 8))]) | regions)
    sent = draw(st.lists(announced, min_size=1, max_size=3))
    offsets = np.cumsum([0, *(len(region) for _, region in wanted)]).astype(np.int64)
    bounds = np.array([box for _, region in wanted for box in region], np.float64).reshape(-1, 2, 2)
    covered = covers(index, offsets, bounds, budget)
    deployed = Deployment(
        topology,
        draw(st.just(topology) | surviving(topology)),
        tuple(
            Advertisement(
                AdvertisementId(f"a{i}"), host, advertised(index, np.array(region, np.float64), budget)
            )
            for i, (host, region) in enumerate(sent)
        ),
        tuple(
            Subscription(SubscriptionId(f"q{i}"), host, cells)
            for i, ((host, _), cells) in enumerate(zip(wanted, covered.sets(), strict=True))
        ),
    )
    exact = deployed.table().tables()
    tables = draw(st.just(exact) | tampered(exact, Dz.parse("")))
    at = st.tuples(st.integers(0, 7), st.integers(0, 7))
    events = draw(st.lists(st.tuples(at, st.integers(0, len(topology.hosts) - 1)), min_size=8, max_size=25))
    points = np.array([point for point, _ in events], np.float64)
    publishers = np.array([publisher for _, publisher in events], np.int64)
    return Workload(deployed, tables, index, offsets, bounds, covered, points, publishers)


@dataclass
class PlainAccount:
    """The account of `simnet.account`, counted one event, one code and one hop after the other."""

    events: int = 0
    host_deliveries: Counter[int] = field(default_factory=Counter)
    host_false_positives: Counter[int] = field(default_factory=Counter)
    subscription_deliveries: Counter[int] = field(default_factory=Counter)
    subscription_false_positives: Counter[int] = field(default_factory=Counter)
    link_loads: Counter[int] = field(default_factory=Counter)
    link_false_positives: Counter[int] = field(default_factory=Counter)
    lost: Counter[int] = field(default_factory=Counter)
    doubled: Counter[int] = field(default_factory=Counter)


class PlainNetwork:
    """Carries one event at a time and remembers which hosts it reached through which port."""

    def __init__(self, tables: Tables, alive: Topology) -> None:
        self.alive = alive
        self.lookups = {s: TableLookup(tables.entries(s)) for s in tables.fabric.topology.switches}

    def carry(self, code: Dz, at: Port) -> tuple[list[HostId], list[tuple[Port, set[HostId]]]]:
        """(every copy that reached a host, every port that the event left by with the hosts beyond it)."""
        copies: list[HostId] = []
        left: list[tuple[Port, set[HostId]]] = []
        entry = self.lookups[SwitchId(at.node)].match(code)
        for number in (entry.ports if entry else frozenset()) - {at.number}:
            peer = self.alive.peer(at.node, number)
            there: list[HostId] = []
            if peer is not None and peer.node in self.alive.hosts:
                there = [HostId(peer.node)]
            elif peer is not None:
                there, further = self.carry(code, peer)
                left += further
            left.append((Port(at.node, number), set(there)))
            copies += there
        return copies, left


def plain_account(load: Workload) -> PlainAccount:
    deployed, hosts = load.deployed, load.deployed.topology.hosts
    network, found = PlainNetwork(load.tables, deployed.alive), PlainAccount()
    for point, number in zip(load.points, load.publishers.tolist(), strict=True):
        publisher, codes = hosts[number], load.index.codes(point.tolist())
        matching = [
            any(((box[:, 0] <= point) & (point < box[:, 1])).all() for box in load.bounds[first:last])
            for first, last in zip(load.offsets[:-1], load.offsets[1:], strict=True)
        ]
        wanted = {s.host for s, hit in zip(deployed.subscriptions, matching, strict=True) if hit}
        copies: Counter[HostId] = Counter()
        for code in codes if publisher in deployed.alive.hosts else ():
            address = Dz(code.start, MAX_LENGTH)  # past the code an address holds zeros
            reached, left = network.carry(address, deployed.alive.attachment(publisher))
            copies.update(reached)
            for port, beyond in left:
                found.link_loads[load.tables.fabric.slot(port)] += 1
                found.link_false_positives[load.tables.fabric.slot(port)] += not beyond & wanted
        found.events += 1
        for h, host in enumerate(hosts):
            expected = host in wanted and host != publisher and joined(deployed.alive, publisher, host)
            found.host_deliveries[h] += copies[host] > 0
            found.host_false_positives[h] += copies[host] > 0 and host not in wanted
            found.lost[h] += expected and copies[host] == 0
            found.doubled[h] += max(copies[host] - 1, 0)
        for i, subscription in enumerate(deployed.subscriptions):
            delivered = copies[subscription.host] > 0 and any(subscription.dz.covers(code) for code in codes)
            found.subscription_deliveries[i] += delivered
            found.subscription_false_positives[i] += delivered and not matching[i]
    return found


def counted(load: Workload, rows: slice = slice(None)) -> Account:
    codes = encode(load.index, load.points[rows])
    publishers = load.publishers[rows]
    network = BulkNetwork(load.tables, load.deployed.alive)
    traffic = network.forward(codes.dz, publishers[codes.event])
    assume(not traffic.looped.any())
    numbers = load.tables.fabric.host_number
    return account(
        traffic,
        load.points[rows],
        codes,
        publishers,
        BitsetMatcher.of(load.offsets, load.bounds),
        load.covers,
        np.array([numbers[host] for host in load.deployed.hosts], np.int64),
        network.reachable(),
    )


@settings(max_examples=150, deadline=None)
@given(workloads())
def test_the_account_equals_counting_event_by_event(load: Workload) -> None:
    found, plain = counted(load), plain_account(load)
    assert found.events == plain.events
    for name in [f.name for f in fields(Account) if f.name != "events"]:
        counts = getattr(found, name).tolist()
        assert counts == [getattr(plain, name)[i] for i in range(len(counts))], name
        event(f"{name} {'counted' if any(counts) else 'nothing'}")


@EXAMPLES
@given(workloads(), st.integers(0, 25))
def test_the_accounts_of_two_batches_add_up_to_that_of_both(load: Workload, split: int) -> None:
    whole = counted(load)
    parts = counted(load, slice(split)) + counted(load, slice(split, None))
    assert parts.events == whole.events
    for name in [f.name for f in fields(Account) if f.name != "events"]:
        assert getattr(parts, name).tolist() == getattr(whole, name).tolist()


@EXAMPLES
@given(workloads())
def test_what_is_advertised_is_neither_lost_nor_doubled_by_right_tables(load: Workload) -> None:
    """With one cluster a host gets one copy; with several it may get one for each cluster that it has interests in."""
    numbers = load.tables.fabric.host_number
    sent = load.deployed.advertised
    allowed = [
        number in {numbers[host] for host in sent}
        and all(
            sent[load.deployed.topology.hosts[number]].covers(c) for c in load.index.codes(point.tolist())
        )
        for point, number in zip(load.points, load.publishers.tolist(), strict=True)
    ]
    load.points, load.publishers = load.points[allowed], load.publishers[allowed]
    load.tables = load.deployed.table().tables()
    found = counted(load)
    assert not found.lost.any()
    if len(load.index.clusters) == 1:
        assert not found.doubled.any()
    assert found.host_deliveries.sum() <= found.subscription_deliveries.sum()
