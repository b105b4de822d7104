"""A description comes back from its parts; whatever else is sent in its place is refused."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given, settings

from plerion.content.schema import Enumeration, Number, Schema
from plerion.index.address import AddressPlan
from plerion.index.content_index import ContentIndex
from plerion.index.propose import regular
from plerion.wire.control import PART_BYTES
from plerion.wire.description import Description, cut, digest, pack, unpack
from plerion.wire.error import WireError
from tests.laws.indexes import indexes

SCHEMA = Schema((Number("t", -10, 50), Enumeration("room", ("attic", "hall"))))
WIDE = Schema(tuple(Number(f"x{at}", 0, 1) for at in range(8)))
PLAIN = Description(regular(SCHEMA, 20), AddressPlan("ipv6", 3, 5), "raw")


@settings(max_examples=50, deadline=None)
@given(indexes())
def test_a_description_comes_back_from_its_parts(index: ContentIndex) -> None:
    sent = Description(index, AddressPlan(), "rewrite")
    parts = cut(pack(sent))
    assert all(len(part) == PART_BYTES for part in parts[:-1])
    assert unpack(b"".join(parts)) == sent


def test_equal_descriptions_have_equal_digests_and_others_do_not() -> None:
    assert digest(pack(PLAIN)) == digest(pack(unpack(pack(PLAIN))))
    assert digest(pack(PLAIN)) != digest(pack(Description(PLAIN.index, PLAIN.plan, "rewrite")))


def test_whatever_is_no_description_is_refused() -> None:
    packed = pack(PLAIN)
    bomb = zlib.compress(b"[" * (65 << 20), 1)
    wide = pack(Description(regular(WIDE, 112), AddressPlan(), "raw"))
    too_wide = zlib.compress(zlib.decompress(wide).replace(b'"epoch_bits":0', b'"epoch_bits":3'))
    for unfit in (
        b"",
        b"x",
        packed[:-1],
        bomb,
        zlib.compress(b"{}"),
        zlib.compress(b"[" * 100_000),
        too_wide,
    ):
        with pytest.raises(WireError):
            unpack(unfit)
    for at in range(0, len(packed), 7):
        damaged = bytearray(packed)
        damaged[at] ^= 0x55
        with pytest.raises(WireError):
            unpack(bytes(damaged))
