"""The bytes of one switch's entries that never change: cut out of what the codec writes, once for each kind.

A flow-mod of Plerion is one of some *kinds* with an address, a mask, a priority and numbers filled in, followed by
what becomes of the event: a *piece* for each port. Both the writer (`flowmod`) and the reader (`readback`) work
from these, so neither has an idea of its own of what the codec says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from ipaddress import IPv6Network
from typing import NamedTuple

import numpy as np

from plerion.flow.fabric import Fabric
from plerion.flow.render import LastHop
from plerion.index.address import AddressPlan
from plerion.index.dz import WHOLE
from plerion.southbound.openflow.codec import encode
from plerion.southbound.openflow.dialect import TO_US, Dialect
from plerion.southbound.openflow.messages import BundleAdd, Command, FlowMod
from plerion.southbound.openflow.octets import INSTRUCTION, Octets, Pieces, Shapes
from plerion.southbound.openflow.oxm import places
from plerion.southbound.openflow.pipeline import Action, Entry, Match, PopTag
from plerion.topology.graph import SwitchId
from plerion.update.entries import Entry as Row
from plerion.update.entries import Side, Table

WRAPPING = 24  # bytes of a bundle-add in front of its flow-mod
FLOW_MOD = 48  # bytes of a flow-mod in front of its match


class Kind(NamedTuple):
    """Flow-mods that differ by no more than address, mask, priority and outputs."""

    table: int
    in_port: int
    vlan: int
    set_vlan: int
    untag: bool
    bridge: bool
    whole: bool  # the address has no mask
    deletes: bool


class _Shape(NamedTuple):
    octets: bytes
    address: int


@dataclass(frozen=True, eq=False)  # without slots: what follows is kept
class SwitchShapes:
    """All that does not change about one switch's entries."""

    fabric: Fabric
    plan: AddressPlan
    last_hop: LastHop
    switch: SwitchId
    _shapes: dict[tuple[Kind, bool], _Shape] = field(default_factory=dict)

    @cached_property
    def dialect(self) -> Dialect:
        return Dialect(self.fabric.topology, self.plan, self.last_hop)

    @cached_property
    def number(self) -> int:
        return self.fabric.switch_number[self.switch]

    def shapes(self, kinds: Sequence[Kind], bundled: bool) -> Shapes:
        """The shapes of these kinds, each of which is made once."""
        made = [self._shape(kind, bundled) for kind in kinds]
        return Shapes(
            _stacked([shape.octets for shape in made]),
            np.array([len(shape.octets) for shape in made], np.int64),
            np.array([shape.address for shape in made], np.int64),
            np.array([not kind.whole for kind in kinds], np.bool_),
            np.array([kind.untag for kind in kinds], np.bool_),
            WRAPPING if bundled else 0,
        )

    @cached_property
    def pieces(self) -> Pieces:
        ports = self.fabric.port[self.fabric.first[self.number] : self.fabric.first[self.number + 1]]
        leads = self.fabric.host[self.fabric.first[self.number] : self.fabric.first[self.number + 1]] >= 0
        numbers = [frozenset({port}) for port in ports.tolist()]
        made = [_applied(self.dialect.outputs(self.switch, port, untag=False)) for port in numbers]
        size = np.array([len(piece) - INSTRUCTION for piece in made], np.int64)
        # What sets the destination is longer than a bare output; outputs that need the old one come first.
        orders = np.argsort(size, kind="stable"), np.lexsort((size, leads))
        return Pieces(
            _stacked([piece[INSTRUCTION:] for piece in made]),
            size,
            np.array(orders),
            len(leads) - int(leads.sum()),
            ports.astype(np.int64),
            _octets(_applied((PopTag(),))[INSTRUCTION:]),
            _octets(_applied((TO_US,))),
        )

    def _shape(self, kind: Kind, bundled: bool) -> _Shape:
        found = self._shapes.get((kind, bundled))
        if found is None:
            found = self._shapes[kind, bundled] = self._made(kind, bundled)
        return found

    def _made(self, kind: Kind, bundled: bool) -> _Shape:
        """Cut out of what the codec writes of an example, whose address and priority are filled in again anyway."""
        table, in_port, vlan, set_vlan, untag, bridge, whole, deletes = kind
        row = Row(
            Table(table),
            self.switch,
            WHOLE,
            in_port,
            vlan,
            -1,
            1,
            frozenset(),
            set_vlan,
            untag,
            bridge,
            Side.BETWEEN,
        )
        example = self.dialect.entry(row)
        match = replace(example.match, ipv6_dst=IPv6Network((0, 128 if whole else 127)))
        change = FlowMod(Command.DELETE_STRICT if deletes else Command.ADD, replace(example, match=match))
        written = encode(BundleAdd(0, change) if bundled else change, 0)
        found, _ = places(written, FLOW_MOD + (WRAPPING if bundled else 0))
        return _Shape(written, found["ipv6_dst"][0])


def _applied(actions: tuple[Action, ...]) -> bytes:
    """The instruction to apply these actions."""
    bare, full = (encode(FlowMod(Command.ADD, Entry(1, 1, Match(), 0, some)), 0) for some in ((), actions))
    return full[len(bare) :]


def _stacked(several: Sequence[bytes]) -> Octets:
    """A row each, as wide as the longest."""
    octets = np.zeros((len(several), max(map(len, several), default=0)), np.uint8)
    for row, one in zip(octets, several, strict=True):
        row[: len(one)] = _octets(one)
    return octets


def _octets(given: bytes) -> Octets:
    return np.frombuffer(given, np.uint8)
