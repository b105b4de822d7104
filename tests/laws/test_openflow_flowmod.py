"""The fast encoder writes what the codec writes, and what a switch tells of it is read back as what was sent."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv6Network
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.mutations import flow_answer, told
from plerion.flow.admission import Admission
from plerion.flow.diff import Change, Kind, diff
from plerion.flow.entry import FlowEntry, Tables
from plerion.flow.fabric import Fabric, fabric
from plerion.flow.render import LastHop
from plerion.index.address import AddressPlan
from plerion.index.dz import MAX_LENGTH, WHOLE, Dz
from plerion.southbound.openflow.codec import encode
from plerion.southbound.openflow.flowmod import EntryTooLong, admission_mods, forwarding_mods
from plerion.southbound.openflow.inspection import admitted
from plerion.southbound.openflow.messages import BundleAdd, Command, FlowMod
from plerion.southbound.openflow.pipeline import Entry, Output, admission_entry, forwarding_entry
from plerion.southbound.openflow.readback import read_back
from plerion.southbound.openflow.shapes import SwitchShapes
from plerion.topology import SwitchId, Topology, line, ring, star
from tests.laws.networks import unwritten

NETWORKS = (ring(3), line(3), star(70))
plans = st.builds(AddressPlan, st.just("ipv6"), st.integers(0, 8), st.integers(0, 255))
hops: st.SearchStrategy[LastHop] = st.sampled_from(("raw", "rewrite"))


def cells(longest: int) -> st.SearchStrategy[Dz]:
    lengths = st.integers(0, longest) | st.just(longest)
    return lengths.flatmap(lambda n: st.integers(0, (1 << n) - 1).map(lambda bits: Dz(bits, n)))


@st.composite
def switches(draw: st.DrawFn) -> tuple[SwitchShapes, Tables, Tables]:
    """A switch, and two tables of it."""
    topology, plan = draw(st.sampled_from(NETWORKS)), draw(plans)
    switch = topology.switches[0]
    ports = st.frozensets(st.sampled_from(topology.ports(switch)))
    table = st.dictionaries(cells(plan.capacity), ports, max_size=8)
    whole = fabric(topology)
    old, new = (unwritten(whole, {switch: draw(table)}) for _ in range(2))
    return SwitchShapes(whole, plan, draw(hops), switch), old, new


def written_by_the_codec(
    of: SwitchShapes, changes: list[Change], first_xid: int, bundle: int | None
) -> bytes:
    octets = b""
    for xid, change in enumerate(changes, start=first_xid):
        entry = forwarding_entry(of.fabric.topology, of.plan, of.last_hop, of.switch, change.entry)
        command = Command.DELETE_STRICT if change.kind is Kind.DELETE else Command.ADD
        mod = FlowMod(command, entry)
        octets += encode(mod if bundle is None else BundleAdd(bundle, mod), xid)
    return octets


@settings(deadline=None)
@given(switches(), st.integers(1, 2**31), st.none() | st.integers(0, 2**32 - 1))
def test_a_template_writes_what_the_codec_writes_byte_for_byte(
    given_: tuple[SwitchShapes, Tables, Tables], first_xid: int, bundle: int | None
) -> None:
    of, old, new = given_
    change = diff(old, new)
    made = forwarding_mods(of, change.dz, change.kind, change.ports, first_xid, bundle)
    listed = list(change)
    in_order = [listed[row] for row in made.rows.tolist()]
    assert sorted(made.rows.tolist()) == list(range(len(change)))
    assert made.octets == written_by_the_codec(of, in_order, first_xid, bundle)
    kinds = [one.kind is Kind.DELETE for one in in_order]
    assert kinds == sorted(kinds, reverse=True)  # what goes makes room for what comes


@settings(deadline=None)
@given(plans, st.data())
def test_admissions_are_written_as_the_codec_writes_them(plan: AddressPlan, draw: st.DataObject) -> None:
    topology = star(70)
    switch = SwitchId("s2")
    of = SwitchShapes(fabric(topology), plan, "raw", switch)
    one = st.builds(Admission, st.just(switch), st.sampled_from(of.host_ports), cells(plan.capacity))
    removed, added = (draw.draw(st.lists(one, max_size=4)) for _ in range(2))
    made = admission_mods(of, removed, added, 9, 5)
    octets = b""
    for number, admission in enumerate([*removed, *added]):
        command = Command.DELETE_STRICT if number < len(removed) else Command.ADD
        mod = FlowMod(command, admission_entry(topology, plan, admission))
        octets += encode(BundleAdd(5, mod), 9 + number)
    assert made.octets == octets


def test_one_bit_more_or_less_would_be_noticed() -> None:
    of = SwitchShapes(fabric(ring(3)), AddressPlan(), "raw", SwitchId("s1"))
    ports = np.ones((1, 1), np.uint64)
    dz = Dz(5, 7)
    change = diff(unwritten(of.fabric, {}), unwritten(of.fabric, {of.switch: {dz: frozenset({1})}}))
    made = forwarding_mods(of, change.dz, change.kind, ports, 1, None).octets
    wrong = [replace(one, entry=FlowEntry(Dz(4, 7), one.entry.ports)) for one in change]
    assert made == written_by_the_codec(of, list(change), 1, None)
    assert made != written_by_the_codec(of, wrong, 1, None)
    assert made != written_by_the_codec(of, list(change), 2, None)


@settings(deadline=None)
@given(switches(), st.integers(0, 2**32))
def test_a_table_that_a_switch_tells_is_read_back(
    given_: tuple[SwitchShapes, Tables, Tables], seed: int
) -> None:
    of, table, _ = given_
    topology = of.fabric.topology
    entries = [
        forwarding_entry(topology, of.plan, of.last_hop, of.switch, entry)
        for entry in table.entries(of.switch)
    ]
    Random(seed).shuffle(entries)
    held = read_back(of, flow_answer(entries))
    assert held.others == ()
    assert list(held.dz) == list(table.dz)
    assert np.array_equal(held.ports, table.ports)
    assert int(held.packets.sum()) == sum(range(len(entries)))


@settings(deadline=None)
@given(plans, st.data())
def test_admissions_that_a_switch_tells_are_read_back(plan: AddressPlan, draw: st.DataObject) -> None:
    topology = star(4)
    of = SwitchShapes(fabric(topology), plan, "raw", SwitchId("s2"))
    one = st.builds(Admission, st.just(of.switch), st.sampled_from(of.host_ports), cells(plan.capacity))
    sent = draw.draw(st.frozensets(one, max_size=5))
    held = read_back(of, flow_answer(admission_entry(topology, plan, admission) for admission in sent))
    assert admitted(of, held) == sent
    assert len(held.dz) == 0


NETWORK: Topology = ring(3)
OF = SwitchShapes(fabric(NETWORK), AddressPlan(epoch_bits=2, epoch=1), "rewrite", SwitchId("s1"))
OURS = forwarding_entry(NETWORK, OF.plan, OF.last_hop, OF.switch, FlowEntry(Dz(5, 7), frozenset({1, 3})))


def altered() -> dict[str, Entry]:
    elsewhere = AddressPlan(epoch_bits=2, epoch=2).network(Dz(5, 7))
    assert isinstance(elsewhere, IPv6Network)
    return {
        "priority": replace(OURS, priority=OURS.priority + 1),
        "table": replace(OURS, table=0),
        "cookie": replace(OURS, cookie=OURS.cookie - 1),
        "another epoch": replace(OURS, match=replace(OURS.match, ipv6_dst=elsewhere)),
        "another field": replace(OURS, match=replace(OURS.match, in_port=1)),
        "a field less": replace(OURS, match=replace(OURS.match, ip_proto=None)),
        "no rewrite": replace(OURS, actions=(Output(1), Output(3))),
        "another order": replace(OURS, actions=OURS.actions[::-1]),
        "a port twice": replace(OURS, actions=(Output(1), *OURS.actions)),
        "no such port": replace(OURS, actions=(*OURS.actions, Output(9))),
        "another table after": replace(OURS, goto=2),
    }


@pytest.mark.parametrize("what", altered())
def test_an_entry_that_we_would_not_have_written_is_not_counted_as_ours(what: str) -> None:
    held = read_back(OF, flow_answer([OURS, altered()[what]]))
    assert list(held.dz) == [Dz(5, 7)]
    (other,) = held.others
    assert other.entry == altered()[what]


def test_an_entry_with_a_lifetime_is_not_ours() -> None:
    body = bytearray(told(OURS))
    body[14] = 1  # idle for 256 seconds
    assert len(read_back(OF, bytes(body)).dz) == 0


def test_an_entry_that_no_message_can_hold_is_refused() -> None:
    wide: Fabric = fabric(star(4200))
    many = SwitchShapes(wide, AddressPlan(), "raw", SwitchId("s1"))
    change = diff(
        unwritten(wide, {}),
        unwritten(wide, {many.switch: {WHOLE: frozenset(wide.topology.ports(many.switch))}}),
    )
    with pytest.raises(EntryTooLong, match="65535"):
        forwarding_mods(many, change.dz, change.kind, change.ports, 1, 1)


def test_the_longest_dz_has_no_mask_and_all_others_have() -> None:
    for length in (0, 1, 63, 64, 65, MAX_LENGTH - 1, MAX_LENGTH):
        dz = Dz((1 << length) - 1, length)
        entry = forwarding_entry(NETWORK, AddressPlan(), "raw", OF.switch, FlowEntry(dz, frozenset({1})))
        masked = b"\x80\x00\x37\x20" in encode(FlowMod(Command.ADD, entry), 1)
        assert masked is (length < MAX_LENGTH)
