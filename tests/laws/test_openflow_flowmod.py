"""The fast encoder writes what the codec writes, and what a switch tells of it is read back as what was sent."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv6Address, IPv6Network
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.mutations import flow_answer, told
from plerion.flow.entry import FlowEntry, tables_of
from plerion.flow.fabric import Fabric, fabric
from plerion.flow.render import LastHop
from plerion.index.address import AddressPlan
from plerion.index.dz import MAX_LENGTH, WHOLE, Dz, DzError
from plerion.southbound.openflow.addresses import destinations, meaning
from plerion.southbound.openflow.codec import encode
from plerion.southbound.openflow.flowmod import EntryTooLong, flow_mods
from plerion.southbound.openflow.messages import BundleAdd, Command, FlowMod
from plerion.southbound.openflow.pipeline import TAG, Entry, Output, PopTag, PushTag, SetField
from plerion.southbound.openflow.readback import read_back, sorted_out
from plerion.southbound.openflow.shapes import SwitchShapes
from plerion.southbound.openflow.tags import TAGGED, parted, united
from plerion.southbound.openflow.tags import told as as_rows
from plerion.topology import SwitchId, Topology, line, ring, star
from plerion.update.canonical import canonical
from plerion.update.entries import ANY, GROUPS, Changes, Entries, Side, Table, added, changes, listed
from plerion.update.entries import Entry as Row
from plerion.update.plan import same
from plerion.update.state import UNSTAMPED, forwarding
from tests.laws.updates import some_dz, some_entries, some_epoch

NETWORKS = (ring(3), line(3), star(70))
chances = st.randoms(use_true_random=False)


def drawn(chance: Random, most: int = 8) -> tuple[SwitchShapes, Entries, Entries]:
    """A switch, and two sets of rows of it."""
    topology, bits = chance.choice(NETWORKS), chance.choice((0, 0, 1, 2, 8))
    whole = fabric(topology)
    hop: LastHop = "raw" if chance.random() < 0.5 else "rewrite"
    switch = chance.choice(topology.switches[:2])
    of = SwitchShapes(whole, AddressPlan(epoch_bits=bits, epoch=chance.randrange(256)), hop, switch)
    old, new = (some_entries(chance, whole, bits, most) for _ in range(2))
    return of, parted(old[old.switch == of.number]), parted(new[new.switch == of.number])


def written_by_the_codec(of: SwitchShapes, change: Changes, first_xid: int, bundle: int | None) -> bytes:
    listed_changes = [(Command.DELETE_STRICT, row) for row in change.removed]
    listed_changes += [(Command.ADD, row) for row in change.added]
    octets = b""
    for xid, (command, row) in enumerate(listed_changes, start=first_xid):
        mod = FlowMod(command, of.dialect.entry(row))
        octets += encode(mod if bundle is None else BundleAdd(bundle, mod), xid)
    return octets


@settings(deadline=None)
@given(chances, st.integers(1, 2**31), st.none() | st.integers(0, 2**32 - 1))
def test_a_template_writes_what_the_codec_writes_byte_for_byte(
    chance: Random, first_xid: int, bundle: int | None
) -> None:
    of, old, new = drawn(chance)
    change = changes(old, new)
    assert flow_mods(of, change, first_xid, bundle) == written_by_the_codec(of, change, first_xid, bundle)


def test_one_bit_more_or_less_would_be_noticed() -> None:
    of = SwitchShapes(fabric(ring(3)), AddressPlan(), "raw", SwitchId("s1"))
    table = tables_of(of.fabric, {of.switch: [FlowEntry(Dz(5, 7), frozenset({1}))]})
    change = added(forwarding(table, Side.BETWEEN, UNSTAMPED))
    made = flow_mods(of, change, 1, None)
    wrong = listed(of.fabric, [replace(row, dz=Dz(4, 7)) for row in change.added])
    assert made == written_by_the_codec(of, change, 1, None)
    assert made != written_by_the_codec(of, added(wrong), 1, None)
    assert made != written_by_the_codec(of, change, 2, None)


@settings(deadline=None)
@given(chances)
def test_rows_that_a_switch_tells_are_read_back(chance: Random) -> None:
    of, rows, _ = drawn(chance)
    entries = [of.dialect.entry(row) for row in rows]
    assert len(set(entries)) == len(entries)
    chance.shuffle(entries)
    held = read_back(of, flow_answer(entries))
    found, rest = sorted_out(of, held)
    assert rest == []
    assert same(found, rows)
    forwards = [number for number, entry in enumerate(entries) if entry.table == Table.FORWARDING]
    assert int(held.packets.sum()) == sum(forwards)


@settings(deadline=None)
@given(chances)
def test_a_row_of_a_switch_means_what_it_was_written_for(chance: Random) -> None:
    of, rows, _ = drawn(chance)
    for row in rows:
        assert of.dialect.row(of.switch, of.dialect.entry(row)) == row


@settings(deadline=None)
@given(chances)
def test_entries_are_parted_and_united_without_a_loss(chance: Random) -> None:
    whole = fabric(chance.choice(NETWORKS[:2]))
    entries = some_entries(chance, whole, 1)
    rows = parted(entries)
    assert same(united(rows), canonical(entries))
    assert same(parted(united(rows)), rows)
    assert len(entries) <= len(rows) <= 2 * len(entries)
    assert not (rows[rows.vlan == ANY].untag | (rows[rows.vlan == ANY].set_vlan != ANY)).any()


@settings(deadline=None)
@given(chances)
def test_what_is_told_of_a_change_of_entries_is_the_change_of_their_rows(chance: Random) -> None:
    whole = fabric(chance.choice(NETWORKS[:2]))
    old, new = (some_entries(chance, whole, 1) for _ in range(2))
    change = as_rows(changes(old, new))
    model = {place(row): row for row in parted(old)}
    for row in change.removed:
        assert place(row) in model
        del model[place(row)]
    model |= {place(row): row for row in change.added}
    assert set(model.values()) == set(parted(new))


def place(row: Row) -> tuple[object, ...]:
    return row.table, row.switch, row.dz, row.in_port, row.vlan, row.epoch, row.priority


@settings(deadline=None)
@given(chances, st.integers(0, 8))
def test_destinations_are_those_of_the_definition_and_say_what_they_were_made_from(
    chance: Random, bits: int
) -> None:
    of = SwitchShapes(fabric(ring(3)), AddressPlan(epoch_bits=bits), "raw", SwitchId("s1"))
    pairs = [(some_epoch(chance, bits), some_dz(chance, MAX_LENGTH - bits)) for _ in range(12)]
    rows = [
        Row(Table.FORWARDING, of.switch, dz, ANY, ANY, epoch, 1, frozenset(), ANY, False, False, Side.BETWEEN)
        for epoch, dz in pairs
    ]
    entries = listed(of.fabric, rows)
    words = destinations(of.plan, entries.epoch, entries.dz)
    for (epoch, dz), (high, low, mask_high, mask_low) in zip(pairs, words.tolist(), strict=True):
        to = of.dialect.destination(epoch, dz)
        address, mask = (to.network_address, to.netmask) if isinstance(to, IPv6Network) else to
        assert (int(address), int(mask)) == (high << 64 | low, mask_high << 64 | mask_low)
    found = meaning(of.plan, words)
    assert found.ours.all()
    assert list(zip(found.epoch.tolist(), found.dz, strict=True)) == pairs


@given(st.integers(0, 8), st.lists(st.integers(0, 2**64 - 1), min_size=4, max_size=4), st.booleans())
def test_any_other_destination_is_not_ours(bits: int, words: list[int], near: bool) -> None:
    plan = AddressPlan(epoch_bits=bits)
    if near:
        words[0] = 0xFF0E << 48 | words[0] >> 16
        words[2] |= 0xFFFF << 48
    found = meaning(plan, np.array([words], np.uint64))
    if found.ours.all():
        assert destinations(plan, found.epoch, found.dz).tolist() == [words]


@pytest.mark.parametrize(
    ("epoch", "bits", "priority", "dz", "said"),
    [
        (0, 0, 1, WHOLE, "addresses have 0 bits"),
        (4, 2, 1, WHOLE, "addresses have 2 bits"),
        (ANY, 0, 0, WHOLE, "switches know 1 to 65535"),
        (ANY, 0, 65536, WHOLE, "switches know 1 to 65535"),
        (1, 2, 1, Dz(0, 111), "room for 110 bits"),
    ],
)
def test_what_no_switch_can_match_is_refused(epoch: int, bits: int, priority: int, dz: Dz, said: str) -> None:
    of = SwitchShapes(fabric(ring(3)), AddressPlan(epoch_bits=bits), "raw", SwitchId("s1"))
    row = Row(
        Table.FORWARDING,
        of.switch,
        dz,
        ANY,
        ANY,
        epoch,
        priority,
        frozenset(),
        ANY,
        False,
        False,
        Side.BETWEEN,
    )
    for refusing in (
        lambda: of.dialect.entry(row),
        lambda: flow_mods(of, added(listed(of.fabric, [row])), 1, 1),
    ):
        with pytest.raises((ValueError, DzError), match=said):
            refusing()


NETWORK: Topology = ring(3)
OF = SwitchShapes(fabric(NETWORK), AddressPlan(epoch_bits=2), "rewrite", SwitchId("s1"))
ROW = Row(
    Table.FORWARDING, OF.switch, Dz(5, 7), 1, 9, 1, 107, frozenset({2, 3}), ANY, True, False, Side.BETWEEN
)
OURS = OF.dialect.entry(ROW)
GIVEN = OURS.actions


def altered() -> dict[str, Entry]:
    match = OURS.match
    return {
        "table": replace(OURS, table=2),
        "cookie": replace(OURS, cookie=OURS.cookie - 1),
        "another field": replace(OURS, match=replace(match, udp_dst=1)),
        "a field less": replace(OURS, match=replace(match, ip_proto=None)),
        "no port of the switch": replace(OURS, match=replace(match, in_port=99)),
        "an address of nobody": replace(OURS, match=replace(match, ipv6_dst=IPv6Network("ff0f::/20"))),
        "half an epoch": replace(OURS, match=replace(match, ipv6_dst=IPv6Network("ff0e::/17"))),
        "some bits of a code": replace(
            OURS, match=replace(match, ipv6_dst=(IPv6Address("ff0e::1"), IPv6Address("ffff::1")))
        ),
        "some bits of a tag": replace(OURS, match=replace(match, vlan_vid=(TAG, TAG | 1))),
        "a tag without a number": replace(OURS, match=replace(match, vlan_vid=TAG)),
        "a tag off where none need be": replace(OURS, match=replace(match, vlan_vid=None)),
        "a tag off where none is": replace(OURS, match=replace(match, vlan_vid=0)),
        "a tag off too early": replace(OURS, actions=(PopTag(), *(one for one in GIVEN if one != PopTag()))),
        "a tag on": replace(OURS, actions=(PushTag(), *GIVEN)),
        "another tag": replace(OURS, actions=(SetField("vlan_vid", TAG | 3), *GIVEN)),
        "no rewrite": replace(OURS, actions=(Output(2), PopTag(), Output(3))),
        "another order": replace(OURS, actions=GIVEN[::-1]),
        "a port twice": replace(OURS, actions=(Output(2), *GIVEN)),
        "no such port": replace(OURS, actions=(*GIVEN, Output(9))),
        "to us and elsewhere": replace(OURS, actions=(Output(0xFFFFFFFD, 0xFFFF), *GIVEN)),
        "to us in part": replace(OURS, actions=(Output(0xFFFFFFFD, 128),)),
        "another table after": replace(OURS, goto=2),
    }


@pytest.mark.parametrize("what", altered())
def test_an_entry_that_we_would_not_have_written_is_not_counted_as_ours(what: str) -> None:
    held = read_back(OF, flow_answer([OURS, altered()[what]]))
    assert list(held.forwarding) == [ROW]
    (other,) = held.others
    assert other.entry == altered()[what]
    assert sorted_out(OF, held)[1] == [other]


def edge(vlan: int, set_vlan: int, bridge: bool = False) -> Row:
    return Row(
        Table.EDGE, OF.switch, Dz(5, 7), 3, vlan, 1, 200, frozenset(), set_vlan, False, bridge, Side.BETWEEN
    )


@pytest.mark.parametrize(
    ("row", "does"),
    [
        (edge(ANY, ANY), ()),
        (edge(0, 7), (PushTag(), SetField("vlan_vid", TAG | 7))),
        (edge(5, 7), (SetField("vlan_vid", TAG | 7),)),
        (edge(TAGGED, 7), (SetField("vlan_vid", TAG | 7),)),
        (edge(5, 0), (PopTag(),)),
        (edge(TAGGED, 0), (PopTag(),)),
        (edge(5, ANY, bridge=True), (Output(0xFFFFFFFD, 0xFFFF),)),
    ],
)
def test_the_edge_tags_what_it_lets_in(row: Row, does: tuple[object, ...]) -> None:
    entry = OF.dialect.entry(row)
    assert entry.actions == does
    assert entry.goto == (None if row.bridge else 1)
    assert str(entry.match.ipv6_src) == "fd00::1"


def test_an_entry_with_a_lifetime_is_not_ours() -> None:
    body = bytearray(told(OURS))
    body[14] = 1  # idle for 256 seconds
    assert len(read_back(OF, bytes(body)).forwarding) == 0


def test_a_row_that_a_switch_gives_twice_counts_once() -> None:
    assert len(read_back(OF, flow_answer([OURS, OURS])).forwarding) == 1


def test_only_the_edge_sets_tags() -> None:
    with pytest.raises(ValueError, match="only the edge does"):
        OF.dialect.entry(replace(ROW, set_vlan=3))
    with pytest.raises(ValueError, match="no host at s1:1"):
        OF.dialect.entry(replace(edge(ANY, ANY), in_port=1))


def test_an_entry_that_no_message_can_hold_is_refused() -> None:
    wide: Fabric = fabric(star(4200))
    many = SwitchShapes(wide, AddressPlan(), "raw", SwitchId("s1"))
    ports = frozenset(wide.topology.ports(many.switch))
    table = tables_of(wide, {many.switch: [FlowEntry(WHOLE, ports)]})
    with pytest.raises(EntryTooLong, match="65535"):
        flow_mods(many, added(forwarding(table, Side.BETWEEN, UNSTAMPED)), 1, 1)


def test_the_longest_dz_has_no_mask_and_all_others_have() -> None:
    of = SwitchShapes(fabric(NETWORK), AddressPlan(), "raw", OF.switch)
    for epoch in (ANY, GROUPS):
        for length in (0, 1, 63, 64, 65, MAX_LENGTH - 1, MAX_LENGTH):
            row = replace(ROW, dz=Dz((1 << length) - 1, length), epoch=epoch)
            octets = flow_mods(of, added(listed(of.fabric, [row])), 1, None)
            assert (b"\x80\x00\x37\x20" in octets) is (length < MAX_LENGTH)
