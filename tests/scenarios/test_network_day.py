"""Interests come and go, links and switches fail and return: at every step nothing is lost, doubled or looping."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from plerion.controller.inputs import LinkDown, LinkUp, SwitchDown, SwitchUp, Unadvertise, Unsubscribe
from plerion.flow.entry import no_tables
from plerion.topology import Topology, from_name, read_topology
from tests.laws.networks import unwritten, written
from tests.scenarios.network_day import NetworkDay

TOPOLOGIES = Path(__file__).resolve().parents[3] / "shared" / "data" / "topologies"
NETWORKS = (
    "fat-tree:4x2",
    "ring:20",
    "torus:3x4",
    "zoo_Abilene.graphml",
    "zoo_Geant2009.graphml",
    "zoo_Oteglobe.graphml",
    "zoo_Cogentco.graphml",
    "zoo_TataNld.graphml",
    "sndlib_germany50.json",
    "sndlib_brain.json",
    "backbone_south_america.json",
)


def network(name: str) -> Topology:
    return from_name(name) if ":" in name else read_topology(TOPOLOGIES / name).topology


async def build_up(day: NetworkDay, publishers: int, subscribers: int) -> None:
    """Half of the subscriptions wait for their publishers, the other half come later."""
    for i in range(subscribers):
        await day.subscribe(f"q{i}")
        if i % 3 == 0 and i // 3 < publishers:
            await day.advertise(f"a{i // 3}")


async def fail_and_return(day: NetworkDay, links: int, switches: int) -> None:
    """Failures pile up, cutting parts off, and are mended in another order."""
    every = day.state.settings.topology.links
    chosen = [every[int(i)] for i in day.random.choice(len(every), links, replace=False)]
    down = sorted({day.some_switch() for _ in range(switches)})
    for link in chosen:
        await day.take(LinkDown(str(link.ends[0])))
    for switch in down:
        await day.take(SwitchDown(switch))
    for link in chosen:
        await day.take(LinkUp(str(link.ends[1])))
    for switch in down:
        await day.take(SwitchUp(switch))


async def take_down(day: NetworkDay) -> None:
    for i, name in enumerate(list(day.state.subscriptions)):
        await day.take(Unsubscribe(name))
        if i % 3 == 0 and day.state.advertisements:
            await day.take(Unadvertise(next(iter(day.state.advertisements))))
    for name in list(day.state.advertisements):
        await day.take(Unadvertise(name))


async def whole_day(day: NetworkDay, links: int = 4, switches: int = 2) -> None:
    await build_up(day, publishers=4, subscribers=16)
    before = await day.switches.tables()
    await fail_and_return(day, links, switches)
    assert await day.switches.tables() == before, "what came back is what was there"
    await take_down(day)
    assert await day.switches.tables() == no_tables(day.state.fabric)
    assert day.deliveries > 0


@pytest.mark.parametrize("name", NETWORKS)
def test_a_day_on_a_network_without_limits(name: str) -> None:
    async def scene() -> None:
        day = await NetworkDay.start(network(name), seed=len(name))
        await whole_day(day)
        assert day.unwanted == 0, "without limits tables are exact"

    asyncio.run(scene())


@pytest.mark.parametrize("name", NETWORKS[:4])
@pytest.mark.parametrize("tcam", [1, 3])
def test_a_day_with_small_tables_and_few_trees(name: str, tcam: int) -> None:
    async def scene() -> None:
        day = await NetworkDay.start(network(name), seed=tcam, trees=2, tcam=tcam)
        await whole_day(day)
        assert day.unwanted > 0, "coarser cells cost something"

    asyncio.run(scene())


def test_a_day_on_754_switches() -> None:
    async def scene() -> None:
        day = await NetworkDay.start(network("zoo_Kdl.graphml"), seed=7, budget=4)
        await build_up(day, publishers=2, subscribers=5)
        before = await day.switches.tables()
        await fail_and_return(day, links=2, switches=1)
        assert await day.switches.tables() == before
        assert day.deliveries > 0

    asyncio.run(scene())


def test_a_network_in_seven_parts_delivers_inside_each() -> None:
    async def scene() -> None:
        topology = network("zoo_Oteglobe.graphml")
        assert len(topology.components()) == 7
        day = await NetworkDay.start(topology, seed=1)
        for part, switches in enumerate(topology.components()[:4]):
            hosts = [h for h in topology.hosts if topology.attachment(h).node in switches][:2]
            await day.advertise(f"a{part}", hosts[0])
            await day.subscribe(f"q{part}", hosts[-1])
        proof = day.proof(await day.switches.tables())
        assert proof.unwanted == 0
        assert proof.deliveries > 0

    asyncio.run(scene())


def test_a_switch_that_forgot_an_entry_would_be_noticed() -> None:
    async def scene() -> None:
        day = await NetworkDay.start(network("fat-tree:4x2"), seed=3)
        await build_up(day, publishers=3, subscribers=9)
        tables = await day.switches.tables()
        noticed = []
        for switch, entries in written(tables).items():
            for dz in entries:
                wrong = written(tables)
                del wrong[switch][dz]
                broken = unwritten(tables.fabric, wrong)
                noticed.append((bool(day.proof(broken)), int(day.send(broken).lost.sum()) > 0))
        assert not any(proven for proven, _ in noticed), "the proof sees every missing entry"
        assert sum(lost for _, lost in noticed) > len(noticed) / 2, "random events see most"

    asyncio.run(scene())
