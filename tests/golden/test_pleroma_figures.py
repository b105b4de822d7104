"""Seed 000, Figures 2 to 4: the relations, the tables and the five cases of its text, switch by switch.

The seed's text refers to pictures that it does not contain. What it says of Figures 3 and 4 leaves one
network, up to port numbers, drawn here with the publisher on the left:

        p1 ─ R1 ─ R3 ─ R4 ─ R5 ─ R6 ─ s3
                  │          │
                  R2 ─ s1    s2

* R3 forwards what matches 100 to R2 and R4 and other events of 1 to R2 only; R2 and R5 are terminal (§3.3.2).
  So s1 hangs on R2 and wants {1}, s2 hangs on R5, past R4, and wants {100} (§3.3.3).
* On the arrival of s3 with {10}, R6, so far without flows, gets one (case 1); R1 has a flow that covers it, so
  p1's traffic of 1 already passes R1 (case 2); on R3 and R4 10 replaces 100 (case 3), on R3 with the ports of 1
  (case 4); on R5 100 stays and gets out port 3, hence port 3 of R5 leads to R6 (case 5).
* p1 advertises {1}: the least that both subscriptions need and that makes R1 cover 10.

Ports are ours where the text names none: port 1 leads towards p1.
"""

from __future__ import annotations

from ipaddress import IPv6Address, ip_network

import numpy as np

from plerion.flow.compile import compiled
from plerion.flow.diff import Diff, Kind, apply
from plerion.flow.entry import Tables
from plerion.flow.fabric import fabric
from plerion.flow.table import NetworkTable
from plerion.flow.verify import verify
from plerion.flow.walk import ModelNetwork, TableLookup
from plerion.index.address import AddressPlan
from plerion.index.cover import Covers
from plerion.index.dz import MAX_LENGTH, Dz
from plerion.index.dzset import DzColumns, DzSet
from plerion.routing.demand import demands
from plerion.routing.interest import Advertisement, AdvertisementId, Subscription, SubscriptionId
from plerion.routing.tree import forest, sources, spanning
from plerion.topology import HostId, Link, SwitchId, Topology

R1, R2, R3, R4, R5, R6 = (SwitchId(f"R{i}") for i in range(1, 7))
P1, S1, S2, S3 = HostId("p1"), HostId("s1"), HostId("s2"), HostId("s3")
NETWORK = Topology(
    (R1, R2, R3, R4, R5, R6),
    (P1, S1, S2, S3),
    (
        Link(P1, 1, R1, 1),
        Link(R1, 2, R3, 1),
        Link(R3, 2, R2, 1),
        Link(R2, 2, S1, 1),
        Link(R3, 3, R4, 1),
        Link(R4, 2, R5, 1),
        Link(R5, 2, S2, 1),
        Link(R5, 3, R6, 1),
        Link(R6, 2, S3, 1),
    ),
)
ADVERTISED = Advertisement(AdvertisementId("p1"), P1, DzSet.parse("1"))
S1_WANTS = Subscription(SubscriptionId("s1"), S1, DzSet.parse("1"))
S2_WANTS = Subscription(SubscriptionId("s2"), S2, DzSet.parse("100"))
S3_WANTS = Subscription(SubscriptionId("s3"), S3, DzSet.parse("10"))

Picture = dict[str, dict[str, set[int]]]

FIGURE_3: Picture = {
    "R1": {"1": {2}},
    "R2": {"1": {2}},
    "R3": {"1": {2}, "100": {2, 3}},
    "R4": {"100": {2}},
    "R5": {"100": {2}},
    "R6": {},
}
FIGURE_4: Picture = {
    "R1": {"1": {2}},
    "R2": {"1": {2}},
    "R3": {"1": {2}, "10": {2, 3}},
    "R4": {"10": {2}},
    "R5": {"10": {3}, "100": {2, 3}},
    "R6": {"10": {2}},
}


def picture(tables: Tables) -> Picture:
    return {s: {str(e.dz): set(e.ports) for e in tables.entries(s)} for s in NETWORK.switches}


def figure_3() -> NetworkTable:
    """p1 advertises, then s1 and s2 arrive."""
    table = NetworkTable(fabric(NETWORK))
    grown = forest(NETWORK, [ADVERTISED])
    numbers = table.fabric.host_number
    table.route(sources(grown, NETWORK), lambda root: spanning(NETWORK, root, numbers), "whole")
    for subscription in (S1_WANTS, S2_WANTS):
        table.subscribe(DzColumns.of(subscription.dz), subscription.host)
    return table


def changes(diff: Diff) -> set[tuple[str, str, str, frozenset[int]]]:
    return {(one.switch, one.kind.name, str(one.entry.dz), one.entry.ports) for one in diff}


def delivered(tables: Tables, bits: str) -> list[str]:
    code = Dz.parse(bits.ljust(MAX_LENGTH, "0"))
    return sorted(ModelNetwork(tables).walk(code, P1).delivered)


def test_figure_3_has_these_tables() -> None:
    assert picture(figure_3().tables()) == FIGURE_3
    defined = demands(NETWORK, forest(NETWORK, [ADVERTISED]), [S1_WANTS, S2_WANTS])
    assert picture(compiled(fabric(NETWORK), defined)) == FIGURE_3


def test_figure_3_on_r3_the_longer_flow_has_the_higher_priority() -> None:
    tables = figure_3().tables()
    one, hundred = tables.entries(R3)
    assert (str(one.dz), str(hundred.dz)) == ("1", "100")
    assert hundred.priority > one.priority
    table = TableLookup(tables.entries(R3))
    assert table.match(Dz.parse("1001")) == hundred
    assert table.match(Dz.parse("101")) == one
    assert table.match(Dz.parse("0")) is None
    assert delivered(tables, "1001") == ["s1", "s2"]
    assert delivered(tables, "101") == ["s1"]


def test_figure_4_has_these_tables_after_the_arrival_of_s3() -> None:
    table = figure_3()
    before = table.tables()
    change = table.subscribe(DzColumns.of(S3_WANTS.dz), S3)
    assert picture(table.tables()) == FIGURE_4
    assert picture(apply(change, before)) == FIGURE_4
    defined = demands(NETWORK, forest(NETWORK, [ADVERTISED]), [S1_WANTS, S2_WANTS, S3_WANTS])
    assert picture(compiled(fabric(NETWORK), defined)) == FIGURE_4


def test_figure_4_the_five_cases_are_these_changes_and_no_others() -> None:
    change = figure_3().subscribe(DzColumns.of(S3_WANTS.dz), S3)
    case_1 = {("R6", "ADD", "10", frozenset({2}))}
    case_2: set[tuple[str, str, str, frozenset[int]]] = set()  # R1 covers it already
    case_3 = {("R3", "DELETE", "100", frozenset[int]()), ("R4", "DELETE", "100", frozenset[int]())}
    case_3 |= {("R4", "ADD", "10", frozenset({2}))}
    case_4 = {("R3", "ADD", "10", frozenset({2, 3}))}
    case_5 = {("R5", "ADD", "10", frozenset({3})), ("R5", "MODIFY", "100", frozenset({2, 3}))}
    assert changes(change) == case_1 | case_2 | case_3 | case_4 | case_5
    assert len(change) == 7


def test_figure_4_priorities_are_as_cases_4_and_5_ask() -> None:
    table = figure_3()
    table.subscribe(DzColumns.of(S3_WANTS.dz), S3)
    for switch in (R3, R5):
        shorter, longer = table.tables().entries(switch)
        assert shorter.dz.covers(longer.dz)
        assert longer.priority > shorter.priority


def test_figure_4_events_reach_whom_they_should() -> None:
    table = figure_3()
    table.subscribe(DzColumns.of(S3_WANTS.dz), S3)
    assert delivered(table.tables(), "100") == ["s1", "s2", "s3"]
    assert delivered(table.tables(), "101") == ["s1", "s3"]
    assert delivered(table.tables(), "11") == ["s1"]
    asked = (S1_WANTS, S2_WANTS, S3_WANTS)
    covers = Covers(np.arange(len(asked) + 1), DzColumns.of(dz for s in asked for dz in s.dz))
    proof = verify(table.tables(), covers, [s.host for s in asked], {P1: ADVERTISED.dz})
    assert proof
    assert proof.unwanted == 0


def test_unsubscribing_s3_deletes_on_r6_and_downgrades_r3_r4_and_r5() -> None:
    table = figure_3()
    table.subscribe(DzColumns.of(S3_WANTS.dz), S3)
    change = table.unsubscribe(DzColumns.of(S3_WANTS.dz), S3)
    nothing = frozenset[int]()
    assert changes(change) == {
        ("R6", "DELETE", "10", nothing),
        ("R5", "DELETE", "10", nothing),
        ("R5", "MODIFY", "100", frozenset({2})),
        ("R4", "DELETE", "10", nothing),
        ("R4", "ADD", "100", frozenset({2})),
        ("R3", "DELETE", "10", nothing),
        ("R3", "ADD", "100", frozenset({2, 3})),
    }
    assert picture(table.tables()) == FIGURE_3


def test_a_wrong_picture_would_be_noticed() -> None:
    assert picture(figure_3().tables()) != FIGURE_4
    without_case_5 = {**FIGURE_4, "R5": {"10": {3}, "100": {2}}}
    table = figure_3()
    assert {one.kind for one in table.subscribe(DzColumns.of(S3_WANTS.dz), S3)} == set(Kind)
    assert picture(table.tables()) != without_case_5


def test_section_2_a_shorter_dz_is_a_larger_cell_and_covers_what_it_is_a_prefix_of() -> None:
    assert Dz.parse("0").covers(Dz.parse("000"))
    assert not Dz.parse("000").covers(Dz.parse("0"))
    assert Dz.parse("0").overlaps(Dz.parse("000"))
    assert not Dz.parse("01").overlaps(Dz.parse("000"))
    assert DzSet.parse("0") & DzSet.parse("000") == DzSet.parse("000")


def test_section_2_what_0_has_and_000_has_not_is_001_010_and_011() -> None:
    rest = DzSet.parse("0") - DzSet.parse("000")
    assert rest == DzSet.parse("001", "010", "011")
    assert str(rest) == "{001, 01}", "the same region in fewer cells"


def test_figure_2_the_advertisement_needs_two_cells() -> None:
    advertised = DzSet.parse("110", "100")
    assert len(advertised) == 2
    assert not advertised.covers(Dz.parse("1"))
    assert advertised.overlaps(DzSet.parse("11"))


def test_section_3_3_2_cells_become_these_networks_and_the_switch_compares_them() -> None:
    plan = AddressPlan()
    assert plan.network(Dz.parse("101101")) == ip_network("ff0e:b400::/22")
    assert plan.network(Dz.parse("101")) == ip_network("ff0e:a000::/19")
    assert IPv6Address("ff0e:b400::") in plan.network(Dz.parse("101"))
