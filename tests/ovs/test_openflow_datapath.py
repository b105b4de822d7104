"""What really leaves a switch while entries of plans come and go: real packets through its cache, byte by byte.

`ofproto/trace` knows no cache. Here the same events are sent again after every round, so that most of them meet what
the switch kept of earlier tables, and every port writes down what leaves by it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from ipaddress import IPv6Address
from itertools import count
from pathlib import Path
from struct import pack, unpack_from

import pytest

from plerion.flow.admission import EVENT_PORT
from plerion.flow.entry import FlowEntry, tables_of
from plerion.flow.fabric import fabric
from plerion.flow.render import LastHop
from plerion.index.address import AddressPlan
from plerion.index.dz import Dz
from plerion.simnet.trial import planned
from plerion.southbound.openflow.dialect import is_host
from plerion.southbound.openflow.driver import OpenFlowSouthbound
from plerion.southbound.openflow.events import PacketArrived
from plerion.topology import SwitchId, Topology, ipv6, mac, torus
from plerion.update.entries import Entries, Side, applied, changes, joined, no_entries
from plerion.update.plan import Plan
from plerion.update.state import NotApplicable, Stamp, forwarding
from plerion.update.strategies import MOVES, STRATEGIES
from plerion.wire.frame import UdpFrame, build, mac_bytes
from tests.laws.updates import some_entries
from tests.ovs.daemon import OpenVSwitch, open_vswitch
from tests.ovs.update_model import TO_US, Event, Leaving, Model, an_event

pytestmark = pytest.mark.ovs

PATIENCE_SECONDS = 20.0
AT_A_TIME = 60  # packets that wait at a port; the dummy datapath has room for 100
MAC = bytes.fromhex("333300000001")
PLAN = AddressPlan(epoch_bits=1)

Sent = tuple[SwitchId, Event]


def frame(event: Event, number: int) -> bytes:
    """The event as a packet that carries a number, and a tag if it has one."""
    whole = build(
        UdpFrame(
            mac_bytes(event.source_mac), MAC, IPv6Address(event.source), IPv6Address(event.address), 5000, EVENT_PORT,
            pack("!I", number),
        )
    )  # fmt: skip
    tag = pack("!HH", 0x8100, event.vlan) if event.vlan else b""
    return whole[:12] + tag + whole[12:]


def read(packet: bytes) -> tuple[int, str, int]:
    """The number of a packet, and its address and tag."""
    kind, vlan = unpack_from("!HH", packet, 12)
    tag, rest = (vlan & 0xFFF, packet[18:]) if kind == 0x8100 else (0, packet[14:])
    return int.from_bytes(rest[48:52], "big"), str(IPv6Address(rest[24:40])), tag


class Bench:
    """The switches of a network, whose ports write down what leaves by them."""

    def __init__(self, open_vswitch: OpenVSwitch, southbound: OpenFlowSouthbound) -> None:
        self.open_vswitch, self.southbound = open_vswitch, southbound
        self.topology = southbound.fabric.topology
        self._numbers = count(1)
        self._written: dict[tuple[SwitchId, int], tuple[Path, int]] = {}
        self._bridged: list[int] = []
        self._events = southbound.events()

    async def start(self) -> None:
        self.open_vswitch.add_bridges(self.southbound.ids)  # type: ignore[arg-type]  # a SwitchId is a str
        words: list[str] = []
        for switch in self.topology.switches:
            self.open_vswitch.add_ports(switch, self.topology.ports(switch))
            for port in self.topology.ports(switch):
                file = self.open_vswitch.directory / f"{switch}p{port}.pcap"
                self._written[switch, port] = file, 24
                words += ["--", "set", "interface", f"{switch}p{port}", f"options:tx_pcap={file}"]
        self.open_vswitch.vsctl(*words)
        self.open_vswitch.connect(self.topology.switches, f"tcp:127.0.0.1:{self.southbound.port}")
        await self.southbound.until_connected()

    async def listen(self) -> None:
        """Takes down what is bridged, for ever."""
        async for event in self.southbound.bridged():
            self._bridged.append(read(event.payload)[0])

    async def became(self, model: Model, events: list[Sent]) -> Iterator[tuple[Sent, frozenset[Leaving]]]:
        """Sends all events; each with what came of it when nothing is under way any more."""
        numbered = dict(zip(self._numbers, events, strict=False))
        for begin in range(0, len(events), AT_A_TIME):
            part = list(numbered.items())[begin : begin + AT_A_TIME]
            asked = [(f"{s}p{e.in_port}", frame(e, number).hex()) for number, (s, e) in part]
            self.open_vswitch.control.calls("netdev-dummy/receive", asked)
            for place in {(switch, event.in_port) for _, (switch, event) in part}:
                await self._passed(*place)
        to_us = sum(TO_US in model.leaving(*sent) for sent in events)
        await self._until(lambda: len(self._bridged) >= to_us)
        found: dict[int, list[Leaving]] = {number: [] for number in numbered}
        for number in self._bridged:
            found[number].append(TO_US)
        self._bridged.clear()
        for (_, port), packet in self.left():
            number, address, vlan = read(packet)
            found[number].append((port, address, vlan))
        assert all(len(set(came)) == len(came) for came in found.values()), "something was sent twice"
        return iter([(numbered[number], frozenset(came)) for number, came in found.items()])

    async def _passed(self, switch: SwitchId, port: int) -> None:
        """Waits until all that came in by the port has left: then what comes in after it is handed to us."""
        marker = bytes.fromhex("0180c200000e0200000000ff88cc") + next(self._numbers).to_bytes(46, "big")
        self.open_vswitch.control.call("netdev-dummy/receive", f"{switch}p{port}", marker.hex())
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for event in self._events:
                if event == PacketArrived(switch, port, marker):
                    return

    async def _until(self, holds: Callable[[], bool]) -> None:
        give_up = time.monotonic() + PATIENCE_SECONDS
        while not holds() and time.monotonic() < give_up:
            await asyncio.sleep(0.002)

    def left(self) -> Iterator[tuple[tuple[SwitchId, int], bytes]]:
        """What was written down since the last time."""
        for place, (file, at) in self._written.items():
            octets, here = file.read_bytes(), at
            while here < len(octets):
                _, _, size, _ = unpack_from("=IIII", octets, here)
                yield place, octets[here + 16 : here + 16 + size]
                here += 16 + size
            self._written[place] = file, here


@asynccontextmanager
async def bench(topology: Topology, last_hop: LastHop = "raw") -> AsyncIterator[Bench]:
    with open_vswitch() as switches:
        async with OpenFlowSouthbound(topology, PLAN, last_hop).listening(port=0) as southbound:
            made = Bench(switches, southbound)
            await made.start()
            southbound.begin()
            listening = asyncio.create_task(made.listen())
            try:
                yield made
            finally:
                listening.cancel()


def some_events(chance: random.Random, entries: Entries, each: int) -> list[Sent]:
    """Events for every switch, made for entries that it may have."""
    model = Model.of(entries, PLAN, "raw")
    return [
        (switch, an_event(chance, model, switch, list(model.switches[switch].entries())))
        for switch in model.topology.switches
        for _ in range(each)
    ]


async def check(made: Bench, entries: Entries, last_hop: LastHop, events: list[Sent], what: str) -> int:
    """Every event leaves as the model says; how many left at all."""
    model = Model.of(entries, PLAN, last_hop)
    left = 0
    for sent, came in await made.became(model, events):
        assert came == model.leaving(*sent), (what, sent)
        left += bool(came)
    return left


@pytest.mark.parametrize("last_hop", ["raw", "rewrite"])
def test_events_leave_as_the_model_says_whatever_entries_come_and_go(last_hop: LastHop) -> None:
    async def scene() -> None:
        chance, whole, left = random.Random(5), fabric(torus(2, 3)), 0
        states = [some_entries(chance, whole, 1, most=20) for _ in range(4)]
        events = some_events(chance, joined(states), 40)
        async with bench(whole.topology, last_hop) as made:
            held = no_entries(whole)
            for number in range(24):
                wanted = chance.choice(states)
                await made.southbound.tell(changes(held, wanted))
                left += await check(made, wanted, last_hop, events, f"round {number}")
                held = wanted
        assert left > len(events)

    asyncio.run(scene())


def test_what_a_change_alters_is_altered_for_every_event_when_it_is_in_force() -> None:
    """All that the switch keeps is deleted at once; while it does that it passes over some of it, unless nudged."""
    whole, cells = fabric(torus(2, 3)), [Dz(number, 8) for number in range(100)]
    codes = [cell.append(Dz(0, PLAN.capacity - 8)) for cell in cells]
    source = mac(whole.topology, whole.topology.hosts[0]), "fd00::1"
    switch, in_port = whole.topology.switches[0], 1
    events = [(switch, Event(in_port, code, 0, 0, str(PLAN.address(code)), *source)) for code in codes]

    def entries(port: int, more: list[Dz]) -> Entries:
        table = [FlowEntry(cell, frozenset({port})) for cell in (*cells, *more)]
        return forwarding(tables_of(whole, {switch: table}), Side.BETWEEN, Stamp(epoch=0))

    async def scene() -> None:
        held = no_entries(whole)
        async with bench(whole.topology) as made:
            for number in range(40):
                wanted = entries(2 + number % 2, [Dz(0xFF00 + number, 16)])
                await made.southbound.tell(changes(held, wanted))
                assert await check(made, wanted, "raw", events, f"round {number}") == len(events)
                held = wanted

    asyncio.run(scene())


@pytest.mark.parametrize("strategy", [*STRATEGIES, *MOVES])
def test_events_leave_as_the_model_says_after_every_round_of_a_plan(strategy: str) -> None:
    async def scene(plan: Plan) -> None:
        chance = random.Random(6)
        every = joined([plan.before(), plan.after(), *(one.changes.added for one in plan.rounds)])
        events = some_events(chance, every, 30)
        async with bench(plan.old.tables.fabric.topology) as made:
            model = plan.before()
            await made.southbound.overwrite(model, made.topology.switches)
            await check(made, model, "raw", events, "before")
            for one in plan.rounds:
                await made.southbound.tell(one.changes)
                model = applied(one.changes, model)
                await check(made, model, "raw", events, one.name)

    asyncio.run(scene(a_plan(strategy)))


def a_plan(strategy: str) -> Plan:
    for seed in range(100):
        try:
            plan = planned(seed, strategy)[2]
        except NotApplicable:
            continue
        if len(plan.old.tables) > 20 and len(plan.old.tables.fabric.topology.switches) > 3:
            return plan
    raise AssertionError(f"{strategy} never applies")


@pytest.mark.parametrize(("last_hop", "vlan"), [("raw", 0), ("raw", 7), ("rewrite", 0), ("rewrite", 7)])
def test_what_is_handed_on_leaves_as_the_switch_itself_would_send_it(last_hop: LastHop, vlan: int) -> None:
    async def scene() -> None:
        network = torus(2, 3)
        place = network.attachment(network.hosts[0])
        switch, host = SwitchId(place.node), network.hosts[0]
        onward = next(port for port in network.ports(switch) if not is_host(network, switch, port))
        code = Dz(5, PLAN.capacity)
        event = Event(onward, code, 0, vlan, str(PLAN.address(code)), mac(network, host), ipv6(network, host))
        async with bench(network, last_hop) as made:
            await made.southbound.hand_on(switch, frozenset({onward, place.number}), frame(event, 9))
            await made.southbound.entries()  # answered when all before it is done
            left = {port: read(packet) for (_, port), packet in made.left()}
        own = ipv6(network, host) if last_hop == "rewrite" else event.address
        assert left == {onward: (9, event.address, vlan), place.number: (9, own, 0)}

    asyncio.run(scene())
