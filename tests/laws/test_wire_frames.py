"""A frame comes back from its bytes, and any damage to what the checksum covers is noticed."""

from __future__ import annotations

from ipaddress import IPv6Address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plerion.wire.error import WireError
from plerion.wire.frame import UdpFrame, build, checksum_of, mac_bytes, multicast_mac, parse

law = settings(max_examples=200, deadline=None)
macs = st.binary(min_size=6, max_size=6)
addresses = st.integers(0, 2**128 - 1).map(IPv6Address)
ports = st.integers(0, 65_535)
frames = st.builds(UdpFrame, macs, macs, addresses, addresses, ports, ports, st.binary(max_size=100))
CHECKED = 14 + 8  # the addresses begin here; all behind them is under the checksum


def sum_by_words(text: bytes) -> int:
    """The definition: add 16-bit words, put the carry back, take the complement."""
    padded = text + b"\0" * (len(text) & 1)
    total = sum(int.from_bytes(padded[at : at + 2], "big") for at in range(0, len(padded), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


@law
@given(frames)
def test_a_frame_comes_back_from_its_bytes(sent: UdpFrame) -> None:
    assert parse(build(sent)) == sent


@law
@given(frames, st.binary(max_size=20))
def test_padding_behind_the_datagram_is_left_out(sent: UdpFrame, padding: bytes) -> None:
    assert parse(build(sent) + padding) == sent


@law
@given(addresses, addresses, st.binary(max_size=60))
def test_the_checksum_is_the_one_of_the_standard(source: IPv6Address, to: IPv6Address, udp: bytes) -> None:
    pseudo = source.packed + to.packed + len(udp).to_bytes(4, "big") + b"\0\0\0\x11"
    assert checksum_of(source.packed, to.packed, udp) == sum_by_words(pseudo + udp)


@law
@given(frames, st.data())
def test_a_changed_byte_under_the_checksum_is_noticed(sent: UdpFrame, data: st.DataObject) -> None:
    frame = bytearray(build(sent))
    at = data.draw(st.integers(CHECKED, len(frame) - 1))
    frame[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(WireError):
        parse(bytes(frame))


@law
@given(frames, st.data())
def test_a_frame_that_is_cut_short_is_refused(sent: UdpFrame, data: st.DataObject) -> None:
    frame = build(sent)
    with pytest.raises(WireError):
        parse(frame[: data.draw(st.integers(0, len(frame) - 1))])


@law
@given(st.binary(max_size=120) | frames.map(build), st.data())
def test_any_bytes_are_a_frame_or_refused(frame: bytes, data: st.DataObject) -> None:
    damaged = bytearray(frame)
    for _ in range(data.draw(st.integers(0, 3)) if damaged else 0):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = parse(bytes(damaged))
    except WireError:
        return
    assert parse(build(found)) == found


def test_a_datagram_whose_sum_is_zero_says_so_in_its_other_form() -> None:
    zero = IPv6Address(0)
    for last in range(65_536):
        sent = UdpFrame(b"\0" * 6, b"\0" * 6, zero, zero, 0, 0, last.to_bytes(2, "big"))
        udp = b"\0\0\0\0\0\x0a\0\0" + sent.payload
        if checksum_of(zero.packed, zero.packed, udp) == 0:
            assert build(sent)[60:62] == b"\xff\xff"
            assert parse(build(sent)) == sent
            return
    raise AssertionError("one of all payloads has the sum zero")


def test_a_datagram_without_checksum_is_refused() -> None:
    frame = bytearray(build(UdpFrame(b"\2" * 6, b"\4" * 6, IPv6Address(1), IPv6Address(2), 3, 4, b"x")))
    frame[60:62] = b"\0\0"
    with pytest.raises(WireError, match="checksum"):
        parse(bytes(frame))


def test_a_reply_goes_back_to_where_the_frame_came_from() -> None:
    asked = UdpFrame(
        b"\2" * 6, b"\x33" * 6, IPv6Address("fd00::1"), IPv6Address("ff18::1"), 40_000, 20_707, b"?"
    )
    told = asked.reply(b"\4" * 6, IPv6Address("fd00::ffff"), b"!")
    assert (told.destination_mac, told.destination, told.destination_port) == (
        b"\2" * 6,
        asked.source,
        40_000,
    )
    assert (told.source_mac, told.source, told.source_port) == (b"\4" * 6, IPv6Address("fd00::ffff"), 20_707)


def test_parts_that_do_not_fit_are_refused() -> None:
    good = UdpFrame(b"\2" * 6, b"\4" * 6, IPv6Address(1), IPv6Address(2), 3, 4, b"x")
    for unfit in (
        UdpFrame(b"", good.destination_mac, good.source, good.destination, 3, 4, b""),
        UdpFrame(good.source_mac, good.destination_mac, good.source, good.destination, 70_000, 4, b""),
        UdpFrame(good.source_mac, good.destination_mac, good.source, good.destination, 3, 4, b"x" * 70_000),
    ):
        with pytest.raises(WireError):
            build(unfit)
    assert mac_bytes("02:00:00:00:00:0a") == b"\x02\0\0\0\0\x0a"
    assert multicast_mac(IPv6Address("ff0e::1:2")) == b"\x33\x33\0\x01\0\x02"
    with pytest.raises(WireError):
        mac_bytes("02:00")
