"""Who may send what: at the edge of the network each host's port admits only what was advertised there.

An admission is the twin of a demand: a demand says where an event leaves a switch, an admission says that it may
come in. What no admission covers is dropped by the first switch and counted there, so a host can neither flood a
network with events that nobody expects of it nor speak for another. Admissions are few, a dz of an advertisement
each, and a set of them is compared like any set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address

from plerion.index.dz import Dz
from plerion.index.dzset import DzSet
from plerion.topology.graph import HostId, SwitchId, Topology

EVENT_PORT = 20706
"""The UDP port of events."""

CONTROL_PORT = 20707
CONTROL_ADDRESS = IPv6Address("ff18::706c:6572")
"""Where hosts send what they want of the controller; outside of the addresses of events, so no dz ever meets it."""


@dataclass(frozen=True, slots=True, order=True)
class Admission:
    """Events under `dz` may enter the switch from the host at this port."""

    switch: SwitchId
    port: int
    dz: Dz


@dataclass(frozen=True, slots=True)
class AdmissionChange:
    """What leads from one set of admissions to another."""

    added: frozenset[Admission] = frozenset()
    removed: frozenset[Admission] = frozenset()

    def __len__(self) -> int:
        return len(self.added) + len(self.removed)


def admissions(topology: Topology, sent: Mapping[HostId, DzSet]) -> frozenset[Admission]:
    """An admission for each dz of each publisher that the topology still has."""
    places = {host: topology.attachment(host) for host in sent if topology.has_host(host)}
    return frozenset(
        Admission(SwitchId(place.node), place.number, dz)
        for host, place in places.items()
        for dz in sent[host]
    )


def admission_change(old: frozenset[Admission], new: frozenset[Admission]) -> AdmissionChange:
    """The fewest changes from `old` to `new`."""
    return AdmissionChange(new - old, old - new)
