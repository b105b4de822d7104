"""Beacons come back as they were sent, nothing else passes for one, and a comparison finds every difference."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from plerion.topology import Port, Topology
from plerion.topology.discovery import beacon, compare, sender
from tests.laws.topologies import topologies

KEY = b"0" * 32
ports = st.builds(Port, st.text(min_size=1, max_size=40).filter(lambda t: t.strip()), st.integers(0, 65_279))


@given(ports)
def test_a_beacon_names_the_port_that_it_was_sent_out_of(place: Port) -> None:
    assert sender(beacon(place, KEY), KEY) == place


@given(ports, st.integers(14, 200), st.integers(1, 255))
def test_a_beacon_with_any_octet_changed_names_no_other_port(place: Port, at: int, change: int) -> None:
    frame = bytearray(beacon(place, KEY))
    at = 14 + (at - 14) % (len(frame) - 14)
    frame[at] ^= change
    assert sender(bytes(frame), KEY) in (None, place)


@given(st.binary(max_size=200))
def test_no_frame_made_up_without_the_key_passes(frame: bytes) -> None:
    assert sender(frame, KEY) is None
    assert sender(b"\x00" * 12 + b"\x88\xcc" + frame, KEY) is None


def heard(topology: Topology) -> dict[Port, Port]:
    """What beacons teach when every cable is where it should be."""
    switches = set(topology.switches)
    pairs = [link.ends for link in topology.links if {end.node for end in link.ends} <= switches]
    return {at: found for a, b in pairs for at, found in ((a, b), (b, a))}


@settings(deadline=None)
@given(topologies(), st.data())
def test_a_comparison_is_silent_exactly_when_everything_is_heard_where_it_should_be(
    topology: Topology, data: st.DataObject
) -> None:
    right = heard(topology)
    assert not compare(topology, right)
    if not right:
        return
    at = data.draw(st.sampled_from(sorted(right)))
    silent = {port: found for port, found in right.items() if port != at}
    assert compare(topology, silent).one_way
    both = {port: found for port, found in silent.items() if port != right[at]}
    assert compare(topology, both).missing
    other = data.draw(st.sampled_from(sorted(right)))
    if other != right[at]:
        assert [wrong.at for wrong in compare(topology, right | {at: other}).miswired] == [at]
