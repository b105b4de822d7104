"""Small random networks, workloads and changes, by seed: what plans are tried on.

A point lies on a grid of two attributes with three bits each. An index is an order of these six bits, of which the
first few make the code; so two indexes give the same region other cells, and false positives where bits are missing.
What is wanted is decided on the grid, without any index.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from random import Random
from typing import Literal

from plerion.flow.fabric import fabric
from plerion.flow.table import NetworkTable
from plerion.index.dz import Dz
from plerion.index.dzset import DzColumns, DzSet
from plerion.routing.interest import Advertisement, AdvertisementId
from plerion.routing.tree import Forest, Tree, forest, sources, spanning
from plerion.simnet.traffic import Sample
from plerion.topology import HostId, Topology, fat_tree, line, random_graph, ring, star, torus
from plerion.update.entries import ANY
from plerion.update.state import NetworkState, Stamp

Change = Literal["index", "tree", "both"]
Point = tuple[int, int]
Region = tuple[range, range]
Order = tuple[int, ...]  # places in the six bits of a point, first bit first

SIDE_BITS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """A network in one state that is to get into another, and events to send meanwhile."""

    topology: Topology
    old: NetworkState
    new: NetworkState
    samples: tuple[Sample, ...]


def scene(seed: int, change: Change = "index", *, epoch_bits: int = 1, on: Topology | None = None) -> Scene:
    """The scene of this seed, on the given network or its own; with epoch bits the old state is in some epoch."""
    random = Random(seed)
    topology = on or _topology(random)
    publishers, subscribers = _parts(random, topology)
    sent = {host: _region(random, 5) for host in publishers}
    wanted = [(host, _region(random, 3)) for host in subscribers for _ in range(random.randint(1, 3))]
    orders = [_index(random), _index(random)]
    if change == "tree":
        orders[1] = orders[0]
    most_trees = random.choice((1, 1, 1, 3))
    states = [_state(topology, order, sent, wanted, most_trees) for order in orders]
    if change != "index":
        states[1] = _state(topology, orders[1], sent, wanted, most_trees, random)
    stamp = Stamp(random.randrange(1 << epoch_bits) if epoch_bits else ANY)
    samples = tuple(
        _sample(host, point, orders, reached)
        for host, region in sent.items()
        for reached in [[(taker, one) for taker, one in wanted if _joined(topology, host, taker)]]
        for point in product(*region)
    )
    return Scene(topology, states[0].stamped(stamp), states[1].stamped(stamp), samples)


def _topology(random: Random) -> Topology:
    made = random.choice(
        (
            lambda: line(random.randint(2, 4)),
            lambda: ring(random.randint(3, 6)),
            lambda: star(random.randint(2, 4)),
            lambda: torus(2, 3),
            lambda: fat_tree(4, 1),
            lambda: random_graph(random.randint(4, 6), 2.5, random.randrange(1000)),
        )
    )()
    if random.random() < 0.5:
        return made
    timed = tuple(replace(link, latency=random.uniform(0.0002, 0.002)) for link in made.links)
    return Topology(made.switches, made.hosts, timed)


def _parts(random: Random, topology: Topology) -> tuple[list[HostId], list[HostId]]:
    hosts = list(topology.hosts)
    return random.sample(hosts, random.randint(1, min(3, len(hosts)))), random.sample(
        hosts, random.randint(1, len(hosts))
    )


def _region(random: Random, most: int) -> Region:
    sides = []
    for _ in range(2):
        low = random.randrange(1 << SIDE_BITS)
        sides.append(range(low, min(1 << SIDE_BITS, low + random.randint(1, most))))
    return sides[0], sides[1]


def _index(random: Random) -> Order:
    places = random.sample(range(2 * SIDE_BITS), 2 * SIDE_BITS)
    return tuple(places[: random.randint(3, 2 * SIDE_BITS)])


def code(order: Order, point: Point) -> Dz:
    """The point's code in this index."""
    bits = point[0] << SIDE_BITS | point[1]
    return Dz.parse("".join(str(bits >> place & 1) for place in order))


def cover(order: Order, region: Region) -> DzSet:
    """The cells of the index that the region meets."""
    return DzSet.of(code(order, point) for point in product(*region))


def _state(
    topology: Topology,
    order: Order,
    sent: dict[HostId, Region],
    wanted: list[tuple[HostId, Region]],
    most_trees: int,
    roots: Random | None = None,
) -> NetworkState:
    """With `roots` every tree hangs on a switch that is drawn from there instead of its publisher's."""
    announced = {host: cover(order, region) for host, region in sent.items()}
    listed = [Advertisement(AdvertisementId(host), host, cells) for host, cells in announced.items()]
    grown = forest(topology, listed, most_trees)
    if roots is not None:
        grown = _moved(grown, topology, roots)
    whole = fabric(topology)
    table = NetworkTable(whole)
    table.route(sources(grown, topology), lambda root: spanning(topology, root, whole.host_number), "whole")
    for host, region in wanted:
        table.subscribe(DzColumns.of(cover(order, region)), host)
    return NetworkState(table.tables(), announced)


def _moved(grown: Forest, topology: Topology, random: Random) -> Forest:
    trees = tuple(Tree(random.choice(topology.switches), tree.dz) for tree in grown.trees)
    return replace(grown, trees=trees)


def _sample(
    publisher: HostId, point: Point, orders: list[Order], wanted: list[tuple[HostId, Region]]
) -> Sample:
    takers = {host for host, (one, other) in wanted if point[0] in one and point[1] in other}
    old, new = (_addressed(code(order, point)) for order in orders)
    return Sample(publisher, old, new, frozenset(takers - {publisher}))


def _joined(topology: Topology, host: HostId, other: HostId) -> bool:
    one, another = (topology.attachment(h).node for h in (host, other))
    return any({one, another} <= part for part in topology.components())


def _addressed(dz: Dz) -> Dz:
    """The code as an address holds it: what the index leaves open is zero."""
    return Dz(dz.bits << (2 * SIDE_BITS - dz.length), 2 * SIDE_BITS)
