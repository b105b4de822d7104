"""Entries as an update might have them, at random: every kind of match, every kind of behaviour, any priority."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from plerion.flow.fabric import Fabric
from plerion.index.dz import MAX_LENGTH, Dz
from plerion.southbound.openflow.dialect import is_host
from plerion.topology import SwitchId
from plerion.update.entries import ANY, GROUPS, UNTAGGED, Entries, Entry, Side, Table, listed

VLANS = (UNTAGGED, 1, 2, 4094)


def some_entries(chance: Random, fabric: Fabric, epoch_bits: int = 0, most: int = 12) -> Entries:
    """Up to so many entries a switch and table. No two of a table have one priority, so none leaves a choice open."""
    found: list[Entry] = []
    for switch in fabric.topology.switches:
        for table in Table:
            priorities = chance.sample(range(101, 101 + 20 * most), chance.randint(0, most))
            found += _of_table(chance, fabric, switch, table, priorities, epoch_bits)
    return listed(fabric, found)


def some_dz(chance: Random, room: int = MAX_LENGTH) -> Dz:
    """Short ones more often than long ones, and many that begin alike."""
    length = min(room, chance.choice((0, 1, 2, 3, 5, 8, 40, 70, room)))
    bits = chance.choice((0, (1 << length) - 1, chance.getrandbits(length) if length else 0))
    return Dz(bits, length)


def some_epoch(chance: Random, epoch_bits: int) -> int:
    found: int = chance.choice((ANY, GROUPS, *(range(1 << epoch_bits) if epoch_bits else (ANY,))))
    return found


def _of_table(
    chance: Random, fabric: Fabric, switch: SwitchId, table: Table, priorities: list[int], epoch_bits: int
) -> Iterator[Entry]:
    topology = fabric.topology
    ports = topology.ports(switch)
    hosts = [port for port in ports if is_host(topology, switch, port)]
    forwards = table is Table.FORWARDING
    for priority in priorities if forwards or hosts else ():
        yield Entry(
            table,
            switch,
            some_dz(chance, MAX_LENGTH - epoch_bits),
            chance.choice((ANY, ANY, *ports) if forwards else hosts),
            chance.choice((ANY, ANY, *VLANS)),
            some_epoch(chance, epoch_bits),
            priority,
            frozenset(chance.sample(ports, chance.randint(0, min(9, len(ports)))))
            if forwards
            else frozenset(),
            ANY if forwards else chance.choice((ANY, ANY, *VLANS)),
            forwards and chance.random() < 0.4,
            chance.random() < 0.1,
            Side.BETWEEN,
        )
