"""No bytes stall or break what reads them: every message is read or refused, in bounded time."""

from __future__ import annotations

import random
import subprocess
import sys
from struct import pack
from time import perf_counter, thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from os_ken.ofproto import ofproto_v1_3_parser as parser  # type: ignore[import-untyped]  # ships no types
from os_ken.ofproto.ofproto_parser import header, msg  # type: ignore[import-untyped]  # ships no types
from os_ken.ofproto.ofproto_protocol import ProtocolDesc  # type: ignore[import-untyped]  # ships no types

from benchmarks.mutations import (
    SHAPES,
    a_packet_in,
    a_port,
    costly,
    flow_answer,
    message,
    multipart,
    mutated,
    samples,
    some_entries,
    survives,
    told,
)
from plerion.southbound.openflow.codec import decode, encode
from plerion.southbound.openflow.decode import port_counters, port_descriptions, table_counters
from plerion.southbound.openflow.messages import (
    EchoReply,
    EchoRequest,
    Error,
    Features,
    Hello,
    MalformedMessage,
    MultipartReply,
    PacketIn,
    PortDescription,
    PortStatus,
)
from plerion.southbound.openflow.oxm import MAX_FIELDS
from plerion.southbound.openflow.readback import MAX_OTHERS, read_back

MUTATED = 20_000
SLOWEST_SECONDS = 0.5  # a message takes microseconds; the machine may be doing other things, too


def test_a_mutated_message_is_read_or_refused_and_never_stalls() -> None:
    chance, valid, slowest = random.Random(20_707), samples(), 0.0
    assert all(survives(frame) for frame in valid)
    read = 0
    for i in range(MUTATED):
        began = perf_counter()
        read += survives(mutated(valid[i % len(valid)], chance))
        slowest = max(slowest, perf_counter() - began)
    assert slowest < SLOWEST_SECONDS
    assert MUTATED // 10 < read < MUTATED - MUTATED // 10  # both happen, or the wounds say nothing


def test_the_costliest_messages_take_bounded_time() -> None:
    for frame in costly():
        assert len(frame) > 60_000
        began = thread_time()
        survives(frame)
        assert thread_time() - began < SLOWEST_SECONDS


def test_a_switch_cannot_make_us_read_entries_without_end() -> None:
    foreign = told(some_entries()[-1])
    assert len(read_back(SHAPES, foreign * 2000).others) == 2000
    with pytest.raises(MalformedMessage, match="50001 entries"):
        read_back(SHAPES, foreign * (MAX_OTHERS + 1))


def test_a_match_with_more_fields_than_there_are_is_refused() -> None:
    for count, fits in ((MAX_FIELDS, True), (MAX_FIELDS + 1, False)):
        port = pack("!II", 0x8000_0004, 1)
        others = b"".join(pack("!HBB", 1, number << 1, 0) for number in range(count - 1))
        match = pack("!HH", 1, 4 + len(port + others)) + port + others
        frame = message(10, pack("!IHBBQ", 0, 0, 1, 0, 5) + match + bytes(-len(match) % 8 + 2))
        assert survives(frame) is fits


@given(st.binary(max_size=200), st.sampled_from([0, 1, 2, 4, 6, 10, 12, 19, 21]))
def test_any_bytes_behind_a_header_are_read_or_refused(body: bytes, kind: int) -> None:
    survives(message(kind, body))


def test_the_decoder_that_is_not_used_stalls_on_such_messages() -> None:
    """Why we have our own, and that the law above can fail: os_ken loops on a hello with an empty element."""
    stalling = message(0, bytes.fromhex("0002000000000000"))
    program = (
        "from os_ken.ofproto import ofproto_v1_3_parser as p\n"
        "from os_ken.ofproto.ofproto_protocol import ProtocolDesc\n"
        f"p.OFPHello.parser(ProtocolDesc(version=4), 4, 0, 16, 7, bytes.fromhex('{stalling.hex()}'))\n"
    )
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run([sys.executable, "-c", program], timeout=3, check=False)
    assert not survives(stalling)


def test_a_message_that_ends_early_is_refused_wherever_it_ends() -> None:
    for frame in samples():
        for length in range(8, len(frame)):
            cut = bytearray(frame[:length])
            cut[2:4] = length.to_bytes(2, "big")
            survives(bytes(cut))
            with pytest.raises(MalformedMessage):
                decode(frame[:length])


def by_os_ken(frame: bytes) -> object:
    return msg(ProtocolDesc(version=4), *header(frame), frame)


def test_what_the_reference_reads_is_what_we_read() -> None:
    packet = by_os_ken(a_packet_in(b"abc", 9))
    assert isinstance(packet, parser.OFPPacketIn)
    assert decode(a_packet_in(b"abc", 9))[1] == PacketIn(packet.match["in_port"], packet.cookie, packet.data)
    features = by_os_ken(samples()[5])
    ours = decode(samples()[5])[1]
    assert ours == Features(
        features.datapath_id,  # type: ignore[attr-defined]  # ships no types
        features.n_tables,  # type: ignore[attr-defined]  # ships no types
        features.auxiliary_id,  # type: ignore[attr-defined]  # ships no types
        features.capabilities,  # type: ignore[attr-defined]  # ships no types
    )
    for state, config, up in ((0, 0, True), (1, 0, False), (0, 1, False)):
        frame = message(12, bytes([1]) + bytes(7) + a_port(4, b"x", config, state))
        status = by_os_ken(frame)
        assert isinstance(status, parser.OFPPortStatus)
        assert decode(frame)[1] == PortStatus(
            PortDescription(status.desc.port_no, "x", up), status.reason == 1
        )


def test_rows_of_statistics_are_those_of_the_reference() -> None:
    _, _, *rest = samples()
    replies = [frame for frame in rest if frame[1] == 19]
    for frame in replies:
        reply = decode(frame)[1]
        assert isinstance(reply, MultipartReply)
        if reply.part not in (1, 3, 4, 13) or reply.more:
            continue
        rows = by_os_ken(frame).body  # type: ignore[attr-defined]  # ships no types
        if reply.part == 3:
            found = [(row.table_id, row.active_count, row.lookup_count, row.matched_count) for row in rows]
            assert [(r.table, r.entries, r.lookups, r.matches) for r in table_counters(reply.body)] == found
        elif reply.part == 4:
            ports = [(row.port_no, row.rx_packets, row.tx_packets) for row in rows]
            assert [(r.number, r.received, r.sent) for r in port_counters(reply.body)] == ports
        elif reply.part == 13:
            assert [r.number for r in port_descriptions(reply.body)] == [row.port_no for row in rows]
        else:
            held = read_back(SHAPES, reply.body)
            assert len(held) == len(rows) == len(some_entries())
            assert {one.priority for one in held.others} <= {row.priority for row in rows}


@given(
    st.sampled_from([Hello(), EchoRequest(b"x"), EchoReply(b""), Error(5, 1, b"abc")]),
    st.integers(0, 2**32 - 1),
)
def test_what_both_sides_say_is_read_as_it_was_written(
    value: Hello | EchoRequest | EchoReply | Error, xid: int
) -> None:
    assert decode(encode(value, xid)) == (xid, value)


def test_a_hello_with_a_list_is_judged_by_the_list_and_without_by_its_version() -> None:
    for version, versions, ours in (
        (4, None, True),
        (6, None, True),
        (1, None, False),
        (6, {1, 4}, True),
        (6, {6}, False),
    ):
        listed = b"" if versions is None else pack("!HHI", 1, 8, sum(1 << one for one in versions))
        hello = decode(message(0, listed, version=version))[1]
        assert isinstance(hello, Hello)
        assert hello.speaks_ours is ours


def test_a_list_of_entries_with_a_broken_chain_is_refused_whole() -> None:
    body = flow_answer(some_entries())
    for length in (1, 40, len(body) - 1):
        with pytest.raises(MalformedMessage):
            read_back(SHAPES, body[:length])
    assert survives(multipart(1, body))
