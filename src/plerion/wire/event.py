"""One event in one datagram: a MessagePack array that says what it is without a schema at hand.

    [1, publisher, sequence, epoch, time_ns, [a value an attribute, in schema order], extra]

The leading 1 is the version. `publisher` and `sequence` name the event, in all its copies: an event in several
clusters has several codes and travels once a code. `epoch` is that of the index by which it was addressed, `time_ns`
when it was sent, in nanoseconds since 1970. `extra` is whatever the application adds and no filter sees.

A datagram longer than the path's MTU still arrives, in fragments, and is lost with any of them; so keep events small.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta

from plerion.content.schema import MAX_ATTRIBUTES
from plerion.wire.error import WireError

VERSION: Final = 1
MAX_BYTES: Final = 8_192
MAX_PUBLISHER: Final = 128

Value: TypeAlias = int | float | str | None
Bytes: TypeAlias = bytes | bytearray | memoryview
Whole: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class EventDatagram(
    msgspec.Struct, frozen=True, array_like=True, tag=VERSION, forbid_unknown_fields=True, gc=False
):
    """What a publisher says of one event; `values` has an entry for every attribute of the schema."""

    publisher: Annotated[str, Meta(min_length=1, max_length=MAX_PUBLISHER)]
    sequence: Whole
    epoch: Whole
    time_ns: Whole
    values: Annotated[list[Value], Meta(max_length=MAX_ATTRIBUTES)]
    extra: dict[str, Any] | None


def _no_extension(code: int, _body: memoryview) -> Any:
    raise ValueError(f"extension {code} has no meaning here")


ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(EventDatagram, ext_hook=_no_extension)
_UNDECODABLE: Final = (msgspec.MsgspecError, ValueError, RecursionError, TypeError)


def encode(event: EventDatagram) -> bytes:
    """The datagram of an event; WireError when it would be longer than MAX_BYTES or holds what has no bytes."""
    try:
        found = ENCODER.encode(event)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        raise WireError(f"this event has no bytes: {error}", "use numbers, texts, lists and dicts") from None
    check_length(len(found))
    return found


def check_length(length: int) -> None:
    """Refuses what no receiver has room for."""
    if length > MAX_BYTES:
        what = f"the event takes {length:,} bytes, a datagram at most {MAX_BYTES:,}"
        raise WireError(what, "send less in `extra`")


def decode(datagram: Bytes) -> EventDatagram:
    """The event in a datagram; anything else raises WireError."""
    try:
        check_length(len(datagram))
        return _DECODER.decode(datagram)
    except WireError:
        raise
    except _UNDECODABLE as error:
        raise WireError(f"not an event: {error}") from None


def decode_many(datagrams: Sequence[Bytes]) -> list[EventDatagram | None]:
    """Each datagram's event, None for those that hold none; `decode`, at the price of one call for many."""
    read = _DECODER.decode
    found: list[EventDatagram | None] = []
    for datagram in datagrams:
        try:
            found.append(read(datagram))
        except _UNDECODABLE:
            found.append(None)
    return found
