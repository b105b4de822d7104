"""The two tables of a switch as data: every entry that Plerion ever writes follows from `RULES`.

A packet first meets *admission*, which decides who may send, then *forwarding*, which decides where an event goes.
Each table has one owner, and each kind of entry has a cookie, so that what a switch holds can be read back by kind
and an entry that is not ours is never read, changed or deleted.

`furniture` gives the entries that follow from the topology alone, `dialect` those that follow from what the network is
told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import cache
from ipaddress import IPv6Address, IPv6Network
from typing import Any

from plerion.flow.admission import CONTROL_ADDRESS, CONTROL_PORT
from plerion.flow.entry import LOWEST_PRIORITY
from plerion.index.address import AddressPlan
from plerion.topology.graph import HostId, SwitchId, Topology, ipv6, mac
from plerion.update.entries import Table

ADMISSION, FORWARDING = int(Table.EDGE), int(Table.FORWARDING)
TABLES = {ADMISSION: "admission: who may send", FORWARDING: "forwarding: where an event goes"}

CONTROLLER = 0xFFFF_FFFD  # the reserved port that leads to us
WHOLE_PACKET = 0xFFFF  # of a packet for the controller, all bytes and no buffer in the switch

IPV6, LLDP, VLAN = 0x86DD, 0x88CC, 0x8100
UDP = 17
TAG = 0x1000  # in a VLAN id that is matched or set: there is a tag

OURS = 0x506C_6572 << 32  # "Pler"
OURS_MASK = 0xFFFF_FFFF << 32
EXACTLY = (1 << 64) - 1
ALL_EVENTS = IPv6Network(AddressPlan().everything)
# Deletes by the same cookie as EXACTLY would. Open vSwitch looks entries up by their cookie when all bits of it are
# given, one by one among all that have it: of 28,000 deletions that takes 14 s, and with this mask 0.1 s.
OURS_TO_DELETE = OURS_MASK | 0xFFFF


class Purpose(IntEnum):
    """Why an entry is there; the lower half of its cookie."""

    FURNITURE = 1
    ADMISSION = 2
    FORWARDING = 3

    @property
    def cookie(self) -> int:
        return OURS | self


class Outcome(Enum):
    """What becomes of a packet."""

    CONTROLLER = "to the controller"
    NEXT_TABLE = "on to forwarding"
    OUTPUTS = "out by the entry's ports"
    DROP = "dropped"


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of the pipeline: `one_per` says how many entries it stands for, `fields` what they match.

    While an update is under way, and after some, they may match what is in `also`, and have other priorities.
    """

    name: str
    table: int
    priority: int  # of forwarding, the least: each bit of a dz adds one
    one_per: str
    fields: tuple[str, ...]
    outcome: Outcome
    purpose: Purpose
    also: tuple[str, ...] = ()


_EVENT = ("eth_type", "ip_proto", "ipv6_dst")
_TAG = ("vlan_vid",)
_SENDER = ("in_port", "eth_src", "eth_type", "ip_proto", "ipv6_src", "ipv6_dst")

RULES: tuple[Rule, ...] = (
    Rule("odd turn", ADMISSION, 500, "switch", (*_EVENT, "ip_dscp"), Outcome.DROP, Purpose.FURNITURE),
    Rule("even turn", ADMISSION, 500, "switch", (*_EVENT, "ip_ecn"), Outcome.DROP, Purpose.FURNITURE),
    Rule("links", ADMISSION, 400, "switch", ("eth_type",), Outcome.CONTROLLER, Purpose.FURNITURE),
    Rule(
        "control", ADMISSION, 400, "host port", (*_SENDER, "udp_dst"), Outcome.CONTROLLER, Purpose.FURNITURE
    ),
    Rule("transit", ADMISSION, 300, "switch port", ("in_port",), Outcome.NEXT_TABLE, Purpose.FURNITURE),
    Rule("bridged", ADMISSION, 300, "publisher", _SENDER, Outcome.CONTROLLER, Purpose.ADMISSION, _TAG),
    Rule("admitted", ADMISSION, 200, "admission", _SENDER, Outcome.NEXT_TABLE, Purpose.ADMISSION, _TAG),
    Rule("refused", ADMISSION, 100, "host port", ("in_port", *_EVENT), Outcome.DROP, Purpose.FURNITURE),
    Rule("strangers", ADMISSION, 0, "switch", (), Outcome.DROP, Purpose.FURNITURE),
    Rule(
        "events",
        FORWARDING,
        LOWEST_PRIORITY,
        "dz",
        _EVENT,
        Outcome.OUTPUTS,
        Purpose.FORWARDING,
        ("in_port", *_TAG),
    ),
    Rule("unwanted", FORWARDING, 0, "switch", (), Outcome.DROP, Purpose.FURNITURE),
)
RULE: Mapping[str, Rule] = {rule.name: rule for rule in RULES}


Masked = tuple[IPv6Address, IPv6Address]
"""An address and a mask, for where it is no network."""


@dataclass(frozen=True, slots=True)
class Match:
    """The header fields that must agree; `None` matches everything."""

    in_port: int | None = None
    eth_src: str | None = None
    eth_type: int | None = None
    vlan_vid: int | tuple[int, int] | None = None  # 0 for no tag, else with TAG; or a value and a mask
    ip_proto: int | None = None
    ipv6_src: IPv6Address | None = None
    ipv6_dst: IPv6Network | Masked | None = None
    udp_dst: int | None = None
    ip_dscp: int | None = None
    ip_ecn: int | None = None


@dataclass(frozen=True, slots=True)
class Output:
    port: int
    max_len: int = 0  # bytes for the controller; no meaning at other ports


@dataclass(frozen=True, slots=True)
class SetField:
    """Writes a header field: `eth_dst` as ``02:…``, `ipv6_dst` as ``fd00::1``, or `vlan_vid` as a number with TAG."""

    name: str
    value: str | int


@dataclass(frozen=True, slots=True)
class PushTag:
    """A VLAN tag comes in front of what the packet has."""


@dataclass(frozen=True, slots=True)
class PopTag:
    """The outermost tag goes. A switch takes this only where the match says that there is a tag."""


Action = Output | SetField | PushTag | PopTag


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of one switch. Without actions and without `goto` it drops."""

    table: int
    priority: int
    match: Match
    cookie: int
    actions: tuple[Action, ...] = ()
    goto: int | None = None

    @property
    def place(self) -> tuple[int, int, Match]:
        """Where it stands in its switch: two entries of one place replace each other."""
        return self.table, self.priority, self.match


def furniture(topology: Topology, switch: SwitchId) -> frozenset[Entry]:
    """The entries that a switch holds whatever anybody publishes or asks for."""
    found = {_entry(RULE[name], {"eth_type": LLDP}) for name in ("links", "strangers", "unwanted")}
    for number in topology.ports(switch):
        peer = topology.peer(switch, number)
        if peer is not None and topology.has_host(HostId(peer.node)):
            own = sender(topology, HostId(peer.node), number)
            control = {"ipv6_dst": IPv6Network(CONTROL_ADDRESS), "udp_dst": CONTROL_PORT}
            found.add(_entry(RULE["control"], own | control))
            found.add(_entry(RULE["refused"], own | {"ipv6_dst": ALL_EVENTS}))
        else:
            found.add(_entry(RULE["transit"], {"in_port": number}))
    return frozenset(found)


@cache
def turns() -> tuple[Entry, Entry]:
    """A switch has one of these; `turn` says why. Events have the traffic class 0, so neither matches any."""
    values = {"eth_type": IPV6, "ip_proto": UDP, "ipv6_dst": ALL_EVENTS}
    odd = _entry(RULE["odd turn"], values | {"ip_dscp": 63})
    return odd, _entry(RULE["even turn"], values | {"ip_ecn": 3})


def sender(topology: Topology, host: HostId, port: int) -> dict[str, Any]:
    """The fields of what this host sends into its switch."""
    return {
        "in_port": port,
        "eth_src": mac(topology, host),
        "eth_type": IPV6,
        "ip_proto": UDP,
        "ipv6_src": IPv6Address(ipv6(topology, host)),
    }


def _entry(rule: Rule, values: Mapping[str, Any]) -> Entry:
    """Furniture of this rule: it matches the rule's fields and no others."""
    match = Match(**{name: values[name] for name in rule.fields})
    to_us = (Output(CONTROLLER, WHOLE_PACKET),) if rule.outcome is Outcome.CONTROLLER else ()
    goto = FORWARDING if rule.outcome is Outcome.NEXT_TABLE else None
    return Entry(rule.table, rule.priority, match, rule.purpose.cookie, to_us, goto)


def drawing() -> str:
    """The pipeline as the table that the documents show."""
    lines = ["| table | rule | priority | one a | matches | then |", "| --- | --- | --- | --- | --- | --- |"]
    for rule in RULES:
        priority = f"{rule.priority} + length" if rule.one_per == "dz" else str(rule.priority)
        fields = ", ".join([*rule.fields, *(f"[{name}]" for name in rule.also)]) or "everything"
        place = f"{rule.table} | {rule.name} | {priority} | {rule.one_per}"
        lines.append(f"| {place} | {fields} | {rule.outcome.value} |")
    return "\n".join(lines)
