"""What a host must know of the network: the content index, how its events are addressed and marked, and the last hop.

It changes when the network changes its index, perhaps several times: then `vlan` and `groups` say how to send while
switches are between two states (see `update.plan.Sending`, which is the same thing on paper).

The document is JSON, compressed, and travels in parts of PART_BYTES; its digest is that of the compressed bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from plerion.flow.render import LastHop
from plerion.index.address import AddressPlan, Family
from plerion.index.codec import MAX_BYTES, from_json, to_json
from plerion.index.content_index import ContentIndex
from plerion.index.dz import Dz
from plerion.wire.control import MAX_PARTS, PART_BYTES
from plerion.wire.error import WireError

MAX_COMPRESSED: Final = MAX_PARTS * PART_BYTES
MAX_VLAN: Final = 4_094
MAX_GROUPS: Final = 256


@dataclass(frozen=True, slots=True)
class Description:
    """All that a client needs to address its own events and to read others'."""

    index: ContentIndex
    plan: AddressPlan
    last_hop: LastHop
    vlan: int = 0  # the tag that events carry; 0 is none
    groups: tuple[Dz, ...] = ()  # where given, an event goes to the first group whose cell covers its code


class _Plan(msgspec.Struct, forbid_unknown_fields=True):
    family: Family
    epoch_bits: int
    epoch: int


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    index: msgspec.Raw
    plan: _Plan
    last_hop: LastHop
    vlan: Annotated[int, Meta(ge=0, le=MAX_VLAN)] = 0
    groups: Annotated[list[str], Meta(max_length=MAX_GROUPS)] = []


def pack(description: Description) -> bytes:
    """The compressed document; equal descriptions give equal bytes."""
    plan = _Plan(description.plan.family, description.plan.epoch_bits, description.plan.epoch)
    document = _Document(
        msgspec.Raw(to_json(description.index)),
        plan,
        description.last_hop,
        description.vlan,
        [str(cell) for cell in description.groups],
    )
    packed = zlib.compress(msgspec.json.encode(document), 9)
    if len(packed) > MAX_COMPRESSED:
        what = f"the description takes {len(packed):,} bytes, at most {MAX_COMPRESSED:,} can be sent"
        raise WireError(what, "build an index with fewer cuts or clusters")
    return packed


def unpack(packed: bytes) -> Description:
    """The description in a compressed document; anything else raises WireError, before it fills the memory."""
    try:
        machine = zlib.decompressobj()
        text = machine.decompress(packed, MAX_BYTES)
        if not machine.eof:
            raise WireError("the description is cut short or too large", "fetch it again")
        document = msgspec.json.decode(text, type=_Document)
        plan = AddressPlan(document.plan.family, document.plan.epoch_bits, document.plan.epoch)
        index = from_json(bytes(document.index))
        if index.bits > plan.capacity:
            raise WireError(f"codes of {index.bits} bits in addresses with room for {plan.capacity}")
        groups = tuple(Dz.parse(text) for text in document.groups)
        return Description(index, plan, document.last_hop, document.vlan, groups)
    except WireError:
        raise
    except (zlib.error, msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise WireError(f"not a description: {error}") from None


def digest(packed: bytes) -> str:
    """By which both sides know that they mean the same."""
    return sha256(packed).hexdigest()


def cut(packed: bytes) -> Sequence[bytes]:
    """The parts of a packed description, in order."""
    return [packed[at : at + PART_BYTES] for at in range(0, len(packed), PART_BYTES)]
