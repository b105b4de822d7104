"""Entries as an update might have them, at random: every kind of match, every kind of behaviour, any priority."""

from __future__ import annotations

from random import Random

import numpy as np

from plerion.flow.fabric import Fabric
from plerion.index.dz import MAX_LENGTH, WHOLE, Dz
from plerion.index.dzset import DzColumns
from plerion.topology import HostId
from plerion.update.entries import ANY, GROUPS, UNTAGGED, Entries, Side, Table

VLANS = (UNTAGGED, 1, 2, 4094)


def some_entries(chance: Random, fabric: Fabric, epoch_bits: int = 0, most: int = 12) -> Entries:
    """Up to so many entries a switch and table. No two of a table have one priority, so none leaves a choice open."""
    rows = []
    for x, switch in enumerate(fabric.topology.switches):
        ports = fabric.topology.ports(switch)
        hosts = [port for port in ports if _leads_to_host(fabric, x, port)]
        for table in Table:
            for priority in chance.sample(range(101, 400), chance.randint(0, most)):
                if table is Table.FORWARDING:
                    rows.append((x, *_forwarding(chance, ports, epoch_bits), priority))
                elif hosts:
                    rows.append((x, *_edge(chance, hosts, epoch_bits), priority))
    return _columns(fabric, rows)


def some_dz(chance: Random, room: int = MAX_LENGTH) -> Dz:
    """Short ones more often than long ones, and some that share their first bits with others."""
    length = min(room, chance.choice((0, 1, 2, 3, 5, 8, 40, 70, room)))
    start = chance.choice((0, (1 << length) - 1, chance.getrandbits(length) if length else 0))
    return Dz(start, length) if length else WHOLE


Row = tuple[Table, Dz, int, int, int, frozenset[int], int, bool, bool]


def _forwarding(chance: Random, ports: tuple[int, ...], epoch_bits: int) -> Row:
    out = frozenset(chance.sample(ports, chance.randint(0, len(ports))))
    vlan = chance.choice((ANY, ANY, *VLANS))
    in_port = chance.choice((ANY, ANY, *ports))
    bridge = chance.random() < 0.1
    epoch, dz = _destination(chance, epoch_bits)
    return Table.FORWARDING, dz, in_port, vlan, epoch, out, ANY, chance.random() < 0.4, bridge


def _edge(chance: Random, hosts: list[int], epoch_bits: int) -> Row:
    vlan, tag = (chance.choice((ANY, ANY, *VLANS)) for _ in range(2))
    epoch, dz = _destination(chance, epoch_bits)
    bridge = chance.random() < 0.2
    return Table.EDGE, dz, chance.choice(hosts), vlan, epoch, frozenset(), tag, False, bridge


def _destination(chance: Random, epoch_bits: int) -> tuple[int, Dz]:
    epochs = [ANY, GROUPS, *range(1 << epoch_bits)] if epoch_bits else [ANY, ANY, GROUPS]
    return chance.choice(epochs), some_dz(chance, MAX_LENGTH - epoch_bits)


def _columns(
    fabric: Fabric, rows: list[tuple[int, Table, Dz, int, int, int, frozenset[int], int, bool, bool, int]]
) -> Entries:
    columns = list(zip(*rows, strict=True)) or [()] * 11
    numbers = [np.array(columns[i], np.int64) for i in (1, 0, 3, 4, 5, 10, 7)]
    ports = np.zeros((len(rows), fabric.port_words), np.uint64)
    for row, (x, out) in enumerate(zip(columns[0], columns[6], strict=True)):
        for port in out:
            slot = fabric.topology.ports(fabric.topology.switches[x]).index(port)
            ports[row, slot // 64] |= np.uint64(1 << slot % 64)
    table, switch, in_port, vlan, epoch, priority, set_vlan = numbers
    untag, bridge = (np.array(columns[i], np.bool_) for i in (8, 9))
    side = np.full(len(rows), int(Side.BETWEEN))
    dz = DzColumns.of(columns[2])
    return Entries(
        fabric, table, switch, dz, in_port, vlan, epoch, priority, ports, set_vlan, untag, bridge, side
    )


def _leads_to_host(fabric: Fabric, x: int, port: int) -> bool:
    peer = fabric.topology.peer(fabric.topology.switches[x], port)
    return peer is not None and fabric.topology.has_host(HostId(peer.node))
