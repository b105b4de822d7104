"""What an entry of a plan looks like on a switch, and what an entry of a switch means: the definition, one at a time.

The fast writer (`flowmod`) and reader (`readback`) are made from this and checked against it.

A switch takes a tag off, or sets one in its place, only where the match says that there is one. So what is for any tag
and does so stands as two entries, and each row here is one of them: see `tags`, which has the word TAGGED for the
one that matches whatever is tagged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from ipaddress import IPv6Address, IPv6Network
from typing import Any

from plerion.flow.entry import FlowEntry
from plerion.flow.render import LastHop, actions
from plerion.index.address import AddressPlan
from plerion.index.dz import MAX_LENGTH, WHOLE, Dz
from plerion.southbound.openflow.pipeline import (
    CONTROLLER,
    FORWARDING,
    IPV6,
    RULE,
    TABLES,
    TAG,
    UDP,
    WHOLE_PACKET,
    Action,
    Entry,
    Masked,
    Match,
    Output,
    PopTag,
    PushTag,
    SetField,
    sender,
)
from plerion.southbound.openflow.tags import TAGGED
from plerion.topology.graph import HostId, SwitchId, Topology
from plerion.update.entries import ANY, GROUPS, UNTAGGED, Side, Table
from plerion.update.entries import Entry as Row

TO_US = Output(CONTROLLER, WHOLE_PACKET)
_PREFIX = 128 - MAX_LENGTH
LARGEST_PRIORITY = 0xFFFF


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the entries of this network are put to its switches."""

    topology: Topology
    plan: AddressPlan
    last_hop: LastHop

    def __post_init__(self) -> None:
        if self.plan.family != "ipv6":
            raise ValueError("switches match events by IPv6 addresses; give a plan of the family ipv6")

    def entry(self, row: Row) -> Entry:
        """The one entry of a switch that says what the row says."""
        check_priorities(row.priority, row.priority)
        values: dict[str, Any] = {"eth_type": IPV6, "ip_proto": UDP}
        values["ipv6_dst"] = self.destination(row.epoch, row.dz)
        if row.vlan != ANY:
            values["vlan_vid"] = (TAG, TAG) if row.vlan == TAGGED else row.vlan and TAG | row.vlan
        if row.table is Table.EDGE:
            return self._edge(row, values)
        if row.set_vlan != ANY:
            raise ValueError(f"an entry of {row.switch} that forwards sets a tag; only the edge does")
        if row.in_port != ANY:
            values["in_port"] = row.in_port
        does = (TO_US,) if row.bridge else self.outputs(row.switch, row.ports, untag=row.untag)
        rule = RULE["events"]
        return Entry(rule.table, row.priority, Match(**values), rule.purpose.cookie, does)

    def _edge(self, row: Row, values: dict[str, Any]) -> Entry:
        host = host_at(self.topology, row.switch, row.in_port)
        match = Match(**sender(self.topology, host, row.in_port) | values)
        rule = RULE["bridged" if row.bridge else "admitted"]
        does, goto = ((TO_US,), None) if row.bridge else (_tagging(row), FORWARDING)
        return Entry(rule.table, row.priority, match, rule.purpose.cookie, does, goto)

    def outputs(self, switch: SwitchId, ports: frozenset[int], *, untag: bool) -> tuple[Action, ...]:
        """What sends an event out by these ports; a tag, if it has one, stays on it where it is on its way."""
        hosts = frozenset(port for port in ports if is_host(self.topology, switch, port))
        if not untag or not hosts:
            return self._sent(switch, ports)
        return (*self._sent(switch, ports - hosts), PopTag(), *self._sent(switch, hosts))

    def _sent(self, switch: SwitchId, ports: frozenset[int]) -> tuple[Action, ...]:
        steps: list[Action] = []
        for action in actions(self.topology, switch, FlowEntry(WHOLE, ports), self.last_hop):
            steps += [SetField(*own) for own in action.get("set", {}).items()]
            steps += [Output(action["output"])] if "output" in action else []
        return tuple(steps)

    def destination(self, epoch: int, dz: Dz) -> IPv6Network | Masked:
        """The addresses of events under a dz: in one epoch, in any of them, or those of groups."""
        plan = self.plan
        if epoch == GROUPS:
            return IPv6Network(plan.group(dz))
        if epoch == ANY and dz == WHOLE:
            return IPv6Network(AddressPlan().network(WHOLE))
        if epoch == ANY and plan.epoch_bits:
            found = IPv6Network(replace(plan, epoch=0).network(dz))
            holes = ((1 << plan.epoch_bits) - 1) << (MAX_LENGTH - plan.epoch_bits)
            return found.network_address, IPv6Address(int(found.netmask) ^ holes)
        check_epochs(plan, epoch, epoch)
        return IPv6Network(replace(plan, epoch=max(0, epoch)).network(dz))

    def row(self, switch: SwitchId, entry: Entry) -> Row | None:
        """What an entry of a switch means; None when it says anything but what we would have written."""
        match, edge = entry.match, entry.table == Table.EDGE
        found = None if match.ipv6_dst is None else self._meaning(match.ipv6_dst)
        if found is None or entry.table not in TABLES:
            return None
        outputs = [action.port for action in entry.actions if isinstance(action, Output)]
        pops = any(isinstance(action, PopTag) for action in entry.actions)
        tags = [action.value for action in entry.actions if isinstance(action, SetField)]
        numbers = [value - TAG for value in tags if isinstance(value, int)]
        row = Row(
            Table(entry.table),
            switch,
            found[1],
            ANY if match.in_port is None else match.in_port,
            _vlan(match.vlan_vid),
            found[0],
            entry.priority,
            frozenset(outputs) - {CONTROLLER},
            set_vlan=numbers[0] if numbers else UNTAGGED if edge and pops else ANY,
            untag=pops and not edge,
            bridge=CONTROLLER in outputs,
            side=Side.BETWEEN,
        )
        try:
            return row if self.entry(row) == entry else None
        except ValueError:
            return None

    def _meaning(self, to: IPv6Network | Masked) -> tuple[int, Dz] | None:
        """The epoch and the dz of a destination of ours; of any other one whatever comes of it."""
        pair = (to.network_address, to.netmask) if isinstance(to, IPv6Network) else to
        value, mask = map(int, pair)
        bits, length = self.plan.epoch_bits, max(0, mask.bit_count() - _PREFIX)
        if value >> MAX_LENGTH == int(self.plan.group(WHOLE).network_address) >> MAX_LENGTH:
            return GROUPS, _part(value, 0, length)
        if bits and _part(mask, 0, bits).bits + 1 == 1 << bits:
            return _part(value, 0, bits).bits, _part(value, bits, length - bits)
        return (ANY, _part(value, bits, length)) if bits + length <= MAX_LENGTH else None


def _part(address: int, first: int, length: int) -> Dz:
    """So many bits of the address, from the given one behind the prefix on."""
    return Dz(address >> (MAX_LENGTH - first - length) & ((1 << length) - 1), length)


def _vlan(told: int | tuple[int, int] | None) -> int:
    if told is None:
        return ANY
    return TAGGED if isinstance(told, tuple) else told & ~TAG


def check_priorities(least: int, most: int) -> None:
    """Raises ValueError where a switch does not have all priorities between these."""
    if not 0 < least <= most <= LARGEST_PRIORITY:
        raise ValueError(
            f"entries with priorities from {least} to {most}; switches know 1 to {LARGEST_PRIORITY}"
        )


def check_epochs(plan: AddressPlan, least: int, most: int) -> None:
    """Raises ValueError where addresses have no room for all epochs between these; ANY and GROUPS are none."""
    if least < ANY or (most >= 1 << plan.epoch_bits if plan.epoch_bits else most > ANY):
        raise ValueError(
            f"entries for epochs from {least} to {most}; addresses have {plan.epoch_bits} bits for it"
        )


def is_host(topology: Topology, switch: SwitchId, port: int) -> bool:
    peer = topology.peer(switch, port)
    return peer is not None and topology.has_host(HostId(peer.node))


def host_at(topology: Topology, switch: SwitchId, port: int) -> HostId:
    peer = topology.peer(switch, port)
    if peer is None or not is_host(topology, switch, port):
        raise ValueError(f"there is no host at {switch}:{port}, so nothing can be admitted there")
    return HostId(peer.node)


def _tagging(row: Row) -> tuple[Action, ...]:
    """What leaves an event with the tag that the row sets."""
    if row.set_vlan == ANY:
        return ()
    if row.set_vlan == UNTAGGED:
        return () if row.vlan == UNTAGGED else (PopTag(),)
    return (*((PushTag(),) if row.vlan == UNTAGGED else ()), SetField("vlan_vid", TAG | row.set_vlan))
