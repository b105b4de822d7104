"""Where a host stands in the network: its own address and the interface that has it."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from ipaddress import IPv6Address, IPv6Network
from pathlib import Path
from typing import Final

from plerion.client.errors import TransportError

USUAL: Final = "eth0"
_OWN: Final = IPv6Network("fd00::/8")
_LISTED: Final = Path("/proc/thread-self/net/if_inet6")  # of the namespace that the thread is in


@dataclass(frozen=True, slots=True)
class Place:
    """One of the host's addresses and its interface."""

    address: IPv6Address
    interface: str

    @property
    def interface_number(self) -> int:
        return socket.if_nametoindex(self.interface)


def places() -> list[Place]:
    """All addresses that this host (or the namespace that the process runs in) has."""
    try:
        lines = _LISTED.read_text().splitlines()
    except OSError:
        lines = []
    return [Place(IPv6Address(int(line[:32], 16)), line.split()[-1]) for line in lines]


def find_place(address: str | IPv6Address | None = None, interface: str | None = None) -> Place:
    """The place that the arguments name; without any the only one in fd00::/8, preferably on eth0."""
    found = places()
    if address is not None:
        try:
            wanted = IPv6Address(address)
        except ValueError as error:
            raise TransportError(f"{address!r} is no address: {error}", "write it as fd00::1") from None
        fitting = [place for place in found if place.address == wanted]
    else:
        fitting = [place for place in found if place.address in _OWN]
    if interface is not None:
        fitting = [place for place in fitting if place.interface == interface]
    usual = [place for place in fitting if place.interface == USUAL]
    if len(usual or fitting) == 1:
        return (usual or fitting)[0]
    named = ", ".join(f"{place.address} on {place.interface}" for place in found) or "none at all"
    what = "this host has no address" if not fitting else "this host has several addresses"
    raise TransportError(
        f"{what} that fits (address {address or 'in fd00::/8'}, interface {interface or 'any'})",
        f"name one with address= and interface=; there are {named}",
    )
