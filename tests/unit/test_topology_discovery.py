"""Beacons and what they are compared with: every way in which a cable can be wrong is named."""

from __future__ import annotations

import pytest

from plerion.topology import Link, Port, SwitchId, Topology, TopologyError, line
from plerion.topology.discovery import LearnedLinks, Wrong, beacon, compare, is_beacon, sender

KEY = b"k" * 32
LINE = line(3)
A, B, C, D = Port("s1", 1), Port("s2", 1), Port("s2", 2), Port("s3", 1)  # s1:1–s2:1, s2:2–s3:1
RIGHT = {A: B, B: A, C: D, D: C}


def test_what_is_as_declared_differs_in_nothing() -> None:
    assert not compare(LINE, RIGHT)


def test_a_silent_link_is_missing_and_one_heard_at_one_end_is_one_way() -> None:
    found = compare(LINE, {A: B})
    assert found.missing == (LINE.links[1],)
    assert found.one_way == (LINE.links[0],)
    assert not found.miswired


def test_a_cable_in_the_wrong_port_is_miswired_at_both_its_ends() -> None:
    found = compare(LINE, {A: D, D: A})
    assert found.miswired == (Wrong(A, D, B), Wrong(D, A, C))
    assert (found.missing, found.unexpected) == ((), ())


def test_a_switch_where_a_host_or_nothing_is_declared_is_unexpected() -> None:
    host_port = LINE.attachment(LINE.hosts[0])
    found = compare(LINE, RIGHT | {host_port: C, Port("s1", 9): D, Port("s7", 1): A})
    assert [wrong.at for wrong in found.unexpected] == [host_port, Port("s1", 9), Port("s7", 1)]
    assert found.unexpected[0].declared == LINE.peer("s1", host_port.number)
    assert found.unexpected[1].declared is None


def test_what_was_heard_too_long_ago_is_forgotten() -> None:
    learned = LearnedLinks()
    learned.hear(A, B, now=0.0)
    learned.hear(B, A, now=8.0)
    assert learned.recent(10.0, seconds=5.0) == {B: A}
    assert learned.recent(10.0, seconds=50.0) == {B: A}, "and not remembered again"


def test_a_forged_or_foreign_frame_teaches_nothing() -> None:
    frame = beacon(A, KEY)
    assert sender(frame, KEY) == A
    assert sender(frame, b"another key" * 3) is None
    assert is_beacon(frame)
    for other in (b"", frame[:13], frame[:14], frame[:-20], b"\x00" * 60, frame.replace(b"s1", b"s2")):
        assert sender(other, KEY) is None


def test_a_name_that_no_frame_has_room_for_is_refused() -> None:
    name = SwitchId("s" * 600)
    topology = Topology((name, SwitchId("s2")), (), (Link(name, 1, "s2", 1),))
    with pytest.raises(TopologyError, match="too long"):
        beacon(topology.links[0].ends[0], KEY)
