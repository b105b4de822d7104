"""What gets through: one publisher sends ever faster, four hosts count what they receive (seed 000, Figure 7(c)).

Sender and receivers are processes of their own that move hundreds of packets a system call, so that the network and not
Python is what is measured. Where packets are lost is told by the switches: they count what left by the hosts' ports.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from select import select
from time import monotonic, perf_counter, sleep
from typing import Final

import numpy as np
import numpy.typing as npt

from plerion.client.mmsg import BATCH, Addresses, Datagrams, MultiReceiver, MultiSender, destinations
from plerion.controller.deploy import Deployment
from plerion.experiments.figure import Figure, Point, Row, Verdict, curve, graded, percent
from plerion.experiments.lab_delay import LIMITS
from plerion.experiments.lab_load import Load, admitted
from plerion.experiments.lab_probe import Lane
from plerion.experiments.lab_site import TESTBED, laboratory, put, switches
from plerion.flow.admission import EVENT_PORT
from plerion.lab import Lab
from plerion.southbound.openflow.driver import OpenFlowSouthbound
from plerion.topology.graph import HostId, SwitchId

RATES: Final = (500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000)
SUBSCRIPTIONS: Final = 1_000
SECONDS: Final = 4.0
QUIET_SECONDS: Final = 0.5  # without a packet: then no more come
BURST_SECONDS: Final = 0.001
BYTES: Final = 64
LOSSLESS: Final = 0.001  # a share of losses that counts as none

_fork = get_context("fork")  # sockets of other namespaces cannot be opened again


@dataclass(frozen=True, slots=True)
class Passage:
    """Events that one publisher sent in `seconds`, and the copies of them: wanted, sent to hosts, received there."""

    events: int = 0
    seconds: float = 1.0
    wanted: int = 0
    left: int = 0
    received: int = 0

    @property
    def lost(self) -> float:
        """The share of copies that nobody received."""
        return max(0.0, 1 - self.received / self.wanted) if self.wanted else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """A network with subscriptions at four hosts, and events of one publisher that some of them want."""

    source: HostId
    targets: tuple[HostId, ...]
    deployment: Deployment
    addresses: Addresses
    copies: npt.NDArray[np.int64]  # of each event, at all four together

    @classmethod
    def of(cls, subscriptions: int, events: int, seed: int = 1) -> Stage:
        source, targets = TESTBED.hosts[0], tuple(TESTBED.hosts[-4:])
        load = Load.of(TESTBED, "zipf", subscriptions, events, seed).shared_by(targets)
        deployment = load.deployed()
        copies = load.copies(deployment, source).sum(axis=1, dtype=np.int64)
        return cls(source, targets, deployment, load.addresses[copies > 0], copies[copies > 0])

    async def set_up(self, southbound: OpenFlowSouthbound) -> None:
        await put(southbound, self.deployment.tables, admitted(self.deployment))


async def passed(
    lab: Lab, southbound: OpenFlowSouthbound, stage: Stage, rate: float, seconds: float = SECONDS
) -> Passage:
    """Sends for a while at this rate."""
    chosen = np.resize(np.arange(len(stage.addresses)), round(rate * seconds))
    before = await _left(southbound, stage.targets)
    with Lane(lab, stage.source, stage.targets) as lane:
        sent, received, taken = await asyncio.to_thread(_exchanged, lane, stage.addresses[chosen], rate)
    after = await _left(southbound, stage.targets)
    wanted = int(stage.copies[chosen[:sent]].sum())
    return Passage(sent, taken, wanted, after - before, received)


async def _left(southbound: OpenFlowSouthbound, hosts: Sequence[HostId]) -> int:
    """Packets that left the switches by the ports of these hosts."""
    found = 0
    for host in hosts:
        place = southbound.fabric.topology.attachment(host)
        counted = await southbound.statistics(SwitchId(place.node))
        found += next(port.sent for port in counted.ports if port.number == place.number)
    return found


def _exchanged(lane: Lane, addresses: Addresses, rate: float) -> tuple[int, int, float]:
    """(sent, received, seconds of sending), by two processes."""
    ours, theirs = _fork.Pipe()
    counting = _fork.Process(target=_count, args=(theirs, lane.receivers), daemon=True)
    counting.start()
    ours.recv()  # it listens
    told, telling = _fork.Pipe()
    sending = _fork.Process(target=_send, args=(telling, lane.source, addresses, rate), daemon=True)
    sending.start()
    sent, seconds = told.recv()
    ours.send("no more")
    received: int = ours.recv()
    for process in (sending, counting):
        process.join()
    return sent, received, seconds


def _send(told: Connection, source: socket.socket, addresses: Addresses, rate: float) -> None:
    names = destinations(addresses, EVENT_PORT)
    body = Datagrams(bytes(BYTES), np.zeros(len(names), np.int64), np.full(len(names), BYTES, np.int64))
    sender, sent = MultiSender(source), 0
    began = perf_counter()
    while sent < len(names):
        due = min(len(names), int((perf_counter() - began) * rate) + 1)
        if due <= sent:
            sleep(BURST_SECONDS)
            continue
        due = min(due, sent + BATCH)
        sent += sender.send(names[sent:due], body.rows(slice(sent, due)))
    told.send((sent, perf_counter() - began))


def _count(told: Connection, receiving: list[socket.socket]) -> None:
    receivers = {one.fileno(): MultiReceiver(one, BYTES + 8) for one in receiving}
    told.send("ready")
    found, last, ending = 0, monotonic(), False
    while not ending or monotonic() < last + QUIET_SECONDS:
        ready, _, _ = select([*receivers, told.fileno()], [], [], 0.05)
        for one in ready:
            if one in receivers:
                count = sum(len(packet) == BYTES + 8 for packet in receivers[one].receive())
                found, last = found + count, monotonic() if count else last
            elif not ending:
                told.recv()
                ending, last = True, monotonic()
    told.send(found)


async def by_rate(point: Point) -> list[Row]:
    rate = max(100.0, point.at * point.scale)
    stage = Stage.of(point.subscriptions(SUBSCRIPTIONS), 20_000, point.seed)
    async with laboratory() as lab, switches(lab) as southbound:
        await stage.set_up(southbound)
        await passed(lab, southbound, stage, 500, 1.0)  # fills the caches
        found = await passed(lab, southbound, stage, rate, max(0.5, SECONDS * point.scale))
    told = {"wanted": found.wanted, "left the switches": found.left, "received": found.received}
    return [Row("", line, rate, count / found.seconds, point.seed) for line, count in told.items()]


def rows(point: Point) -> list[Row]:
    return asyncio.run(by_rate(point))


def verdict(found: Sequence[Row]) -> Verdict:
    """Up to some rate all is received; beyond it, what the switches sent is what the hosts received, or not."""
    wanted, left, received = (curve(found, line) for line in ("wanted", "left the switches", "received"))
    whole = [x for x in wanted if received[x] >= (1 - LOSSLESS) * wanted[x]]
    most = max(received, key=lambda x: received[x])
    last = max(wanted)
    by_switches = 1 - left[last] / wanted[last]
    by_hosts = max(0.0, 1 - received[last] / left[last])
    weaker = "the switches" if by_switches > by_hosts else "the hosts"
    told = (
        f"all is received up to {max(whole, default=0):,.0f} events a second, at most {received[most]:,.0f} copies a "
        f"second are; of what {last:,.0f} events a second should give, the switches lose {percent(by_switches)} and "
        f"the hosts {percent(by_hosts)}, so {weaker} are the bottleneck"
    )
    return graded([bool(whole), by_switches <= LOSSLESS], told)


FIGURES = (
    Figure(
        name="000-7c",
        title="What four hosts receive by what one publisher sends",
        x="events a second",
        y="copies a second",
        claim="beyond some rate hosts do not receive all events, although the switches forward every one of them",
        settings=f"zipf, 1,000 subscriptions of 4 hosts, packets of 64 bytes for {SECONDS:g} s; {LIMITS}",
        starts=tuple(Point("000-7c", at=rate) for rate in RATES),
        rows=rows,
        verdict=verdict,
        log="xy",
        rates=False,
        lab=True,
    ),
)
