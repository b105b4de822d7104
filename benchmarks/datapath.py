"""What makes Open vSwitch fast for us, measured: how often its datapath cache is missed, and packets a second.

    python -m benchmarks.datapath [scale]

Events with distinct addresses go from one host to another through two switches of a lab, with ten entries in each
forwarding table. Whether the last switch rewrites the destination (`rewrite`) or not (`raw`), and whether the tables
track `prefixes` or not, makes four labs. A switch that has to look at all bits of an address remembers each address
by itself: every event is a miss, which costs a look-up in all tables and an entry. Needs root.

Packets go in groups that are waited for, so that none is lost and the rate is that of the switches: `cold` the first
time, `warm` when the same addresses come again. Above some 10,000 entries Open vSwitch forgets those that were not
used for a tenth of a second, so entries are counted while events flow and can be fewer than the misses.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from ipaddress import IPv6Address
from statistics import median
from time import perf_counter
from typing import NamedTuple

import numpy as np

from benchmarks.core import Row, row
from plerion.flow.admission import EVENT_PORT
from plerion.flow.render import LastHop
from plerion.lab import Lab
from plerion.topology import ipv6, line, mac

EVENTS, ENTRIES, GROUP = 20_000, 10, 250
CACHED_AT_MOST = 1_000
PREFIXES = ("ipv6_dst", "ipv6_src")
TOPOLOGY = line(2)
FIRST, LAST = TOPOLOGY.hosts


def cells() -> list[tuple[int, int]]:
    """(bits, length) of ten cells anywhere in the space of events, the first of them being all of it."""
    random = np.random.default_rng(1)
    lengths = [0, *(4 * n for n in range(1, ENTRIES))]
    return [(int(random.integers(0, 2**length)), length) for length in lengths]


def address(bits: int, length: int) -> str:
    return str(IPv6Address((0xFF0E << 112) | bits << (112 - length)))


def tables(last_hop: LastHop) -> dict[str, list[str]]:
    """Table 0 admits the first host's events, table 1 sends those of each cell on their way to the last host."""
    own = f"set_field:{mac(TOPOLOGY, LAST)}->eth_dst,set_field:{ipv6(TOPOLOGY, LAST)}->ipv6_dst,"
    lines: dict[str, list[str]] = {}
    for switch in TOPOLOGY.switches:
        ways = {found.peer: found.port for found in TOPOLOGY.neighbours(switch)}
        port = ways[LAST] if LAST in ways else ways[TOPOLOGY.switches[1]]
        before = own if last_hop == "rewrite" and LAST in ways else ""
        source = f"ipv6_src={ipv6(TOPOLOGY, FIRST)}"
        lines[switch] = [f"table=0,priority=200,udp6,{source},ipv6_dst=ff0e::/16,actions=goto_table:1"]
        for bits, length in cells():
            match = f"priority={100 + length},udp6,ipv6_dst={address(bits, length)}/{16 + length}"
            lines[switch].append(f"table=1,{match},actions={before}output:{port}")
    return lines


def addresses(count: int) -> list[str]:
    """Distinct addresses, half of them inside the cells and half anywhere."""
    random, chosen = np.random.default_rng(2), cells()
    found: dict[str, None] = {}
    while len(found) < count:
        bits, length = chosen[int(random.integers(len(chosen)))] if random.random() < 0.5 else (0, 0)
        rest = int.from_bytes(random.bytes(14), "big") >> length
        found[str(IPv6Address((0xFF0E << 112) | bits << (112 - length) | rest))] = None
    return list(found)


@contextmanager
def laboratory(last_hop: LastHop, prefixes: tuple[str, ...]) -> Iterator[Lab]:
    name = f"bench{os.getpid()}"
    lab = asyncio.run(Lab.up(TOPOLOGY, name, None, prefixes=prefixes))
    try:
        for switch, lines in tables(last_hop).items():
            lab.ofctl(switch, "add-flows", "-", text="\n".join(lines))
        yield lab
    finally:
        asyncio.run(lab.down())


def taker(last_hop: LastHop) -> socket.socket:
    if last_hop == "raw":
        return socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_UDP)
    plain = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    plain.bind(("::", EVENT_PORT))
    return plain


def passed(source: socket.socket, target: socket.socket, events: list[str]) -> float:
    """Packets a second of events that all arrive."""
    began = perf_counter()
    for at in range(0, len(events), GROUP):
        group = events[at : at + GROUP]
        for address in group:
            source.sendto(b"event", (address, EVENT_PORT))
        for _ in group:
            target.recv(2048)
    return len(events) / (perf_counter() - began)


class Seen(NamedTuple):
    """What four labs are compared by."""

    misses: int
    entries: int
    cold: float
    warm: float


def misses(lab: Lab) -> int:
    """How often the cache knew nothing of a packet."""
    found = re.search(r"missed:(\d+)", lab.appctl("dpctl/show"))
    assert found is not None
    return int(found[1])


def measured(last_hop: LastHop, prefixes: tuple[str, ...], events: list[str]) -> Seen:
    """One lab; it is up for a few seconds."""
    with laboratory(last_hop, prefixes) as lab, ExitStack() as sockets:
        source = lab.inside(FIRST, lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM))
        target = lab.inside(LAST, lambda: taker(last_hop))
        sockets.enter_context(source)
        sockets.enter_context(target)
        target.settimeout(10)
        began, rates, entries = misses(lab), [], []
        for at in range(0, len(events), part := max(GROUP, len(events) // 8)):
            rates.append(passed(source, target, events[at : at + part]))
            entries.append(len(lab.appctl("dpctl/dump-flows").splitlines()))
        missed = misses(lab) - began
        return Seen(missed, max(entries), median(rates), passed(source, target, events))


def datapath(scale: float) -> list[Row]:
    """The four labs, one after the other."""
    events = addresses(max(500, int(EVENTS * scale)))
    labs: list[tuple[LastHop, tuple[str, ...]]] = [
        ("raw", PREFIXES),
        ("raw", ()),
        ("rewrite", PREFIXES),
        ("rewrite", ()),
    ]
    rows: list[Row] = []
    for last_hop, prefixes in labs:
        seen = measured(last_hop, prefixes, events)
        title = f"{last_hop}, {'with' if prefixes else 'without'} prefixes"
        # Two switches miss each event at the most once; only the lab's own way has a bound that is worth one.
        bound = CACHED_AT_MOST if (last_hop, prefixes) == labs[0] else 2 * len(events)
        rows += [
            row(f"cache misses, {len(events):,} events, {title}", seen.misses, bound, "", at_most=True),
            row(f"cache entries at the most, {title}", seen.entries, bound, "", at_most=True),
            row(f"packets through two switches, cold, {title}", seen.cold, 0, "1/s"),
            row(f"packets through two switches, warm, {title}", seen.warm, 0, "1/s"),
        ]
    return rows


MEASUREMENTS: dict[str, Callable[[float], list[Row]]] = {"datapath": datapath}

if __name__ == "__main__":
    for found in datapath(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0):
        print(json.dumps(found))
