"""What a host asks of the controller, and what it is told: one MessagePack array a message.

    request  [kind, number, session, ...]      reply  [kind, number, ...]

A host counts its requests; a reply carries the number of the request that it answers. Requests may be repeated: the
controller answers again and nothing happens twice. A *session* is one client on one host, 16 hexadecimal digits drawn
at random; whatever it advertised and subscribed is withdrawn when its lease ends without a keep-alive. A controller
that knows no such session says Unknown, and the client joins again and says everything once more.

Number 0 is not a reply but a notice, which the controller sends of its own accord.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias, cast

import msgspec
from msgspec import Meta

from plerion.content.lex import MAX_TEXT
from plerion.wire.error import WireError
from plerion.wire.event import Bytes

MAX_PARTS: Final = 65_535
MAX_NAME: Final = 128
MAX_REASON: Final = 1_000
MAX_LEASE_SECONDS: Final = 86_400.0
PART_BYTES: Final = 1_024

Number: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]
SessionId: TypeAlias = Annotated[str, Meta(pattern=r"\A[0-9a-f]{16}\Z", max_length=16)]
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
FilterText: TypeAlias = Annotated[str, Meta(max_length=MAX_TEXT)]
Lease: TypeAlias = Annotated[float, Meta(gt=0, le=MAX_LEASE_SECONDS)]
Digest: TypeAlias = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z", max_length=64)]
PartNumber: TypeAlias = Annotated[int, Meta(ge=0, lt=MAX_PARTS)]
PartCount: TypeAlias = Annotated[int, Meta(ge=1, le=MAX_PARTS)]


class _Message(
    msgspec.Struct, frozen=True, array_like=True, tag=str.lower, forbid_unknown_fields=True, gc=False
):
    """Tagged with its name in lower case."""

    number: Number


class _Request(_Message, frozen=True, tag=str.lower):
    session: SessionId


class Join(_Request, frozen=True, tag=str.lower):
    """I am here, and shall be for this long after each sign of life."""

    lease_seconds: Lease


class Describe(_Request, frozen=True, tag=str.lower):
    """Send this part (from 0) of the description that is in force."""

    part: PartNumber


class Advertise(_Request, frozen=True, tag=str.lower):
    """I shall send events that this filter matches."""

    name: Name
    filter: FilterText


class Unadvertise(_Request, frozen=True, tag=str.lower):
    name: Name


class Subscribe(_Request, frozen=True, tag=str.lower):
    """I want events that this filter matches."""

    name: Name
    filter: FilterText


class Unsubscribe(_Request, frozen=True, tag=str.lower):
    name: Name


class Report(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """What a session counted since it began, each event once; `doubles` and `dropped` come on top of `received`."""

    published: Number = 0
    received: Number = 0
    false_positives: Number = 0
    doubles: Number = 0
    dropped: Number = 0


class KeepAlive(_Request, frozen=True, tag=str.lower):
    """I am still here, and this is what I have counted."""

    report: Report | None = None


class Adopted(_Request, frozen=True, tag=str.lower):
    """I send as the description with this digest says, and never otherwise again."""

    digest: Digest


class Leave(_Request, frozen=True, tag=str.lower):
    """Withdraw all that is mine."""


class Welcome(_Message, frozen=True, tag=str.lower):
    """You are this host; the description in force has this digest and comes in so many parts."""

    host: Name
    lease_seconds: Lease
    epoch: Number
    digest: Digest
    parts: PartCount


class Part(_Message, frozen=True, tag=str.lower):
    """A part of the description; the digest over all tells whether they belong together."""

    part: PartNumber
    parts: PartCount
    body: Annotated[bytes, Meta(max_length=PART_BYTES)]


class Ready(_Message, frozen=True, tag=str.lower):
    """What you asked for is in force in every switch."""


class Refused(_Message, frozen=True, tag=str.lower):
    """What you asked for will not be done, for this reason."""

    reason: Annotated[str, Meta(max_length=MAX_REASON)]


class Unknown(_Message, frozen=True, tag=str.lower):
    """There is no such session (any more): join again."""


class Outdated(_Message, frozen=True, tag=str.lower):
    """You did not adopt the description that is in force: fetch it, say that you adopted it, and ask again."""


class Notice(_Message, frozen=True, tag=str.lower):
    """Another description is in force: fetch it, and say that you adopted it."""

    epoch: Number
    digest: Digest


Request: TypeAlias = (
    Join | Describe | Adopted | Advertise | Unadvertise | Subscribe | Unsubscribe | KeepAlive | Leave
)
Reply: TypeAlias = Welcome | Part | Ready | Refused | Unknown | Outdated | Notice

_ENCODER: Final = msgspec.msgpack.Encoder()
_REQUESTS: Final = msgspec.msgpack.Decoder(Request)
_REPLIES: Final = msgspec.msgpack.Decoder(Reply)
_UNDECODABLE: Final = (msgspec.MsgspecError, ValueError, RecursionError, TypeError)


def encode(message: Request | Reply) -> bytes:
    """The bytes of a message; WireError when its receiver would refuse them."""
    try:
        found = _ENCODER.encode(message)
    except (ValueError, TypeError, OverflowError, msgspec.MsgspecError) as error:
        raise WireError(f"this message has no bytes: {error}") from None
    (decode_reply if isinstance(message, Reply) else decode_request)(found)
    return found


def refused(number: int, reason: str) -> Refused:
    """A refusal whose reason is cut to what fits."""
    text = reason.encode("utf-8", "replace").decode()
    return Refused(number, text if len(text) <= MAX_REASON else text[: MAX_REASON - 1] + "…")


def decode_request(message: Bytes) -> Request:
    """What a host asks; anything else raises WireError."""
    try:
        return cast(Request, _REQUESTS.decode(message))
    except _UNDECODABLE as error:
        raise WireError(f"not a request: {error}") from None


def decode_reply(message: Bytes) -> Reply:
    """What the controller says; anything else raises WireError."""
    try:
        return cast(Reply, _REPLIES.decode(message))
    except _UNDECODABLE as error:
        raise WireError(f"not a reply: {error}") from None
