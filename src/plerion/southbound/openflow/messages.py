"""What is said on a connection to a switch, as values. A message's number (xid) travels beside it, never in it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from plerion.southbound.openflow.pipeline import Action, Entry

VERSION = 4  # OpenFlow 1.3, the only one that we speak
HEADER = 8  # bytes in front of every message
MAX_MESSAGE = 0xFFFF  # what the length field of a header can say


class MalformedMessage(ValueError):  # noqa: N818 - names what the switch sent, not what went wrong here
    """Bytes that are no message; the peer is at fault and its connection is of no more use."""


@dataclass(frozen=True, slots=True)
class Hello:
    """The version in the header, and all versions where the peer lists them. We list none: ours is the only one."""

    version: int = VERSION
    versions: frozenset[int] | None = None

    @property
    def speaks_ours(self) -> bool:
        """A list counts; without one the lower of the two versions is spoken."""
        return self.version >= VERSION if self.versions is None else VERSION in self.versions


@dataclass(frozen=True, slots=True)
class EchoRequest:
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class EchoReply:
    body: bytes = b""


_REASONS = {
    (0, 0): "no common version",
    (1, 5): "not permitted",
    (2, 4): "no such port",
    (4, 6): "no such match field",
    (5, 1): "table full",
    (5, 2): "no such table",
}
EXPERIMENTER_ERROR = 0xFFFF


@dataclass(frozen=True, slots=True)
class Error:
    """The peer refuses a message; `body` starts as that message did."""

    type: int
    code: int
    body: bytes = b""

    @property
    def reason(self) -> str:
        return _REASONS.get((self.type, self.code), f"error {self.type}/{self.code}")


@dataclass(frozen=True, slots=True)
class FeaturesRequest:
    pass


@dataclass(frozen=True, slots=True)
class Features:
    dpid: int
    tables: int
    auxiliary: int
    capabilities: int


@dataclass(frozen=True, slots=True)
class BarrierRequest:
    pass


@dataclass(frozen=True, slots=True)
class BarrierReply:
    pass


@dataclass(frozen=True, slots=True)
class PacketIn:
    """A packet that an entry (`cookie`) sent to us, whole unless `cut`."""

    in_port: int
    cookie: int
    payload: bytes
    cut: bool = False


@dataclass(frozen=True, slots=True)
class PacketOut:
    """The switch does this with the packet."""

    actions: tuple[Action, ...]
    payload: bytes


@dataclass(frozen=True, slots=True)
class PortDescription:
    number: int
    name: str
    up: bool


@dataclass(frozen=True, slots=True)
class PortStatus:
    """A port came, went (`gone`) or changed."""

    port: PortDescription
    gone: bool


class Part(IntEnum):
    """What a multipart message asks for."""

    FLOWS = 1
    TABLES = 3
    PORTS = 4
    PORT_DESCRIPTIONS = 13


@dataclass(frozen=True, slots=True)
class MultipartRequest:
    """Of flows only those whose cookie agrees under the mask."""

    part: Part
    cookie: int = 0
    cookie_mask: int = 0


@dataclass(frozen=True, slots=True)
class MultipartReply:
    """A piece of an answer; its rows are read when the last piece is there."""

    part: int
    more: bool
    body: bytes


class Command(IntEnum):
    ADD = 0
    DELETE_STRICT = 4


@dataclass(frozen=True, slots=True)
class FlowMod:
    """Adds or replaces an entry, or deletes the one that stands in its place and has its cookie."""

    command: Command
    entry: Entry


class BundleStep(IntEnum):
    OPEN = 0
    OPENED = 1
    CLOSE = 2
    CLOSED = 3
    COMMIT = 4
    COMMITTED = 5
    DISCARD = 6
    DISCARDED = 7


@dataclass(frozen=True, slots=True)
class BundleControl:
    bundle: int
    step: BundleStep


@dataclass(frozen=True, slots=True)
class BundleAdd:
    """The change counts when its bundle is committed, and not without the others in it."""

    bundle: int
    change: FlowMod


@dataclass(frozen=True, slots=True)
class Unread:
    """A message of a kind that we never asked for: well formed as far as anybody looked, and not looked into."""

    type: int
    body: bytes


Received = (
    Hello
    | EchoRequest
    | EchoReply
    | Error
    | Features
    | BarrierReply
    | PacketIn
    | PortStatus
    | MultipartReply
    | BundleControl
    | Unread
)
Sent = (
    Hello
    | EchoRequest
    | EchoReply
    | Error
    | FeaturesRequest
    | BarrierRequest
    | PacketOut
    | MultipartRequest
    | FlowMod
    | BundleControl
    | BundleAdd
)


@dataclass(frozen=True, slots=True)
class PortCounters:
    number: int
    received: int
    sent: int
    dropped: int  # in either direction


@dataclass(frozen=True, slots=True)
class TableCounters:
    table: int
    entries: int
    lookups: int
    matches: int
