"""The client's two hot paths on loopback, each beside a bare `sendmmsg` or `recvmmsg` loop over the same datagrams.

A publisher sends arrays of events into a port; a subscriber empties a port that was filled before the clock started,
with its exact filter on. So each side is measured alone, and the ratio to the bare loop says what the client adds to
the kernel's own cost. At the end both run against each other in two processes, at a pace, and nothing may be lost.

    python -m benchmarks.client
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import perf_counter, time_ns
from typing import Any

import numpy as np

import plerion
from benchmarks.core import ROOT, Row, row
from benchmarks.workload import schema, zipf
from plerion.client.mmsg import BATCH, Datagrams, destinations
from plerion.client.publication import Floats, datagrams
from plerion.client.session import Session
from plerion.client.subscription import Subscription
from plerion.client.transport import LoopbackTransport
from plerion.index.address import AddressPlan
from plerion.index.propose import regular
from plerion.wire import control
from plerion.wire.description import Description, cut, digest, pack

BITS, REPEATS = 96, 5
FILTER = "a0 < 2048 AND a1 >= 0"
PACE = 40_000


class Answering(asyncio.DatagramProtocol):
    """A controller that is content with everything."""

    packed = pack(Description(regular(schema(), BITS), AddressPlan(), "raw"))

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        asked = control.decode_request(data)
        told: control.Reply = control.Ready(asked.number)
        parts = cut(self.packed)
        if isinstance(asked, control.Join):
            told = control.Welcome(asked.number, "h1", 60.0, 0, digest(self.packed), len(parts))
        elif isinstance(asked, control.Describe):
            told = control.Part(asked.number, asked.part, len(parts), parts[asked.part])
        self.transport.sendto(control.encode(told), addr)


@asynccontextmanager
async def session(transport: LoopbackTransport) -> AsyncIterator[Session]:
    loop = asyncio.get_running_loop()
    endpoint, _ = await loop.create_datagram_endpoint(Answering, local_addr=("::1", 0))
    target = endpoint.get_extra_info("sockname")[:2]
    async with plerion.connect(controller=target, transport=transport) as connected:
        yield connected
    endpoint.close()


def encoded(points: Floats) -> Datagrams:
    return datagrams(schema(), points, "bench", 0, 0, time_ns())


async def sending(count: int) -> tuple[float, float]:
    """Events a second out of a session, and datagrams a second out of a bare loop; the best of interleaved runs."""
    points = zipf(1, count, seed=11).events
    sink = LoopbackTransport()
    bare = LoopbackTransport([sink.port])
    ready = encoded(points)
    names = destinations(
        np.frombuffer(b"\0" * 15 + b"\1", np.uint8).reshape(1, 16).repeat(count, 0), sink.port
    )
    rates: tuple[list[float], list[float]] = ([], [])
    async with session(LoopbackTransport([sink.port])) as publisher:
        await publisher.advertise("TRUE")
        await publisher.publish(points[:100])
        for _ in range(REPEATS):
            began = perf_counter()
            await publisher.publish(points)
            rates[0].append(count / (perf_counter() - began))
            began = perf_counter()
            for at in range(0, count, BATCH):
                bare._sender.send(names[at:], ready.rows(slice(at, None)))
            rates[1].append(count / (perf_counter() - began))
    bare.close()
    sink.close()
    return max(rates[0]), max(rates[1])


async def receiving(count: int) -> tuple[float, float, float]:
    """Events a second into a session, in batches and one by one, and into a bare loop."""
    target, idle = LoopbackTransport(), LoopbackTransport()
    count = min(count, target._bound.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 1_400)
    points = zipf(1, count, seed=12).events
    rates: dict[str, list[float]] = {"batches": [], "one by one": [], "bare": []}
    idle.listen()
    async with session(target) as subscriber, subscriber.subscribe(FILTER, queue=10**6) as wanted:
        number = 0
        for _ in range(REPEATS):
            for name, read in (("batches", _in_batches), ("one by one", _one_by_one)):
                fresh = datagrams(schema(), points, "bench", number, 0, time_ns())
                number += count
                before = wanted.counts.received
                await _fill(target.port, fresh)
                began = perf_counter()
                await read(wanted, before + len(fresh))
                rates[name].append((wanted.counts.received - before) / (perf_counter() - began))
            await _fill(idle.port, encoded(points))
            began, got = perf_counter(), 0
            while arrived := idle.receive():
                got += len(arrived)
            rates["bare"].append(got / (perf_counter() - began))
        assert subscriber.dropped == 0, "the fill must fit into the kernel's buffer"
    idle.close()
    return max(rates["batches"]), max(rates["one by one"]), max(rates["bare"])


async def _fill(port: int, ready: Datagrams) -> None:
    sender = LoopbackTransport([port])
    await sender.send(np.zeros((len(ready), 16), np.uint8), ready)
    sender.close()


async def _in_batches(wanted: Subscription, until: int) -> None:
    while wanted.counts.received < until:
        await asyncio.wait_for(wanted.batch(), 10)


async def _one_by_one(wanted: Subscription, until: int) -> None:
    while wanted.counts.received < until or len(wanted):
        await anext(wanted)


async def receive_at_pace(count: int) -> None:
    """The subscriber's process: says its port, counts until all came or nothing more does, says what came."""
    transport = LoopbackTransport()
    async with session(transport) as subscriber, subscriber.subscribe("TRUE", queue=10**6) as wanted:
        print(transport.port, flush=True)
        first = await anext(wanted)
        while wanted.counts.received < count:
            try:
                await asyncio.wait_for(wanted.batch(), 3)
            except TimeoutError:
                break
        seconds = (time_ns() - first.received_ns) / 1e9
        print(wanted.counts.received, seconds, wanted.counts.latency.quantile(0.99), flush=True)


async def publish_at_pace(port: int, count: int) -> None:
    points = zipf(1, 10_000, seed=13).events
    async with session(LoopbackTransport([port])) as publisher:
        await publisher.advertise("TRUE")
        await publisher.publish(points[:0])
        began, step = perf_counter(), 200
        for at in range(0, count, step):
            await publisher.publish(points[at % 10_000 : at % 10_000 + step])
            ahead = (at + step) / PACE - (perf_counter() - began)
            await asyncio.sleep(max(0.0, ahead))


def sdk(scale: float) -> list[Row]:
    """Rates of one publisher and of one subscriber process, and both against each other."""
    sent, bare_sent = asyncio.run(sending(max(2_000, int(100_000 * scale))))
    batched, single, bare_read = asyncio.run(receiving(max(1_000, int(8_000 * scale))))
    count = max(2_000, int(3 * PACE * scale))
    got, seconds, latency = min(
        (_against_each_other(count) for _ in range(3)), key=lambda run: run[1] / run[0]
    )
    return [
        row("events out of one publisher process, loopback", sent, 50_000, "1/s"),
        row("… of what a bare sendmmsg loop sends", 100 * sent / bare_sent, 10, "%"),
        row("events into one subscriber process, in batches", batched, 30_000, "1/s"),
        row("… one by one", single, 30_000, "1/s"),
        row("… of what a bare recvmmsg loop reads", 100 * batched / bare_read, 5, "%"),
        row(f"both at {PACE:,} a second: received", got / seconds, 30_000, "1/s"),
        row("… lost of them", count - got, 0, "events", at_most=True),
        row("… latency, 99 %", 1e3 * latency, 500, "ms", at_most=True),
    ]


def _against_each_other(count: int) -> tuple[int, float, float]:
    """What came, in how many seconds, and the latency that 99 % kept to."""
    program = f"import asyncio; from benchmarks.client import receive_at_pace as r; asyncio.run(r({count}))"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        asyncio.run(publish_at_pace(int(process.stdout.readline()), count))
        got, seconds, latency = process.stdout.readline().split()
    return int(got), float(seconds), float(latency)


MEASUREMENTS: dict[str, Callable[[float], list[Row]]] = {"client": sdk}


if __name__ == "__main__":
    for found in sdk(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0):
        met = "" if found["met"] else "  MISSED"
        print(f"{found['what']:50} {found['measured']:14,.3f} {found['unit']:7} {found['at least']}{met}")
