"""The bytes of one switch's entries that never change: cut out of what the codec writes, once for each switch.

A flow-mod of Plerion is one of few shapes with an address, a mask, a priority and numbers filled in, followed by
what becomes of the event: a *piece* for each port. Both the writer (`flowmod`) and the reader (`readback`) work
from these, so neither has an idea of its own of what the codec says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from ipaddress import IPv6Network

import numpy as np

from plerion.flow.admission import Admission
from plerion.flow.entry import FlowEntry
from plerion.flow.fabric import Fabric
from plerion.flow.render import LastHop
from plerion.index.address import AddressPlan
from plerion.index.dz import WHOLE
from plerion.southbound.openflow.codec import encode
from plerion.southbound.openflow.messages import BundleAdd, Command, FlowMod
from plerion.southbound.openflow.octets import ADDRESS_BITS, INSTRUCTION, Addressing, Pieces, Shapes
from plerion.southbound.openflow.oxm import places
from plerion.southbound.openflow.pipeline import RULE, Entry, admission_entry, forwarding_entry, network
from plerion.topology.graph import SwitchId

WRAPPING = 24  # bytes of a bundle-add in front of its flow-mod
FLOW_MOD = 48  # bytes of a flow-mod in front of its match


def addressing(plan: AddressPlan) -> Addressing:
    whole, rule = network(plan, WHOLE), RULE["events"]
    head, cookie = np.uint64(int(whole.network_address) >> 64), np.uint64(rule.purpose.cookie)
    return Addressing(head, whole.prefixlen, cookie, rule.table, rule.priority)


def shapes(entries: Sequence[Entry], bundled: bool) -> Shapes:
    """The shapes of entries of these kinds, each given by an example with any address."""
    made: list[tuple[bytes, int]] = []
    for example in entries:
        for command in (Command.ADD, Command.DELETE_STRICT):
            for length in (ADDRESS_BITS - 1, ADDRESS_BITS):
                match = replace(example.match, ipv6_dst=IPv6Network((0, length)))
                made.append(_shape(FlowMod(command, replace(example, match=match)), bundled))
    octets = np.zeros((len(made), max((len(shape) for shape, _ in made), default=0)), np.uint8)
    for row, (shape, _) in enumerate(made):
        octets[row, : len(shape)] = np.frombuffer(shape, np.uint8)
    return Shapes(
        octets,
        np.array([len(shape) for shape, _ in made], np.int64),
        np.array([address for _, address in made], np.int64),
        WRAPPING if bundled else 0,
    )


def _shape(change: FlowMod, bundled: bool) -> tuple[bytes, int]:
    written = encode(BundleAdd(0, change) if bundled else change, 0)
    found, _ = places(written, FLOW_MOD + (WRAPPING if bundled else 0))
    return written, found["ipv6_dst"][0]


@dataclass(frozen=True, eq=False)  # without slots: what follows is kept
class SwitchShapes:
    """All that does not change about one switch's forwarding entries."""

    fabric: Fabric
    plan: AddressPlan
    last_hop: LastHop
    switch: SwitchId

    @cached_property
    def addressing(self) -> Addressing:
        return addressing(self.plan)

    def entry(self, ports: frozenset[int]) -> Entry:
        topology = self.fabric.topology
        return forwarding_entry(topology, self.plan, self.last_hop, self.switch, FlowEntry(WHOLE, ports))

    @cached_property
    def bundled(self) -> Shapes:
        return shapes([self.entry(frozenset())], bundled=True)

    @cached_property
    def plain(self) -> Shapes:
        return shapes([self.entry(frozenset())], bundled=False)

    @cached_property
    def host_ports(self) -> tuple[int, ...]:
        topology = self.fabric.topology
        return tuple(p.number for p in map(topology.attachment, topology.hosts) if p.node == self.switch)

    @cached_property
    def admissions(self) -> Shapes:
        """In bundles; a kind for each host's port, in the order of `host_ports`."""
        examples = [Admission(self.switch, port, WHOLE) for port in self.host_ports]
        return shapes([admission_entry(self.fabric.topology, self.plan, one) for one in examples], True)

    @cached_property
    def pieces(self) -> Pieces:
        x = self.fabric.switch_number[self.switch]
        ports = self.fabric.port[self.fabric.first[x] : self.fabric.first[x + 1]]
        made = [self._piece(port) for port in ports.tolist()]
        octets = np.zeros((len(made), max(map(len, made), default=0)), np.uint8)
        for slot, piece in enumerate(made):
            octets[slot, : len(piece)] = np.frombuffer(piece, np.uint8)
        size = np.array([len(piece) for piece in made], np.int64)
        # What sets the destination is longer than a bare output; outputs that need the old one come first.
        return Pieces(octets, size, np.argsort(size, kind="stable"), ports.astype(np.int64))

    def _piece(self, port: int) -> bytes:
        """The actions of an entry with this port alone."""
        written = encode(FlowMod(Command.ADD, self.entry(frozenset({port}))), 0)
        return written[int(self.plain.size[0]) + INSTRUCTION :]
