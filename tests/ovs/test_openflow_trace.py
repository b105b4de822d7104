"""The model and the real switch agree: for random tables and events, each leaves by the same ports in the same dress.

Tables and admissions reach Open vSwitch by the driver; `ofproto/trace` tells what the switch would do with a packet.
The control socket is kept open and asked ahead, which makes a trace cost some 70 µs instead of a process.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address

import pytest

from plerion.flow.admission import Admission, AdmissionChange
from plerion.flow.diff import diff
from plerion.flow.entry import FlowEntry, Tables, no_tables, tables_of
from plerion.flow.fabric import fabric
from plerion.flow.render import LastHop
from plerion.flow.walk import TableLookup
from plerion.index.address import AddressPlan
from plerion.index.dz import MAX_LENGTH, Dz
from plerion.southbound.openflow.driver import OpenFlowSouthbound
from plerion.topology import HostId, SwitchId, Topology, ipv6, mac, torus
from tests.ovs.daemon import OpenVSwitch, open_vswitch

pytestmark = pytest.mark.ovs

NETWORK: Topology = torus(2, 3)
PAIRS = 104_000
ROUNDS = 40
MAC = "33:33:00:00:00:01"

Leaving = tuple[int, str]  # a port and the address on the packet that leaves by it


@dataclass(frozen=True)
class Event:
    """A packet at a port of a switch, perhaps of somebody who only says that it is the host there."""

    in_port: int
    code: Dz
    address: str
    source_mac: str
    source: str


@dataclass(frozen=True)
class Scene:
    """What all switches were told."""

    tables: Tables
    admissions: frozenset[Admission]
    plan: AddressPlan
    last_hop: LastHop


def a_code(chance: random.Random, near: list[Dz]) -> Dz:
    """A full code, mostly at or just beside a border of some cell."""
    if not near or chance.random() < 0.1:
        return Dz(chance.getrandbits(MAX_LENGTH), MAX_LENGTH)
    cell = chance.choice(near)
    inside = chance.choice((cell.start, cell.end - 1, chance.randrange(cell.start, cell.end)))
    return Dz((inside + chance.choice((0, 0, 0, 1, -1))) % (1 << MAX_LENGTH), MAX_LENGTH)


def cells(chance: random.Random, count: int) -> list[Dz]:
    """Cells at all depths, many of them one inside the other."""
    made: list[Dz] = []
    while len(made) < count:
        base = chance.choice(made) if made and chance.random() < 0.6 else Dz(0, 0)
        more = min(chance.choice((0, 1, 1, 2, 3, 8, 40)), MAX_LENGTH - base.length)
        made.append(base.append(Dz(chance.getrandbits(more) if more else 0, more)))
    return made


def a_scene(chance: random.Random, last_hop: LastHop) -> Scene:
    plan = AddressPlan()
    tables: dict[SwitchId, list[FlowEntry]] = {}
    admissions: set[Admission] = set()
    for switch in NETWORK.switches:
        ports = NETWORK.ports(switch)
        found = {
            dz: frozenset(chance.sample(ports, chance.randint(0, len(ports))))
            for dz in cells(chance, chance.choice((1, 5, 30, 120)))
        }
        tables[switch] = [FlowEntry(dz, out) for dz, out in found.items()]
        for port in ports:
            if host_at(switch, port) is not None:
                admissions |= {Admission(switch, port, dz) for dz in cells(chance, chance.choice((0, 1, 4)))}
    return Scene(tables_of(fabric(NETWORK), tables), frozenset(admissions), plan, last_hop)


def host_at(switch: SwitchId, port: int) -> HostId | None:
    peer = NETWORK.peer(switch, port)
    return HostId(peer.node) if peer is not None and peer.node in NETWORK.hosts else None


def an_event(chance: random.Random, plan: AddressPlan, switch: SwitchId, near: list[Dz]) -> Event:
    port = chance.choice(NETWORK.ports(switch))
    told = host_at(switch, port) or NETWORK.hosts[0]
    liar = chance.random() < 0.1
    one, other = (chance.choice(NETWORK.hosts) if liar else told for _ in range(2))
    code = a_code(chance, near)
    return Event(port, code, str(plan.address(code)), mac(NETWORK, one), ipv6(NETWORK, other))


def expected(scene: Scene, switch: SwitchId, table: TableLookup, event: Event) -> frozenset[Leaving]:
    """What the model says: admission by the definition, then the longest match, then never back by the same port."""
    host = host_at(switch, event.in_port)
    if host is not None:
        own = (event.source_mac, event.source) == (mac(NETWORK, host), ipv6(NETWORK, host))
        here = [one.dz for one in scene.admissions if (one.switch, one.port) == (switch, event.in_port)]
        if not own or not any(dz.covers(event.code) for dz in here):
            return frozenset()
    entry = table.match(event.code)
    found = set()
    for port in (entry.ports if entry else frozenset()) - {event.in_port}:
        receiver = host_at(switch, port)
        rewritten = scene.last_hop == "rewrite" and receiver is not None
        found.add((port, ipv6(NETWORK, receiver) if rewritten and receiver else event.address))
    return frozenset(found)


def question(bridge: str, event: Event) -> tuple[str, str]:
    ends = f"dl_src={event.source_mac},dl_dst={MAC},ipv6_src={event.source}"
    return bridge, f"in_port={event.in_port},udp6,{ends},ipv6_dst={event.address},nw_ttl=64,udp_dst=20706"


STEP = re.compile(r"set\(ipv6\([^)]*?dst=([0-9a-f:]+)|(?<![\w:.(/=])(\d+)(?![\w:.])")


def answer(text: str, address: str, ports: Mapping[int, int]) -> frozenset[Leaving]:
    """Where the packet goes, from the datapath's actions: numbers are outputs, `set` changes what follows."""
    (actions,) = re.findall(r"^Datapath actions: (.*)$", text, re.MULTILINE)
    found: list[Leaving] = []
    for rewritten, output in STEP.findall(actions):
        if rewritten:
            address = str(IPv6Address(rewritten))
        else:
            found.append((ports[int(output)], address))
    assert len(set(found)) == len(found), text
    return frozenset(found)


class Lab:
    """The bridges of the network, connected to a driver, and how the datapath numbers their ports."""

    def __init__(self, open_vswitch: OpenVSwitch, southbound: OpenFlowSouthbound) -> None:
        self.switch, self.southbound = open_vswitch, southbound
        shown = open_vswitch.control.call("dpif/show")
        ports = re.findall(r"^\s+(s\d+)p(\d+) \d+/(\d+):", shown, re.MULTILINE)
        self.ports: dict[str, dict[int, int]] = {}
        for bridge, port, number in ports:
            self.ports.setdefault(bridge, {})[int(number)] = int(port)

    def disagreements(self, scene: Scene, chance: random.Random, count: int) -> Iterator[str]:
        """Asks for `count` events at each switch, and tells where the switch does other than the model."""
        for switch in NETWORK.switches:
            table = TableLookup(scene.tables.entries(switch))
            near = [entry.dz for entry in scene.tables.entries(switch)]
            near += [one.dz for one in scene.admissions if one.switch == switch]
            events = [an_event(chance, scene.plan, switch, near) for _ in range(count)]
            asked = [question(switch, event) for event in events]
            for event, text in zip(events, self.switch.control.calls("ofproto/trace", asked), strict=True):
                real, model = (
                    answer(text, event.address, self.ports[switch]),
                    expected(scene, switch, table, event),
                )
                if real != model:
                    yield f"{switch} {event}: the model says {sorted(model)}\n{text}"


async def connected(open_vswitch: OpenVSwitch, southbound: OpenFlowSouthbound) -> Lab:
    open_vswitch.add_bridges({switch: southbound.ids[switch] for switch in NETWORK.switches})
    for switch in NETWORK.switches:
        open_vswitch.add_ports(switch, NETWORK.ports(switch))
    open_vswitch.connect(NETWORK.switches, f"tcp:127.0.0.1:{southbound.port}")
    await southbound.until_connected()
    return Lab(open_vswitch, southbound)


@pytest.mark.parametrize("last_hop", ["raw", "rewrite"])
def test_the_model_and_the_switch_agree_on_every_pair_of_table_and_event(last_hop: LastHop) -> None:
    async def scene(open_vswitch: OpenVSwitch) -> None:
        chance, held = random.Random(f"{last_hop} 1"), no_tables(fabric(NETWORK))
        admitted: frozenset[Admission] = frozenset()
        async with OpenFlowSouthbound(NETWORK, last_hop=last_hop).listening(port=0) as southbound:
            lab = await connected(open_vswitch, southbound)
            each = PAIRS // 2 // ROUNDS // len(NETWORK.switches) + 1
            for _ in range(ROUNDS):
                told = a_scene(chance, last_hop)
                assert await southbound.apply(diff(held, told.tables)) == frozenset()
                change = AdmissionChange(told.admissions - admitted, admitted - told.admissions)
                assert await southbound.admit(change) == frozenset()
                held, admitted = told.tables, told.admissions
                assert next(lab.disagreements(told, chance, each), "") == ""

    with open_vswitch() as switch:
        asyncio.run(scene(switch))


def test_a_table_that_is_not_the_switch_s_is_noticed() -> None:
    async def scene(open_vswitch: OpenVSwitch) -> None:
        chance = random.Random(2)
        told, other = a_scene(chance, "raw"), a_scene(chance, "raw")
        async with OpenFlowSouthbound(NETWORK).listening(port=0) as southbound:
            lab = await connected(open_vswitch, southbound)
            await southbound.apply(diff(no_tables(fabric(NETWORK)), told.tables))
            await southbound.admit(AdmissionChange(told.admissions))
            assert list(lab.disagreements(told, chance, 50)) == []
            for wrong in (
                Scene(other.tables, told.admissions, told.plan, "raw"),
                Scene(told.tables, other.admissions, told.plan, "raw"),
                Scene(told.tables, told.admissions, told.plan, "rewrite"),
            ):
                assert list(lab.disagreements(wrong, chance, 50)) != []

    with open_vswitch() as switch:
        asyncio.run(scene(switch))
