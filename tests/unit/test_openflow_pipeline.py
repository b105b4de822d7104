"""The pipeline is data: furniture follows from it, the documents show it, and its measurements run."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv6Network

import pytest

from benchmarks.openflow import main
from plerion.flow.admission import CONTROL_ADDRESS, Admission
from plerion.flow.entry import FlowEntry, tables_of
from plerion.flow.fabric import fabric
from plerion.index.address import AddressPlan
from plerion.index.dz import WHOLE, Dz
from plerion.southbound.openflow import phases, pipeline
from plerion.southbound.openflow.dialect import Dialect
from plerion.southbound.openflow.pipeline import (
    CONTROLLER,
    FORWARDING,
    OURS,
    OURS_MASK,
    OURS_TO_DELETE,
    RULE,
    RULES,
    Match,
    Output,
    PopTag,
    Purpose,
    SetField,
    furniture,
)
from plerion.topology import SwitchId, line
from plerion.update.entries import Side
from plerion.update.state import LIFT, UNSTAMPED, Stamp, admitting, forwarding
from tests.architecture.repository import ROOT

NETWORK = line(3)
S2 = SwitchId("s2")


def test_every_rule_has_its_place_and_its_cookie() -> None:
    assert len({(rule.table, rule.name) for rule in RULES}) == len(RULES)
    assert {rule.table for rule in RULES} == set(pipeline.TABLES)
    for purpose in Purpose:
        assert purpose.cookie & OURS_MASK == OURS
        assert purpose.cookie & OURS_TO_DELETE == purpose.cookie
    # Whatever a rule sends on comes behind what may not pass, and before what drops.
    by_table = [[rule.priority for rule in RULES if rule.table == table] for table in pipeline.TABLES]
    assert all(ranks == sorted(ranks, reverse=True) for ranks in by_table)


def test_furniture_follows_from_the_ports() -> None:
    found = furniture(NETWORK, S2)
    ports = NETWORK.ports(S2)
    hosts = [p.number for p in map(NETWORK.attachment, NETWORK.hosts) if p.node == S2]
    assert len(found) == 3 + 2 * len(hosts) + (len(ports) - len(hosts))
    onward = {entry.match.in_port for entry in found if entry.goto == FORWARDING}
    assert onward == set(ports) - set(hosts)
    asking = [entry for entry in found if entry.match.udp_dst is not None]
    assert {entry.match.ipv6_dst for entry in asking} == {IPv6Network(CONTROL_ADDRESS)}
    assert all(entry.actions == (Output(CONTROLLER, 0xFFFF),) for entry in asking)
    assert all(entry.cookie == Purpose.FURNITURE.cookie for entry in found)
    assert len({entry.place for entry in found}) == len(found)


def test_an_admission_matches_the_host_s_own_addresses() -> None:
    (port,) = [p.number for p in map(NETWORK.attachment, NETWORK.hosts) if p.node == S2]
    spoken = Dialect(NETWORK, AddressPlan(epoch_bits=1), "raw")
    (row,) = admitting(fabric(NETWORK), [Admission(S2, port, Dz(1, 1))], Side.BETWEEN, Stamp(epoch=1))
    entry = spoken.entry(row)
    assert entry.match.ipv6_dst == IPv6Network("ff0e:c000::/18")
    assert (entry.match.eth_src, str(entry.match.ipv6_src)) == ("02:00:00:00:00:02", "fd00::2")
    assert (entry.priority, entry.goto, entry.actions) == (RULE["admitted"].priority, FORWARDING, ())
    with pytest.raises(ValueError, match="no host at s2:99"):
        spoken.entry(replace(row, in_port=99))


def test_an_event_that_is_bridged_goes_to_us_and_nowhere_else() -> None:
    (port,) = [p.number for p in map(NETWORK.attachment, NETWORK.hosts) if p.node == S2]
    (row,) = admitting(fabric(NETWORK), [Admission(S2, port, WHOLE)], Side.BETWEEN, UNSTAMPED)
    entry = Dialect(NETWORK, AddressPlan(), "raw").entry(replace(row, bridge=True, priority=300))
    assert entry.priority == RULE["bridged"].priority
    assert (entry.goto, entry.actions) == (None, (Output(CONTROLLER, 0xFFFF),))
    assert entry.cookie == Purpose.ADMISSION.cookie


def test_hosts_come_after_switches_and_get_their_own_address() -> None:
    (host,) = [p.number for p in map(NETWORK.attachment, NETWORK.hosts) if p.node == S2]
    ports = frozenset(NETWORK.ports(S2))
    tables = tables_of(fabric(NETWORK), {S2: [FlowEntry(Dz(1, 1), ports)]})
    (row,) = forwarding(tables, Side.BETWEEN, UNSTAMPED)
    raw, rewrite = (Dialect(NETWORK, AddressPlan(), hop).entry(row) for hop in ("raw", "rewrite"))
    assert (
        raw.match
        == rewrite.match
        == Match(eth_type=0x86DD, ip_proto=17, ipv6_dst=IPv6Network("ff0e:8000::/17"))
    )
    assert raw.priority == 101
    assert raw.actions == tuple(Output(port) for port in sorted(ports))
    own = (SetField("eth_dst", "02:00:00:00:00:02"), SetField("ipv6_dst", "fd00::2"), Output(host))
    assert rewrite.actions == (*(Output(port) for port in sorted(ports - {host})), *own)


def test_a_tag_comes_off_behind_switches_and_before_hosts() -> None:
    (host,) = [p.number for p in map(NETWORK.attachment, NETWORK.hosts) if p.node == S2]
    on = frozenset(NETWORK.ports(S2)) - {host}
    tables = tables_of(fabric(NETWORK), {S2: [FlowEntry(Dz(1, 1), on | {host})]})
    (row,) = forwarding(tables, Side.BETWEEN, Stamp(vlan=7, lifted=True))
    entry = Dialect(NETWORK, AddressPlan(), "raw").entry(row)
    assert (entry.match.vlan_vid, entry.priority) == (0x1007, 101 + LIFT)
    assert entry.actions == (*(Output(port) for port in sorted(on)), PopTag(), Output(host))


def test_plans_for_other_addresses_are_refused() -> None:
    with pytest.raises(ValueError, match="family ipv6"):
        Dialect(NETWORK, AddressPlan("ipv4"), "raw")


@pytest.mark.parametrize("drawn", [pipeline.drawing(), phases.drawing()], ids=["pipeline", "transitions"])
def test_the_documents_show_what_the_code_does(drawn: str) -> None:
    assert drawn in (ROOT / "docs" / "openflow.md").read_text()


@pytest.mark.parametrize("name", ["template", "fuzz"])
def test_a_measurement_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([name, "1000"])
    assert "must be" in capsys.readouterr().out
    assert main(["nonsense"]) == 2
