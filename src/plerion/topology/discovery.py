"""Links learned from the network itself, and how they compare with the declared ones.

A *beacon* is an LLDP frame that the controller sends out of a port of a switch. Where it comes in at another switch, a
cable leads. Beacons carry a keyed digest, so that a host cannot make up links; time is what the caller says it is.

Nothing is rerouted because of a beacon. What is learned is held against the topology that the operator declared, and
a difference is for people to look at: a cable in the wrong port carries events to the wrong place.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2s
from hmac import compare_digest
from struct import Struct

from plerion.topology.error import TopologyError
from plerion.topology.graph import Topology
from plerion.topology.link import Link, Port, SwitchId

ETHERTYPE = 0x88CC
NEAREST_BRIDGE = bytes.fromhex("0180c200000e")  # an address that no switch forwards by itself
SOURCE = bytes.fromhex("0200706c6572")
TTL_SECONDS = 120
DIGEST_BYTES = 16

_ETHERNET = Struct("!6s6sH")
_CHASSIS, _PORT, _TTL, _OWN, _END = 1, 2, 3, 127, 0
_LOCALLY_ASSIGNED = b"\x07"
_MARK = b"\x02\x70\x6c\x01"  # in the place of an organisation's number, and a subtype


def beacon(place: Port, key: bytes) -> bytes:
    """The frame to send out of this port."""
    return b"".join(
        (
            _ETHERNET.pack(NEAREST_BRIDGE, SOURCE, ETHERTYPE),
            _part(_CHASSIS, _LOCALLY_ASSIGNED + place.node.encode()),
            _part(_PORT, _LOCALLY_ASSIGNED + str(place.number).encode()),
            _part(_TTL, TTL_SECONDS.to_bytes(2, "big")),
            _part(_OWN, _MARK + _digest(place, key)),
            _part(_END, b""),
        )
    )


def is_beacon(frame: bytes) -> bool:
    """Whether the frame is LLDP, ours or not."""
    return len(frame) >= _ETHERNET.size and frame[12:14] == ETHERTYPE.to_bytes(2, "big")


def sender(frame: bytes, key: bytes) -> Port | None:
    """The port that a beacon was sent out of; None for LLDP of somebody else, forged or damaged."""
    parts = dict(_parts(frame[_ETHERNET.size :])) if is_beacon(frame) else {}
    node, number, own = (parts.get(kind, b"") for kind in (_CHASSIS, _PORT, _OWN))
    try:
        place = Port.parse(f"{node[1:].decode()}:{number[1:].decode()}")
    except (UnicodeDecodeError, TopologyError):
        return None
    return place if compare_digest(own, _MARK + _digest(place, key)) else None


def _part(kind: int, value: bytes) -> bytes:
    if len(value) > 511:
        raise TopologyError(
            "a switch's name is too long to be sent over its links", fix="use at most 500 bytes"
        )
    return (kind << 9 | len(value)).to_bytes(2, "big") + value


def _parts(body: bytes) -> Iterator[tuple[int, bytes]]:
    """The parts up to the end mark, each kind's first; a part that is cut short ends it."""
    seen: set[int] = set()
    while len(body) >= 2:
        head = int.from_bytes(body[:2], "big")
        kind, length = head >> 9, head & 511
        value, body = body[2 : 2 + length], body[2 + length :]
        if kind == _END or len(value) < length:
            return
        if kind not in seen:
            seen.add(kind)
            yield kind, value


def _digest(place: Port, key: bytes) -> bytes:
    return blake2s(str(place).encode(), key=key[:32], digest_size=DIGEST_BYTES).digest()


class LearnedLinks:
    """For each port the one whose beacon came in there last, and when; at most one entry a port."""

    def __init__(self) -> None:
        self._heard: dict[Port, tuple[Port, float]] = {}

    def hear(self, at: Port, sent_from: Port, now: float) -> None:
        self._heard[at] = (sent_from, now)

    def recent(self, now: float, seconds: float) -> dict[Port, Port]:
        """By receiving port, the sending ones heard within so many seconds; older ones are forgotten."""
        self._heard = {at: heard for at, heard in self._heard.items() if now - heard[1] <= seconds}
        return {at: sent_from for at, (sent_from, _) in self._heard.items()}


@dataclass(frozen=True, slots=True)
class Wrong:
    """A beacon came in where it should not: at this port, from there, and who is declared to be at its other end."""

    at: Port
    found: Port
    declared: Port | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """How learned links differ from the declared ones between switches; nothing differs when it is false."""

    missing: tuple[Link, ...] = ()  # heard in neither direction
    one_way: tuple[Link, ...] = ()
    miswired: tuple[Wrong, ...] = ()  # a declared port that hears another one than it should
    unexpected: tuple[Wrong, ...] = ()  # a port of a host, or of nobody, that hears a switch

    def __bool__(self) -> bool:
        return bool(self.missing or self.one_way or self.miswired or self.unexpected)


def compare(topology: Topology, learned: Mapping[Port, Port]) -> Comparison:
    """What the beacons say against what was declared; ports of switches that nobody declared are unexpected."""
    switches = frozenset(topology.switches)
    missing: list[Link] = []
    one_way: list[Link] = []
    for link in topology.links:
        a, b = link.ends
        if {a.node, b.node} <= switches:
            heard = (learned.get(a) == b) + (learned.get(b) == a)
            silent = heard == 0 and a not in learned and b not in learned
            missing += [link] if silent else []
            one_way += [link] if heard == 1 and not (a in learned and b in learned) else []
    miswired: list[Wrong] = []
    unexpected: list[Wrong] = []
    for at, found in sorted(learned.items()):
        declared = topology.peer(at.node, at.number) if SwitchId(at.node) in switches else None
        if declared != found:
            between = declared is not None and declared.node in switches
            (miswired if between else unexpected).append(Wrong(at, found, declared))
    return Comparison(tuple(missing), tuple(one_way), tuple(miswired), tuple(unexpected))
