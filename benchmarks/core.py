"""The claims of the core, measured: a row each, with the bound that it must reach.

Ratios compare measurements of one run, because machines are noisy. Kernels are compiled before the clock starts.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TypedDict

import numpy as np

from benchmarks.workload import Workload, schema, zipf
from plerion.controller.inputs import Advertise, Boxes, Input, Subscribe, Unsubscribe
from plerion.controller.state import Settings, State, initial
from plerion.controller.step import step
from plerion.flow.verify import verify
from plerion.index.cover import Covers, covers
from plerion.index.dzset import EVERYTHING
from plerion.index.encode import encode
from plerion.index.propose import regular
from plerion.simnet.bulk import BulkNetwork
from plerion.topology.generate import fat_tree
from plerion.topology.graph import HostId

ROOT = Path(__file__).parents[1]
BUDGET, BITS = 8, 96
MEASURED = 3_000  # subscriptions timed at each size
REPEATS = 5


Row = TypedDict("Row", {"what": str, "measured": float, "at least": str, "unit": str, "met": bool})


def row(what: str, measured: float, bound: float, unit: str, at_most: bool = False) -> Row:
    met = measured <= bound if at_most else measured >= bound
    limit = f"at most {bound:,.4g}" if at_most else f"{bound:,.0f}"
    return {"what": what, "measured": float(measured), "at least": limit, "unit": unit, "met": bool(met)}


def settings() -> Settings:
    return Settings(fat_tree(4, 2), regular(schema(), BITS), BUDGET)


def as_boxes(box: np.ndarray) -> Boxes:
    return (tuple((low, high) for low, high in box.tolist()),)


def subscription(load: Workload, i: int) -> Subscribe:
    return Subscribe(f"s{i}", f"h{load.hotspot[i] + 1}", as_boxes(load.boxes[i]))


def as_text(load: Workload, i: int) -> Subscribe:
    terms = (f"a{a} BETWEEN {low:.0f} AND {high - 1:.0f}" for a, (low, high) in enumerate(load.boxes[i]))
    return Subscribe(f"s{i}", f"h{load.hotspot[i] + 1}", " AND ".join(terms))


def deployed(load: Workload, count: int) -> State:
    """Every host publishes everything; this many subscriptions are in."""
    state = initial(settings())
    for host in state.settings.topology.hosts:
        state, _ = step(state, Advertise(f"a-{host}", host, "TRUE"))
    for i in range(count):
        state, _ = step(state, subscription(load, i))
    return state


def seconds_each(state: State, inputs: list[Input]) -> float:
    gc.collect()
    began = perf_counter()
    for received in inputs:
        state, _ = step(state, received)
    return (perf_counter() - began) / len(inputs)


def best(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """The least time of several: noise only ever adds."""
    times = []
    for _ in range(repeats):
        began = perf_counter()
        work()
        times.append(perf_counter() - began)
    return min(times)


def subscriptions(scale: float) -> list[Row]:
    """New subscriptions to computed table changes, at three sizes in turns, and their withdrawal."""
    measured = max(20, int(MEASURED * scale))
    sizes = {
        name: max(50, int(size * scale))
        for name, size in (("few", 1_000), ("25k", 25_000), ("many", 100_000))
    }
    load = zipf(max(sizes.values()) + measured, 0, seed=1)
    states = {name: deployed(load, size) for name, size in sizes.items()}
    times: dict[str, list[float]] = {name: [] for name in (*sizes, "gone", "text")}
    for _ in range(REPEATS):
        for name, size in sizes.items():
            fresh = range(size, size + measured)
            times[name].append(seconds_each(states[name], [subscription(load, i) for i in fresh]))
            gone = seconds_each(states[name], [Unsubscribe(f"s{i}") for i in fresh])
            if name == "25k":
                times["gone"].append(gone)
                times["text"].append(seconds_each(states[name], [as_text(load, i) for i in fresh]))
                seconds_each(states[name], [Unsubscribe(f"s{i}") for i in fresh])
    least = {name: min(found) for name, found in times.items()}
    return [
        row("subscriptions, 25,000 deployed", 1 / least["25k"], 5_000, "1/s"),
        row("… from filter text", 1 / least["text"], 54, "1/s"),
        row("… cost at 100,000 deployed / at 1,000", least["many"] / least["few"], 1.5, "×", at_most=True),
        row("unsubscription / subscription cost", least["gone"] / least["25k"], 2, "×", at_most=True),
    ]


def encoding(scale: float) -> list[Row]:
    points = zipf(1, max(1000, int(1_000_000 * scale)), seed=2).events
    index = regular(schema(), BITS)
    encode(index, points[:10])
    return [
        row(
            "events encoded, 8 attributes, 96 bits, one core",
            len(points) / best(lambda: encode(index, points)),
            20e6,
            "1/s",
        )
    ]


def covering(scale: float) -> list[Row]:
    load = zipf(max(100, int(25_000 * scale)), 0, seed=3)
    index, offsets = regular(schema(), BITS), np.arange(len(load.boxes) + 1)
    covers(index, offsets[:3], load.boxes[:2], BUDGET)
    took = best(lambda: covers(index, offsets, load.boxes, BUDGET))
    return [row("covers, budget 8, 8 attributes", len(load.boxes) / took, 20e3, "1/s")]


def forwarding(scale: float) -> list[Row]:
    load = zipf(max(100, int(25_000 * scale)), max(1000, int(2_000_000 * scale)), seed=4)
    state = deployed(load, len(load.boxes))
    network = BulkNetwork(state.table.tables())
    codes = encode(state.settings.index, load.events).dz
    publishers = np.random.default_rng(5).integers(0, 8, len(codes))
    network.forward(codes[:10], publishers[:10])
    took = best(lambda: network.forward(codes, publishers))
    return [row("events forwarded in bulk, 25,000 deployed", len(codes) / took, 2e6, "1/s")]


def proof(scale: float) -> list[Row]:
    """In a process of its own: what 100,000 subscriptions take in memory, and what proving them takes."""
    program = (
        f"from benchmarks.core import deploy_and_prove; deploy_and_prove({max(100, int(100_000 * scale))})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=ROOT
    )
    mebibytes, proving = map(float, done.stdout.split())
    return [
        row("memory, 100,000 deployed", mebibytes, 2048, "MiB", at_most=True),
        row("verify, 100,000 deployed", proving, 60, "s", at_most=True),
    ]


def deploy_and_prove(count: int) -> None:
    import resource  # noqa: PLC0415 - only here

    load = zipf(count, 0, seed=6)
    state = deployed(load, count)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    began = perf_counter()
    enclosing = Covers.of(list(state.covers.values()))
    hosts = [HostId(subscribed.host) for subscribed in state.subscriptions.values()]
    sent = dict.fromkeys(state.settings.topology.hosts, EVERYTHING)
    assert verify(state.table.tables(), enclosing, hosts, sent), "the proof must succeed"
    print(peak, perf_counter() - began)


MEASUREMENTS: dict[str, Callable[[float], list[Row]]] = {
    "subscriptions": subscriptions,
    "encoding": encoding,
    "covers": covering,
    "forwarding": forwarding,
    "memory and proof": proof,
}
