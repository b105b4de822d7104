"""The OpenFlow southbound, measured: `python -m benchmarks.openflow [template | switch | fuzz [messages]]`.

`template` compares the fast encoder with the codec, `switch` sends flow-mods into Open vSwitch, in bundles with
barriers, beside `ovs-ofctl --bundle add-flows` in the same run, `fuzz` throws a million damaged messages at the
decoder. Without a word all of them run; `MEASUREMENTS` takes part in `plerion bench`.
"""

from __future__ import annotations

import asyncio
import faulthandler
import random
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, thread_time

import numpy as np

from benchmarks.core import Row, best, row
from benchmarks.mutations import costly, mutated, ready_channel, samples, survives
from plerion.flow.diff import Diff, Kind, diff
from plerion.flow.entry import Tables, no_tables
from plerion.flow.fabric import Fabric, fabric
from plerion.flow.render import ofctl_lines
from plerion.index.address import AddressPlan
from plerion.index.dzset import DzColumns
from plerion.southbound.openflow.channel import Channel
from plerion.southbound.openflow.codec import encode
from plerion.southbound.openflow.driver import OpenFlowSouthbound
from plerion.southbound.openflow.flowmod import flow_mods
from plerion.southbound.openflow.messages import BundleAdd, Command, FlowMod
from plerion.southbound.openflow.phases import Closed
from plerion.southbound.openflow.shapes import SwitchShapes
from plerion.southbound.openflow.tags import told
from plerion.southbound.stamped import table_changes
from plerion.topology.generate import ring
from plerion.update.state import UNSTAMPED
from tests.ovs.daemon import OpenVSwitch, open_vswitch

NETWORK = ring(3)
SWITCH = NETWORK.switches[0]
FLOW_MODS = 100_000
MUTATED = 1_000_000
STUCK_SECONDS = 30


def a_table(whole: Fabric, count: int, seed: int = 1) -> Tables:
    """One switch with this many entries at depths from 30 to 90, two ports each."""
    chance = np.random.default_rng(seed)
    length = chance.integers(30, 91, count).astype(np.uint8)
    high, low = chance.integers(0, 2**64, (2, count), np.uint64)
    bits = length.astype(np.uint64)
    high = np.where(length < 64, high >> (64 - np.minimum(bits, 63)) << (64 - np.minimum(bits, 63)), high)
    kept = np.where(length > 64, np.maximum(bits, 65) - 64, 0).astype(np.uint64)
    low = np.where(length > 64, low >> (64 - np.maximum(kept, 1)) << (64 - np.maximum(kept, 1)), 0)
    order = np.lexsort((length, low, high))
    dz = DzColumns(high[order], low[order].astype(np.uint64), length[order])
    ports = chance.choice(np.array([0b011, 0b101, 0b110], np.uint64), (count, 1))
    first = np.array([0] + [count] * len(whole.topology.switches), np.int64)
    return Tables(whole, first, dz, ports)


def template(scale: float) -> list[Row]:
    """Flow-mods of a bundle, from the columns of a diff to bytes."""
    count = max(100, int(FLOW_MODS * scale))
    of = SwitchShapes(fabric(NETWORK), AddressPlan(), "raw", SWITCH)
    change = table_changes(diff(no_tables(of.fabric), a_table(of.fabric, count)), UNSTAMPED)
    listed = list(change.added[: max(100, count // 50)])

    def fast() -> bytes:
        return flow_mods(of, told(change), 1, 7)

    def slow() -> bytes:
        entries = map(of.dialect.entry, listed)
        return b"".join(
            encode(BundleAdd(7, FlowMod(Command.ADD, one)), i) for i, one in enumerate(entries, 1)
        )

    assert fast().startswith(slow())
    rate, codec = count / best(fast), len(listed) / best(slow, 2)
    return [
        row("flow-mods written by template", rate, 1_000_000, "1/s"),
        row("… by template / by the codec", rate / codec, 50, "×"),
    ]


def part(change: Diff, rows: slice) -> Diff:
    return Diff(change.fabric, change.switch[rows], change.dz[rows], change.kind[rows], change.ports[rows])


async def sent(southbound: OpenFlowSouthbound, change: Diff, batch: int) -> float:
    """Flow-mods a second, each batch a bundle that waits for its barrier."""
    began = perf_counter()
    for begin in range(0, len(change), batch):
        assert await southbound.apply(part(change, slice(begin, begin + batch))) == frozenset()
    return len(change) / (perf_counter() - began)


def by_ofctl(open_vswitch: OpenVSwitch, flows: Path, count: int) -> float:
    open_vswitch.ofctl("del-flows", SWITCH)
    began = perf_counter()
    open_vswitch.ofctl("--bundle", "add-flows", SWITCH, str(flows))
    return count / (perf_counter() - began)


async def into(open_vswitch: OpenVSwitch, count: int) -> list[Row]:
    whole = fabric(NETWORK)
    table = a_table(whole, count)
    flows = open_vswitch.directory / "flows"
    lines = (line for line in ofctl_lines(table, AddressPlan(), "raw") if not line.startswith("#"))
    flows.write_text("".join(f"table=1,{line}\n" for line in lines))
    rates: dict[str, list[float]] = {name: [] for name in ("whole", "thousands", "ofctl", "gone", "read")}
    change = diff(no_tables(whole), table)
    gone = Diff(whole, change.switch, change.dz, np.full(count, Kind.DELETE, np.uint8), change.ports)
    async with OpenFlowSouthbound(NETWORK).listening(port=0) as southbound:
        open_vswitch.connect(NETWORK.switches, f"tcp:127.0.0.1:{southbound.port}")
        await southbound.until_connected(timeout=120)
        for _ in range(3):  # in turns, because machines are noisy
            rates["whole"].append(await sent(southbound, change, count))
            began = perf_counter()
            assert await southbound.tables() == table
            rates["read"].append(count / (perf_counter() - began))
            rates["gone"].append(await sent(southbound, gone, count))
            rates["thousands"].append(await sent(southbound, change, 1000))
            rates["ofctl"].append(await asyncio.to_thread(by_ofctl, open_vswitch, flows, count))
            await asyncio.to_thread(open_vswitch.ofctl, "del-flows", SWITCH)
    found = {name: max(several) for name, several in rates.items()}
    return [
        row(f"flow-mods into Open vSwitch, a bundle of {count:,}", found["whole"], 40_000, "1/s"),
        row("… in bundles of 1,000", found["thousands"], 40_000, "1/s"),
        row("… deleted again", found["gone"], 40_000, "1/s"),
        row("… by ovs-ofctl --bundle, in the same run", found["ofctl"], 0, "1/s"),
        row("… ours / by ovs-ofctl", found["whole"] / found["ofctl"], 1, "×"),
        row("entries read back", found["read"], 100_000, "1/s"),
    ]


def switch(scale: float) -> list[Row]:
    with open_vswitch() as made:
        made.add_bridges({name: number for number, name in enumerate(NETWORK.switches, start=1)})
        return asyncio.run(into(made, max(1000, int(FLOW_MODS * scale))))


def heard(frame: bytes) -> float:
    """Seconds of the processor for one message, alone and in a conversation."""
    channel = ready_channel()
    began = thread_time()
    survives(frame)
    channel.receive(frame or b"\0", 0.0)
    return thread_time() - began


def cost(frame: bytes) -> float:
    """The least of several: the same million messages show other outliers in every run, and none when repeated."""
    return min(heard(frame) for _ in range(7))


def fuzz(scale: float) -> list[Row]:
    """Damaged messages, each read or refused, alone and in a conversation.

    One that stalls or breaks the decoder or the channel ends the program with a trace.
    """
    chance, valid, slowest, read = random.Random(4), samples(), 0.0, 0
    count = max(1000, int(MUTATED * scale))
    survives(valid[8])  # compiles
    channel: Channel | None = None
    began = perf_counter()
    for i in range(count):
        if i % 10_000 == 0:
            faulthandler.dump_traceback_later(STUCK_SECONDS, exit=True, file=2)
        damaged = mutated(valid[i % len(valid)], chance)
        started = thread_time()
        read += survives(damaged)
        channel = channel if channel is not None and i % 10 else ready_channel()
        if any(isinstance(one, Closed) for one in channel.receive(damaged or b"\0", 0.0)):
            channel = None
        if thread_time() - started > slowest:
            slowest = max(slowest, cost(damaged))
    faulthandler.cancel_dump_traceback_later()
    return [
        row(f"damaged messages read or refused, of {count:,}", count, count, ""),
        row("… of these still read", read, 1, ""),
        row("… the costliest of them", 1000 * slowest, 20, "ms", at_most=True),
        row(
            "the costliest message that we could make",
            1000 * max(map(cost, costly())),
            50,
            "ms",
            at_most=True,
        ),
        row("damaged messages made and decoded", count / (perf_counter() - began), 1000, "1/s"),
    ]


MEASUREMENTS: dict[str, Callable[[float], list[Row]]] = {
    "flow-mod templates": template,
    "flow-mods into Open vSwitch": switch,
    "damaged messages": fuzz,
}


def main(words: list[str]) -> int:
    named = {"template": template, "switch": switch, "fuzz": fuzz}
    if words and words[0] not in named:
        print(f"there is no measurement {words[0]!r}; use one of {', '.join(named)}", file=sys.stderr)
        return 2
    scale = int(words[1]) / {"fuzz": MUTATED}.get(words[0], FLOW_MODS) if len(words) > 1 else 1.0
    rows = [found for name in words[:1] or named for found in named[name](scale)]
    for one in rows:
        print(f"{one['what']:55} {one['measured']:>14,.1f} {one['unit']:4} (must be {one['at least']})")
    return 0 if all(one["met"] for one in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
