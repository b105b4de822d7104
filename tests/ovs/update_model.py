"""What should become of an event on one switch that holds entries of a plan, and events that put it to the test.

The switch is that of `simnet`; here it gets ports, hosts with addresses of their own, and packets instead of codes.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

from plerion.flow.render import LastHop
from plerion.index.address import AddressPlan
from plerion.index.dz import MAX_LENGTH, Dz
from plerion.simnet.switch import Switch
from plerion.southbound.openflow.dialect import is_host
from plerion.topology import HostId, SwitchId, Topology, ipv6, mac
from plerion.update.entries import ANY, GROUPS, UNTAGGED, Entries, Entry, Table
from tests.laws.updates import VLANS, some_epoch

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

    topology: Topology
    switches: Mapping[SwitchId, Switch]
    plan: AddressPlan
    last_hop: LastHop

    @classmethod
    def of(cls, entries: Entries, plan: AddressPlan, last_hop: LastHop) -> Model:
        topology = entries.fabric.topology
        found = {switch: Switch(switch) for switch in topology.switches}
        for entry in entries:
            found[entry.switch].add(entry)
        return cls(topology, found, plan, last_hop)

    def leaving(self, switch: SwitchId, event: Event) -> frozenset[Leaving]:
        """Admission, then the best entry, then never back by the same port."""
        if is_host(self.topology, switch, event.in_port):
            admitted = self._matched(switch, Table.EDGE, event) if self._is_own(switch, event) else None
            if admitted is None or admitted.bridge:
                return frozenset([TO_US] if admitted else [])
            event = replace(event, vlan=event.vlan if admitted.set_vlan == ANY else admitted.set_vlan)
        entry = self._matched(switch, Table.FORWARDING, event)
        if entry is None or entry.bridge:
            return frozenset([TO_US] if entry else [])
        return frozenset(self._sent(switch, port, entry, event) for port in entry.ports - {event.in_port})

    def _is_own(self, switch: SwitchId, event: Event) -> bool:
        host = host_at(self.topology, switch, event.in_port)
        return (event.source_mac, event.source) == (mac(self.topology, host), ipv6(self.topology, host))

    def _matched(self, switch: SwitchId, table: Table, event: Event) -> Entry | None:
        found = self.switches[switch].match(table, event.in_port, event.code, event.epoch, event.vlan)
        assert len(found) <= 1
        return found[0] if found else None

    def _sent(self, switch: SwitchId, port: int, entry: Entry, event: Event) -> Leaving:
        if not is_host(self.topology, switch, port):
            return port, event.address, event.vlan
        own = ipv6(self.topology, host_at(self.topology, switch, port))
        return port, own if self.last_hop == "rewrite" else event.address, 0 if entry.untag else event.vlan


def host_at(topology: Topology, switch: SwitchId, port: int) -> HostId:
    peer = topology.peer(switch, port)
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
    network = model.topology
    ports, wanted = network.ports(switch), chance.choice(near) if near else None
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
    told = host_at(network, switch, port) if is_host(network, switch, port) else network.hosts[0]
    liar = chance.random() < 0.1
    one, other = (chance.choice(network.hosts) if liar else told for _ in range(2))
    return Event(port, code, epoch, vlan, str(address), mac(network, one), ipv6(network, other))
