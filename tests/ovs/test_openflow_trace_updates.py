"""The model of updates and the real switch agree: for random entries of plans and random events, tagged or not, of any
epoch or to a group, each event leaves by the same ports, under the same address and with the same tag."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from ipaddress import IPv6Address

import pytest

from plerion.flow.fabric import fabric
from plerion.flow.render import LastHop
from plerion.index.address import AddressPlan
from plerion.southbound.openflow.driver import OpenFlowSouthbound
from plerion.topology import Topology, torus
from plerion.update.entries import UNTAGGED, changes, no_entries
from tests.laws.updates import some_entries
from tests.ovs.daemon import OpenVSwitch, open_vswitch
from tests.ovs.update_model import TO_US, Event, Leaving, Model, an_event

pytestmark = pytest.mark.ovs

NETWORK: Topology = torus(2, 3)
PAIRS = 64_000
ROUNDS = 16
MAC = "33:33:00:00:00:01"


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
