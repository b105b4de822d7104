"""What a host must know of the network: the content index, how its codes become addresses, and the last hop.

The document is JSON, compressed, and travels in parts of PART_BYTES; its digest is that of the compressed bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import msgspec

from plerion.flow.render import LastHop
from plerion.index.address import AddressPlan, Family
from plerion.index.codec import MAX_BYTES, from_json, to_json
from plerion.index.content_index import ContentIndex
from plerion.wire.control import MAX_PARTS, PART_BYTES
from plerion.wire.error import WireError

MAX_COMPRESSED: Final = MAX_PARTS * PART_BYTES


@dataclass(frozen=True, slots=True)
class Description:
    """All that a client needs to address its own events and to read others'."""

    index: ContentIndex
    plan: AddressPlan
    last_hop: LastHop


class _Plan(msgspec.Struct, forbid_unknown_fields=True):
    family: Family
    epoch_bits: int
    epoch: int


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    index: msgspec.Raw
    plan: _Plan
    last_hop: LastHop


def pack(description: Description) -> bytes:
    """The compressed document; equal descriptions give equal bytes."""
    plan = _Plan(description.plan.family, description.plan.epoch_bits, description.plan.epoch)
    document = _Document(msgspec.Raw(to_json(description.index)), plan, description.last_hop)
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
        return Description(index, plan, document.last_hop)
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
