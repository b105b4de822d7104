"""Numbered switches and cables become a topology with names and ports: the one place that hands out both.

The rule: switch i is ``s<i>``, host i is ``h<i>``. Each node numbers its ports from 1 in the order in which
its cables are given; cables between switches come first, so a switch's hosts are on its highest ports. A
host's own port is 1.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

from plerion.topology.graph import HostId, Link, NodeId, SwitchId, Topology, TopologyError

MAX_SWITCHES = 10_000
MAX_LINKS = 500_000


class Cable(NamedTuple):
    """A link before it has ports, between two switches given by number (from 1)."""

    a: int
    b: int
    capacity: float | None = None
    latency: float | None = None


def check_size(switches: int, links: int) -> None:
    """Refuses a network that is larger than what a controller looks after, before anything is made of it."""
    for count, most, what in ((switches, MAX_SWITCHES, "switches"), (links, MAX_LINKS, "links")):
        if count > most:
            raise TopologyError(f"{count} {what}", where=what, fix=f"a network has at most {most}: split it")


def wired(switches: int, cables: Iterable[Cable], host_switches: Iterable[int]) -> Topology:
    """Switches s1… joined by the cables, and hosts h1…, the i-th one at the i-th of `host_switches`."""
    places = tuple(host_switches)
    ends: Iterable[tuple[NodeId, NodeId, float | None, float | None]] = chain(
        ((f"s{a}", f"s{b}", capacity, latency) for a, b, capacity, latency in cables),
        ((f"s{place}", f"h{i}", None, None) for i, place in enumerate(places, start=1)),
    )
    used: Counter[NodeId] = Counter()
    links = []
    for a, b, capacity, latency in ends:
        used[a] += 1
        used[b] += 1
        links.append(Link(a, used[a], b, used[b], capacity, latency))
    return Topology(
        tuple(SwitchId(f"s{i}") for i in range(1, switches + 1)),
        tuple(HostId(f"h{i}") for i in range(1, len(places) + 1)),
        tuple(links),
    )


def with_a_host_each(topology: Topology) -> Topology:
    """A topology without hosts, now with h<i> on the first port above those in use at its i-th switch."""
    hosts = tuple(HostId(f"h{i}") for i in range(1, len(topology.switches) + 1))
    links = (
        Link(switch, max(topology.ports(switch), default=0) + 1, host, 1)
        for switch, host in zip(topology.switches, hosts, strict=True)
    )
    return Topology(topology.switches, hosts, (*topology.links, *links))
