"""UDP over IPv6 over Ethernet, as bytes: what a controller is handed by a switch and hands back to one.

Only the plain form is read: no VLAN tag, no extension headers, no fragments. Everything else is refused, and so is
a packet whose lengths or UDP checksum are wrong (a checksum of zero is, over IPv6).
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv6Address
from struct import Struct
from typing import Final

from plerion.wire.error import WireError

ETHERTYPE: Final = 0x86DD
TAGGED: Final = 0x8100
UDP: Final = 17
HOP_LIMIT: Final = 64
MAX_PAYLOAD: Final = 65_535 - 8

_ETHERNET: Final = Struct("!6s6sH")
_TAG: Final = Struct("!HH")
_IPV6: Final = Struct("!IHBB16s16s")
_UDP: Final = Struct("!HHHH")
_HEADERS: Final = _ETHERNET.size + _IPV6.size + _UDP.size


@dataclass(frozen=True, slots=True)
class UdpFrame:
    """One datagram with the addresses of both ends, MACs as six bytes each."""

    source_mac: bytes
    destination_mac: bytes
    source: IPv6Address
    destination: IPv6Address
    source_port: int
    destination_port: int
    payload: bytes

    def reply(self, mac: bytes, address: IPv6Address, payload: bytes) -> UdpFrame:
        """The answer to this frame from one who has this address, port to port."""
        ports = self.destination_port, self.source_port
        return UdpFrame(mac, self.source_mac, address, self.source, *ports, payload)


def mac_bytes(text: str) -> bytes:
    """``02:00:00:00:00:01`` as six bytes."""
    try:
        found = bytes.fromhex(text.replace(":", ""))
    except ValueError:
        found = b""
    if len(found) != 6:
        raise WireError(f"{text[:40]!r} is no MAC address", "write it as 02:00:00:00:00:01")
    return found


def multicast_mac(address: IPv6Address) -> bytes:
    """Where Ethernet carries a multicast address."""
    return b"\x33\x33" + address.packed[12:]


def build(frame: UdpFrame, vlan: int = 0) -> bytes:
    """The frame as it goes over the wire, with lengths and checksum; WireError if a part does not fit.

    With a `vlan` it carries that tag, at the lowest priority.
    """
    if len(frame.source_mac) != 6 or len(frame.destination_mac) != 6:
        raise WireError("a MAC address has six bytes")
    if not 0 <= frame.source_port < 65_536 or not 0 <= frame.destination_port < 65_536:
        raise WireError(f"ports {frame.source_port} and {frame.destination_port}", "use 0 to 65535")
    if len(frame.payload) > MAX_PAYLOAD:
        raise WireError(f"a payload of {len(frame.payload):,} bytes", f"send at most {MAX_PAYLOAD:,}")
    source, destination = frame.source.packed, frame.destination.packed
    length = _UDP.size + len(frame.payload)
    udp = _UDP.pack(frame.source_port, frame.destination_port, length, 0) + frame.payload
    # A sum of zero is written as its other form: zero itself would say that there is none.
    checksum = checksum_of(source, destination, udp) or 0xFFFF
    return b"".join(
        (
            frame.destination_mac,
            frame.source_mac,
            _TAG.pack(TAGGED, vlan) if vlan else b"",
            ETHERTYPE.to_bytes(2, "big"),
            _IPV6.pack(6 << 28, length, UDP, HOP_LIMIT, source, destination),
            udp[:6],
            checksum.to_bytes(2, "big"),
            frame.payload,
        )
    )


def parse(frame: bytes) -> UdpFrame:
    """The datagram in a frame. Bytes behind it are Ethernet's padding and are left out."""
    if len(frame) < _HEADERS:
        raise WireError(f"a frame of {len(frame)} bytes holds no UDP over IPv6")
    destination_mac, source_mac, ethertype = _ETHERNET.unpack_from(frame)
    first, length, following, _, source, destination = _IPV6.unpack_from(frame, _ETHERNET.size)
    if ethertype != ETHERTYPE or first >> 28 != 6 or following != UDP:
        raise WireError(f"ethertype {ethertype:#06x} and protocol {following} are not UDP over IPv6")
    begin = _ETHERNET.size + _IPV6.size
    if length < _UDP.size or begin + length > len(frame):
        raise WireError(f"a packet says that it has {length} bytes, the frame has {len(frame) - begin}")
    udp = frame[begin : begin + length]
    source_port, destination_port, udp_length, checksum = _UDP.unpack_from(udp)
    if udp_length != length:
        raise WireError(f"a datagram of {udp_length} bytes in a packet of {length}")
    if checksum == 0 or checksum_of(source, destination, udp):
        raise WireError(f"the UDP checksum {checksum:#06x} is wrong", "turn checksum offload of the port off")
    addresses = IPv6Address(source), IPv6Address(destination)
    return UdpFrame(source_mac, destination_mac, *addresses, source_port, destination_port, bytes(udp[8:]))


def checksum_of(source: bytes, destination: bytes, udp: bytes) -> int:
    """The ones' complement of the sum of all 16-bit words; zero over a datagram that carries the right one.

    The sum wraps its carry around, so it is the whole text as one number modulo 65535.
    """
    pseudo = source + destination + len(udp).to_bytes(4, "big") + UDP.to_bytes(4, "big")
    text = pseudo + udp + b"\0" * (len(udp) & 1)
    return 0xFFFF - (int.from_bytes(text, "big") % 0xFFFF or 0xFFFF)
