"""Where a host stands in the network: its own address and the interface that has it.

To an address of a host belongs a MAC address, and a switch drops what comes with another one. So an interface that
does not have it is no host's, whatever its address, and nothing is sent out of it: any machine may have ``fd00::2``.
"""

from __future__ import annotations

import fcntl
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv6Address
from pathlib import Path
from typing import Final, NamedTuple

from plerion.client.errors import TransportError
from plerion.topology.graph import mac_beside

USUAL: Final = "eth0"
_LISTED: Final = Path("/proc/thread-self/net/if_inet6")  # of the namespace that the thread is in
_SIOCGIFHWADDR: Final = 0x8927


@dataclass(frozen=True, slots=True)
class Place:
    """One of the host's addresses and its interface."""

    address: IPv6Address
    interface: str

    @property
    def interface_number(self) -> int:
        return socket.if_nametoindex(self.interface)


class Listed(NamedTuple):
    """An address that this machine has, with the MAC address of its interface."""

    place: Place
    mac: str

    @property
    def is_hosts(self) -> bool:
        """Whether a switch would take it for a host's."""
        return self.mac == mac_beside(self.place.address)

    def __str__(self) -> str:
        return f"{self.place.address} on {self.place.interface} ({self.mac})"


def listed() -> list[Listed]:
    """All addresses that this machine (or the namespace that the process runs in) has."""
    try:
        lines = _LISTED.read_text().splitlines()
    except OSError:
        lines = []
    found = (Place(IPv6Address(int(line[:32], 16)), line.split()[-1]) for line in lines)
    return [Listed(place, _mac(place.interface)) for place in found]


def _mac(interface: str) -> str:
    asked = struct.pack("16s16x", interface.encode())
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as any_socket:
        try:
            told = fcntl.ioctl(any_socket, _SIOCGIFHWADDR, asked)
        except OSError:  # the interface has just gone
            return ""
    return told[18:24].hex(":")


def find_place(address: str | IPv6Address | None = None, interface: str | None = None) -> Place:
    """The place that the arguments name; without any the machine's only host's address, preferably on eth0."""
    return chosen(listed(), address, interface)


def chosen(
    found: Iterable[Listed], address: str | IPv6Address | None = None, interface: str | None = None
) -> Place:
    """The one of these that the arguments name, if it is a host's; all others are refused in one line."""
    found = list(found)
    fitting = found
    if address is not None:
        try:
            wanted = IPv6Address(address)
        except ValueError as error:
            raise TransportError(f"{address!r} is no address: {error}", "write it as fd00::1") from None
        fitting = [one for one in fitting if one.place.address == wanted]
    if interface is not None:
        fitting = [one for one in fitting if one.place.interface == interface]
    hosts = [one.place for one in fitting if one.is_hosts]
    usual = [place for place in hosts if place.interface == USUAL]
    if len(usual or hosts) == 1:
        return (usual or hosts)[0]
    raise _refusal(found, fitting, bool(hosts), f"address {address or 'any'}, interface {interface or 'any'}")


def _refusal(found: list[Listed], fitting: list[Listed], several: bool, asked: str) -> TransportError:
    there = f"there are {', '.join(map(str, found))}" if found else "there are none at all"
    if several:
        return TransportError(
            f"this host has several addresses that fit ({asked})",
            f"name one with address= and interface=; {there}",
        )
    if not fitting:
        return TransportError(
            f"this machine has no address that fits ({asked})", f"name one that it has; {there}"
        )
    return TransportError(
        f"this machine is no host of a network ({asked}): a host has fd00::N and, on the same interface, "
        "a MAC address of 02:00 and N, as in fd00::2 and 02:00:00:00:00:02",
        f"run it in a host (plerion lab exec h1 -- ...), or give address= and interface= of one; {there}",
    )
