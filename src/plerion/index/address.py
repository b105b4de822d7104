"""dz as multicast addresses: what a switch matches with one masked compare (seed 000 §3.3.2).

An address is the plan's prefix, then the epoch bits if the plan has any, then the dz, then zeros. `covers`
between two dz of one epoch and 'contains' between their networks are the same relation; networks of
different epochs never meet. Beside these *addresses of contents* are those of *groups*, which an update may send
events to for a while: a prefix of their own, then the number of the group, and no epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Literal

from plerion.index.dz import Dz, DzError

Network = IPv4Network | IPv6Network
Family = Literal["ipv6", "ipv4"]
FAMILIES: tuple[Family, ...] = ("ipv6", "ipv4")

_PREFIX: dict[Family, Network] = {
    "ipv6": IPv6Network("ff0e::/16"),  # global multicast, not permanently assigned
    "ipv4": IPv4Network(
        "239.128.0.0/9"
    ),  # administratively scoped; 23 bits, as many as a multicast MAC keeps
}
_GROUPS: dict[Family, Network] = {
    "ipv6": IPv6Network("ff0d::/16"),  # the widest scope that is left to administrators
    "ipv4": IPv4Network("239.64.0.0/10"),
}
_ALL: dict[Family, Network] = {"ipv6": IPv6Network("ff0c::/14"), "ipv4": IPv4Network("239.0.0.0/8")}


@dataclass(frozen=True, slots=True)
class AddressPlan:
    """How dz are laid into addresses; `epoch_bits` of them tell versions of the index apart."""

    family: Family = "ipv6"
    epoch_bits: int = 0
    epoch: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.epoch_bits <= 8:
            raise DzError(f"a plan takes 0 to 8 epoch bits, not {self.epoch_bits}")

    @property
    def capacity(self) -> int:
        """The longest dz that fits."""
        whole = _PREFIX[self.family]
        return whole.max_prefixlen - whole.prefixlen - self.epoch_bits

    @property
    def field(self) -> str:
        """The name of the matched header field in tables."""
        return f"{self.family}_dst"

    def network(self, dz: Dz) -> Network:
        """The network that contains the addresses of exactly the codes under `dz`."""
        if dz.length > self.capacity:
            raise DzError(f"{self.family} has room for {self.capacity} bits, the dz has {dz.length}")
        epoch = Dz(self.epoch % (1 << self.epoch_bits), self.epoch_bits)
        return _within(_PREFIX[self.family], epoch.append(dz))

    def group(self, dz: Dz) -> Network:
        """The network of the groups whose numbers begin with `dz`; no content of any epoch has such an address."""
        return _within(_GROUPS[self.family], dz)

    @property
    def everything(self) -> Network:
        """A network around every address that an event may have, of contents in any epoch and of groups."""
        return _ALL[self.family]

    def address(self, code: Dz) -> IPv4Address | IPv6Address:
        """Where an event with this code is sent."""
        return self.network(code).network_address

    def dz(self, network: str | Network) -> Dz:
        """The dz behind a network of this plan and epoch; the inverse of `network`."""
        given = ip_network(network) if isinstance(network, str) else network
        room = self.network(Dz(0, 0))
        if given.version != room.version or not given.subnet_of(room):  # type: ignore[arg-type]  # version checked
            raise DzError(f"{given} is not inside {room}")
        length = given.prefixlen - room.prefixlen
        return Dz(
            int(given.network_address) >> (room.max_prefixlen - given.prefixlen) & ((1 << length) - 1), length
        )


def _within(whole: Network, dz: Dz) -> Network:
    """The part of the network whose addresses go on with `dz`."""
    bits, length = whole.max_prefixlen, whole.prefixlen + dz.length
    number = int(whole.network_address) | dz.bits << (bits - length)
    return IPv6Network((number, length)) if bits == 128 else IPv4Network((number, length))
