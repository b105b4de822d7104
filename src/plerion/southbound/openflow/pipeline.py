"""The two tables of a switch as data: every entry that Plerion ever writes follows from `RULES`.

A packet first meets *admission*, which decides who may send, then *forwarding*, which decides where an event goes.
Each table has one owner, and each kind of entry has a cookie, so that what a switch holds can be read back by kind
and an entry that is not ours is never read, changed or deleted.

`furniture` gives the entries that follow from the topology alone; `admission_entry` and `forwarding_entry` say what
an admission and an entry of a table look like on a switch. The fast encoder (`flowmod`) is checked against them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import cache
from ipaddress import IPv6Address, IPv6Network
from typing import Any

from plerion.flow.admission import CONTROL_ADDRESS, CONTROL_PORT, Admission
from plerion.flow.entry import LOWEST_PRIORITY, FlowEntry
from plerion.flow.render import LastHop, actions
from plerion.index.address import AddressPlan
from plerion.index.dz import WHOLE, Dz
from plerion.topology.graph import HostId, SwitchId, Topology, ipv6, mac

ADMISSION, FORWARDING = 0, 1
TABLES = {ADMISSION: "admission: who may send", FORWARDING: "forwarding: where an event goes"}

CONTROLLER = 0xFFFF_FFFD  # the reserved port that leads to us
WHOLE_PACKET = 0xFFFF  # of a packet for the controller, all bytes and no buffer in the switch

IPV6, LLDP = 0x86DD, 0x88CC
UDP = 17

OURS = 0x506C_6572 << 32  # "Pler"
OURS_MASK = 0xFFFF_FFFF << 32
EXACTLY = (1 << 64) - 1
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
    """One line of the pipeline: `one_per` says how many entries it stands for, `fields` what they match."""

    name: str
    table: int
    priority: int  # of forwarding, the least: each bit of a dz adds one
    one_per: str
    fields: tuple[str, ...]
    outcome: Outcome
    purpose: Purpose


_EVENT = ("eth_type", "ip_proto", "ipv6_dst")
_SENDER = ("in_port", "eth_src", "eth_type", "ip_proto", "ipv6_src", "ipv6_dst")

RULES: tuple[Rule, ...] = (
    Rule("odd turn", ADMISSION, 500, "switch", (*_EVENT, "ip_dscp"), Outcome.DROP, Purpose.FURNITURE),
    Rule("even turn", ADMISSION, 500, "switch", (*_EVENT, "ip_ecn"), Outcome.DROP, Purpose.FURNITURE),
    Rule("links", ADMISSION, 400, "switch", ("eth_type",), Outcome.CONTROLLER, Purpose.FURNITURE),
    Rule(
        "control", ADMISSION, 400, "host port", (*_SENDER, "udp_dst"), Outcome.CONTROLLER, Purpose.FURNITURE
    ),
    Rule("transit", ADMISSION, 300, "switch port", ("in_port",), Outcome.NEXT_TABLE, Purpose.FURNITURE),
    Rule("admitted", ADMISSION, 200, "admission", _SENDER, Outcome.NEXT_TABLE, Purpose.ADMISSION),
    Rule("refused", ADMISSION, 100, "host port", ("in_port", *_EVENT), Outcome.DROP, Purpose.FURNITURE),
    Rule("strangers", ADMISSION, 0, "switch", (), Outcome.DROP, Purpose.FURNITURE),
    Rule("events", FORWARDING, LOWEST_PRIORITY, "dz", _EVENT, Outcome.OUTPUTS, Purpose.FORWARDING),
    Rule("unwanted", FORWARDING, 0, "switch", (), Outcome.DROP, Purpose.FURNITURE),
)
RULE: Mapping[str, Rule] = {rule.name: rule for rule in RULES}


@dataclass(frozen=True, slots=True)
class Match:
    """The header fields that must agree; `None` matches everything."""

    in_port: int | None = None
    eth_src: str | None = None
    eth_type: int | None = None
    ip_proto: int | None = None
    ipv6_src: IPv6Address | None = None
    ipv6_dst: IPv6Network | None = None
    udp_dst: int | None = None
    ip_dscp: int | None = None
    ip_ecn: int | None = None


@dataclass(frozen=True, slots=True)
class Output:
    port: int
    max_len: int = 0  # bytes for the controller; no meaning at other ports


@dataclass(frozen=True, slots=True)
class SetField:
    """Writes a header field: `eth_dst` as ``02:…``, or `ipv6_dst` as ``fd00::1``."""

    name: str
    value: str


Action = Output | SetField


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
            sender = _sender(topology, HostId(peer.node), number)
            control = {"ipv6_dst": IPv6Network(CONTROL_ADDRESS), "udp_dst": CONTROL_PORT}
            found.add(_entry(RULE["control"], sender | control))
            found.add(_entry(RULE["refused"], sender | {"ipv6_dst": network(AddressPlan(), WHOLE)}))
        else:
            found.add(_entry(RULE["transit"], {"in_port": number}))
    return frozenset(found)


@cache
def turns() -> tuple[Entry, Entry]:
    """A switch has one of these; `turn` says why. Events have the traffic class 0, so neither matches any."""
    values = {"eth_type": IPV6, "ip_proto": UDP, "ipv6_dst": network(AddressPlan(), WHOLE)}
    odd = _entry(RULE["odd turn"], values | {"ip_dscp": 63})
    return odd, _entry(RULE["even turn"], values | {"ip_ecn": 3})


def admission_entry(topology: Topology, plan: AddressPlan, admission: Admission) -> Entry:
    """What lets these events of the host at this port in; there must be a host."""
    sender = _sender(topology, host_at(topology, admission.switch, admission.port), admission.port)
    return _entry(RULE["admitted"], sender | {"ipv6_dst": network(plan, admission.dz)})


def forwarding_entry(
    topology: Topology, plan: AddressPlan, last_hop: LastHop, switch: SwitchId, entry: FlowEntry
) -> Entry:
    """An entry of a table as the switch holds it."""
    steps: list[Action] = []
    for action in actions(topology, switch, entry, last_hop):
        steps += [SetField(*own) for own in action.get("set", {}).items()]
        steps += [Output(action["output"])] if "output" in action else []
    values = {"eth_type": IPV6, "ip_proto": UDP, "ipv6_dst": network(plan, entry.dz)}
    return _entry(RULE["events"], values, entry.dz.length, tuple(steps))


def host_at(topology: Topology, switch: SwitchId, port: int) -> HostId:
    peer = topology.peer(switch, port)
    if peer is None or not topology.has_host(HostId(peer.node)):
        raise ValueError(f"there is no host at {switch}:{port}, so nothing can be admitted there")
    return HostId(peer.node)


def network(plan: AddressPlan, dz: Dz) -> IPv6Network:
    found = plan.network(dz)
    if not isinstance(found, IPv6Network):
        raise ValueError("switches match events by IPv6 addresses; give a plan of the family ipv6")
    return found


def _sender(topology: Topology, host: HostId, port: int) -> dict[str, Any]:
    return {
        "in_port": port,
        "eth_src": mac(topology, host),
        "eth_type": IPV6,
        "ip_proto": UDP,
        "ipv6_src": IPv6Address(ipv6(topology, host)),
    }


def _entry(rule: Rule, values: Mapping[str, Any], above: int = 0, outputs: tuple[Action, ...] = ()) -> Entry:
    """The entry of a rule: it matches the rule's fields and no others."""
    match = Match(**{name: values[name] for name in rule.fields})
    to_us = (Output(CONTROLLER, WHOLE_PACKET),) if rule.outcome is Outcome.CONTROLLER else outputs
    goto = FORWARDING if rule.outcome is Outcome.NEXT_TABLE else None
    return Entry(rule.table, rule.priority + above, match, rule.purpose.cookie, to_us, goto)


def drawing() -> str:
    """The pipeline as the table that the documents show."""
    lines = ["| table | rule | priority | one a | matches | then |", "| --- | --- | --- | --- | --- | --- |"]
    for rule in RULES:
        priority = f"{rule.priority} + length" if rule.one_per == "dz" else str(rule.priority)
        fields = ", ".join(rule.fields) or "everything"
        place = f"{rule.table} | {rule.name} | {priority} | {rule.one_per}"
        lines.append(f"| {place} | {fields} | {rule.outcome.value} |")
    return "\n".join(lines)
