"""Match fields on the wire: a list of (field, value, mask), each with its own length."""

from __future__ import annotations

from ipaddress import IPv6Address, IPv6Network
from struct import Struct

from plerion.southbound.openflow.messages import MalformedMessage
from plerion.southbound.openflow.pipeline import Masked, Match

_MATCH = Struct("!HH")
_BASIC = 0x8000
MAX_FIELDS = 64  # OpenFlow 1.3 has 40; a match with more is no match but work
_FIELDS = {  # name by number in the class of basic fields, and the bytes of its value
    0: ("in_port", 4),
    3: ("eth_dst", 6),
    4: ("eth_src", 6),
    5: ("eth_type", 2),
    6: ("vlan_vid", 2),
    8: ("ip_dscp", 1),
    9: ("ip_ecn", 1),
    10: ("ip_proto", 1),
    16: ("udp_dst", 2),
    26: ("ipv6_src", 16),
    27: ("ipv6_dst", 16),
}
Fields = dict[str, tuple[bytes, bytes | None]]


def padded(length: int) -> int:
    return (length + 7) // 8 * 8


def places(frame: bytes, at: int) -> tuple[dict[str, tuple[int, int, bool]], int]:
    """Where each field's value stands as (begin, size, has a mask after it), and where the padded list ends.

    A field that we know no name for is called by its header, so two lists differ when their fields do.
    """
    if at + _MATCH.size > len(frame):
        raise MalformedMessage("a message ends before its match")
    kind, length = _MATCH.unpack_from(frame, at)
    end = at + length
    if kind != 1 or length < _MATCH.size or at + padded(length) > len(frame):
        raise MalformedMessage(f"a match of kind {kind} says that it has {length} bytes")
    found: dict[str, tuple[int, int, bool]] = {}
    here = at + _MATCH.size
    while here < end:
        begin = here + 4
        size = frame[here + 3] if begin <= end else 0
        if begin + size > end:
            raise MalformedMessage("a field of a match is longer than the match")
        masked = bool(frame[here + 2] & 1)
        name, plain = _name(frame, here)
        if plain is not None and size != plain * (1 + masked):
            raise MalformedMessage(f"the field {name} of a match with {size} bytes")
        if name in found or len(found) == MAX_FIELDS:
            raise MalformedMessage(f"the field {name} of a match comes twice, or after {MAX_FIELDS} others")
        found[name] = (begin, plain if plain is not None else size, masked)
        here = begin + size
    return found, at + padded(length)


def _name(frame: bytes, here: int) -> tuple[str, int | None]:
    """The field's name and the bytes of its value, `None` for a field that we do not know."""
    group, number = int.from_bytes(frame[here : here + 2], "big"), frame[here + 2] >> 1
    if group == _BASIC and number in _FIELDS:
        return _FIELDS[number]
    return f"{group:04x}:{number}", None


def fields(frame: bytes, at: int) -> tuple[Fields, int]:
    """Values and masks of a match by name, and where its padding ends."""
    found, end = places(frame, at)
    return {
        name: (frame[begin : begin + size], frame[begin + size : begin + 2 * size] if masked else None)
        for name, (begin, size, masked) in found.items()
    }, end


def match_of(found: Fields) -> Match | None:
    """The match as a value; `None` when it has fields or masks that our entries never have."""
    if not found.keys() <= set(Match.__slots__):
        return None
    values: dict[str, object] = {}
    for name, (value, mask) in found.items():
        number = int.from_bytes(value, "big")
        if name == "ipv6_dst":
            ones = (1 << 128) - 1 if mask is None else int.from_bytes(mask, "big")
            if number & ~ones:
                return None
            values[name] = _destination(number, ones)
        elif name == "vlan_vid" and mask is not None:
            values[name] = number, int.from_bytes(mask, "big")
        elif mask is not None:
            return None
        elif name == "eth_src":
            values[name] = value.hex(":")
        else:
            values[name] = IPv6Address(value) if name == "ipv6_src" else number
    return Match(**values)  # type: ignore[arg-type]  # each field has its own type above


def _destination(number: int, ones: int) -> IPv6Network | Masked:
    """A network where the mask is one."""
    zeros = ~ones & ((1 << 128) - 1)
    if zeros & (zeros + 1):
        return IPv6Address(number), IPv6Address(ones)
    return IPv6Network((number, 128 - zeros.bit_length()))
