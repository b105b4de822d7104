"""The model of updates and the real switch agree: for random entries of plans and random events, tagged or not, of any
epoch or to a group, each event leaves by the same ports, under the same address and with the same tag."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv6Address

import pytest

from plerion.flow.fabric import fabric
from plerion.flow.render import LastHop
from plerion.index.address import AddressPlan
from plerion.index.dz import MAX_LENGTH, Dz
from plerion.simnet.switch import Switch
from plerion.southbound.openflow.dialect import is_host
from plerion.southbound.openflow.driver import OpenFlowSouthbound
from plerion.topology import HostId, SwitchId, Topology, ipv6, mac, torus
from plerion.update.entries import ANY, GROUPS, UNTAGGED, Entries, Entry, Table, changes, no_entries
from tests.laws.updates import VLANS, some_entries, some_epoch
from tests.ovs.daemon import OpenVSwitch, open_vswitch

pytestmark = pytest.mark.ovs

NETWORK: Topology = torus(2, 3)
PAIRS = 64_000
ROUNDS = 16
MAC = "33:33:00:00:00:01"
TO_US = (0, "controller", UNTAGGED)

Leaving = tuple[int, str, int]  # a port, and the address and the tag of the packet that leaves by it


@dataclass(frozen=True)
class Event:
    """A packet at a port of a switch, perhaps of somebody who only says that it is the host there."""

    in_port: int
    code: Dz
    epoch: int
    vlan: int
    address: str
    source_mac: str
    source: str


@dataclass(frozen=True)
class Model:
    """What all switches were told, as `simnet` understands it."""

    switches: Mapping[SwitchId, Switch]
    plan: AddressPlan
    last_hop: LastHop

    @classmethod
    def of(cls, entries: Entries, plan: AddressPlan, last_hop: LastHop) -> Model:
        found = {switch: Switch(switch) for switch in NETWORK.switches}
        for entry in entries:
            found[entry.switch].add(entry)
        return cls(found, plan, last_hop)

    def leaving(self, switch: SwitchId, event: Event) -> frozenset[Leaving]:
        """Admission, then the best entry, then never back by the same port."""
        if is_host(NETWORK, switch, event.in_port):
            admitted = self._matched(switch, Table.EDGE, event) if self._is_own(switch, event) else None
            if admitted is None or admitted.bridge:
                return frozenset([TO_US] if admitted else [])
            event = replace(event, vlan=event.vlan if admitted.set_vlan == ANY else admitted.set_vlan)
        entry = self._matched(switch, Table.FORWARDING, event)
        if entry is None or entry.bridge:
            return frozenset([TO_US] if entry else [])
        return frozenset(self._sent(switch, port, entry, event) for port in entry.ports - {event.in_port})

    def _is_own(self, switch: SwitchId, event: Event) -> bool:
        host = host_at(switch, event.in_port)
        return (event.source_mac, event.source) == (mac(NETWORK, host), ipv6(NETWORK, host))

    def _matched(self, switch: SwitchId, table: Table, event: Event) -> Entry | None:
        found = self.switches[switch].match(table, event.in_port, event.code, event.epoch, event.vlan)
        assert len(found) <= 1
        return found[0] if found else None

    def _sent(self, switch: SwitchId, port: int, entry: Entry, event: Event) -> Leaving:
        if not is_host(NETWORK, switch, port):
            return port, event.address, event.vlan
        own = ipv6(NETWORK, host_at(switch, port))
        return port, own if self.last_hop == "rewrite" else event.address, 0 if entry.untag else event.vlan


def host_at(switch: SwitchId, port: int) -> HostId:
    peer = NETWORK.peer(switch, port)
    assert peer is not None
    return HostId(peer.node)


def a_code(chance: random.Random, near: list[Dz], room: int) -> Dz:
    """A full code, mostly at or just beside a border of some cell."""
    if not near or chance.random() < 0.1:
        return Dz(chance.getrandbits(room), room)
    cell, beside = chance.choice(near), MAX_LENGTH - room
    start, end = cell.start >> beside, cell.end >> beside
    inside = chance.choice((start, end - 1, chance.randrange(start, end)))
    return Dz((inside + chance.choice((0, 0, 0, 1, -1))) % (1 << room), room)


def an_event(chance: random.Random, model: Model, switch: SwitchId, near: list[Entry]) -> Event:
    """Often one that some entry was made for."""
    ports, wanted = NETWORK.ports(switch), chance.choice(near) if near else None
    port, epoch = chance.choice(ports), some_epoch(chance, model.plan.epoch_bits)
    vlan = chance.choice((UNTAGGED, *VLANS, 77))
    if wanted is not None and chance.random() < 0.7:
        port = port if wanted.in_port == ANY else wanted.in_port
        epoch = epoch if wanted.epoch == ANY and epoch != GROUPS else wanted.epoch
        vlan = vlan if wanted.vlan == ANY else wanted.vlan
    if epoch == ANY and model.plan.epoch_bits:
        epoch = chance.randrange(1 << model.plan.epoch_bits)
    code = a_code(chance, [one.dz for one in near], model.plan.capacity if epoch != GROUPS else MAX_LENGTH)
    plan = model.plan if epoch in (ANY, GROUPS) else replace(model.plan, epoch=epoch)
    address = plan.group(code).network_address if epoch == GROUPS else plan.address(code)
    told = host_at(switch, port) if is_host(NETWORK, switch, port) else NETWORK.hosts[0]
    liar = chance.random() < 0.1
    one, other = (chance.choice(NETWORK.hosts) if liar else told for _ in range(2))
    return Event(port, code, epoch, vlan, str(address), mac(NETWORK, one), ipv6(NETWORK, other))


def question(bridge: str, event: Event) -> tuple[str, str]:
    ends = f"dl_src={event.source_mac},dl_dst={MAC},ipv6_src={event.source},ipv6_dst={event.address}"
    tag = f"dl_vlan={event.vlan}," if event.vlan else ""
    return bridge, f"in_port={event.in_port},{tag}udp6,{ends},nw_ttl=64,udp_dst=20706"


STEP = re.compile(
    r"userspace\(.*?(?P<us>controller)\(.*?\)\)|push_vlan\(vid=(?P<vid>\d+)[^)]*\)|(?P<pop>pop_vlan)"
    r"|set\(ipv6\([^)]*?dst=(?P<to>[0-9a-f:]+)[^)]*\)\)|set\([^)]*\)\)|(?P<port>\d+)|drop"
)


def answer(text: str, event: Event, ports: Mapping[int, int]) -> frozenset[Leaving]:
    """What leaves, from the datapath's actions: numbers are outputs, all else changes what follows."""
    (actions,) = re.findall(r"^Datapath actions: (.*)$", text, re.MULTILINE)
    assert re.sub(r"[,\s]", "", STEP.sub("", actions)) == "", actions
    address, vlan, found = event.address, event.vlan, []
    for step in STEP.finditer(actions):
        if step["us"]:
            found.append(TO_US)
        elif step["port"]:
            found.append((ports[int(step["port"])], address, vlan))
        elif step["to"]:
            address = str(IPv6Address(step["to"]))
        elif step["vid"] or step["pop"]:
            vlan = int(step["vid"] or UNTAGGED)
    assert len(set(found)) == len(found), text
    return frozenset(found)


def disagreements(
    open_vswitch: OpenVSwitch, model: Model, chance: random.Random, count: int
) -> Iterator[tuple[frozenset[Leaving], str]]:
    """Asks for `count` events at each switch; gives what the model says, and how the switch differs, if it does."""
    shown = open_vswitch.control.call("dpif/show")
    ports: dict[str, dict[int, int]] = {}
    for bridge, port, number in re.findall(r"^\s+(s\d+)p(\d+) \d+/(\d+):", shown, re.MULTILINE):
        ports.setdefault(bridge, {})[int(number)] = int(port)
    for switch in NETWORK.switches:
        near = list(model.switches[switch].entries())
        events = [an_event(chance, model, switch, near) for _ in range(count)]
        asked = [question(switch, event) for event in events]
        for event, text in zip(events, open_vswitch.control.calls("ofproto/trace", asked), strict=True):
            said = model.leaving(switch, event)
            same = answer(text, event, ports[switch]) == said
            yield said, "" if same else f"{switch} {event}: the model says {sorted(said)}\n{text}"


@pytest.mark.parametrize("epoch_bits", [0, 2])
@pytest.mark.parametrize("last_hop", ["raw", "rewrite"])
def test_the_model_and_the_switch_agree_on_entries_of_plans(last_hop: LastHop, epoch_bits: int) -> None:
    plan = AddressPlan(epoch_bits=epoch_bits)

    async def scene(open_vswitch: OpenVSwitch) -> None:
        chance, whole = random.Random(f"{last_hop} {epoch_bits}"), fabric(NETWORK)
        held = no_entries(whole)
        async with OpenFlowSouthbound(NETWORK, plan, last_hop).listening(port=0) as southbound:
            await connected(open_vswitch, southbound)
            southbound.begin()
            said = dict.fromkeys(("nowhere", "to us", "tagged", "somewhere"), 0)
            for _ in range(ROUNDS):
                wanted = some_entries(chance, whole, epoch_bits, most=30)
                assert await southbound.tell(changes(held, wanted)) == frozenset()
                held, model = wanted, Model.of(wanted, plan, last_hop)
                each = PAIRS // 4 // ROUNDS // len(NETWORK.switches) + 1
                for leaving, difference in disagreements(open_vswitch, model, chance, each):
                    assert difference == ""
                    said[kind(leaving)] += 1
            assert min(said.values()) > PAIRS // 4 // 50, said

    with open_vswitch() as switch:
        asyncio.run(scene(switch))


def kind(leaving: frozenset[Leaving]) -> str:
    if not leaving:
        return "nowhere"
    if leaving == {TO_US}:
        return "to us"
    return "tagged" if any(vlan for _, _, vlan in leaving) else "somewhere"


async def connected(open_vswitch: OpenVSwitch, southbound: OpenFlowSouthbound) -> None:
    open_vswitch.add_bridges({name: number for number, name in enumerate(NETWORK.switches, start=1)})
    for name in NETWORK.switches:
        open_vswitch.add_ports(name, NETWORK.ports(name))
    open_vswitch.connect(NETWORK.switches, f"tcp:127.0.0.1:{southbound.port}")
    await southbound.until_connected()


def test_entries_that_are_not_the_switch_s_are_noticed() -> None:
    plan = AddressPlan(epoch_bits=2)

    async def scene(open_vswitch: OpenVSwitch) -> None:
        chance, whole = random.Random(3), fabric(NETWORK)
        async with OpenFlowSouthbound(NETWORK, plan).listening(port=0) as southbound:
            await connected(open_vswitch, southbound)
            told = some_entries(chance, whole, 2, most=30)
            await southbound.overwrite(told, NETWORK.switches)
            wrong = {
                "vlan": replace(told, vlan=told.vlan * 0 + 1),
                "epoch": replace(told, epoch=told.epoch * 0 + 1),
                "in_port": replace(told, in_port=told.in_port * 0 + 1),
                "priority": replace(told, priority=1000 - told.priority),
                "set_vlan": replace(told, set_vlan=told.set_vlan * 0 + 9),
                "untag": replace(told, untag=~told.untag),
                "bridge": replace(told, bridge=~told.bridge),
            }
            for what, entries in {"": told, **wrong}.items():
                model = Model.of(entries, plan, "raw")
                noticed = any(d for _, d in disagreements(open_vswitch, model, chance, 200))
                assert noticed == bool(what), what

    with open_vswitch() as switch:
        asyncio.run(scene(switch))
