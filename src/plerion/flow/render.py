"""Tables as text: the JSON of `plerion compile` and the lines that `ovs-ofctl add-flows` reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from plerion.flow.entry import FlowEntry, Tables, tables_of
from plerion.flow.fabric import Fabric
from plerion.index.address import FAMILIES, AddressPlan
from plerion.topology.graph import HostId, SwitchId, Topology, ipv6, mac

LastHop = Literal["raw", "rewrite"]
Action = dict[str, Any]


def actions(topology: Topology, switch: SwitchId, entry: FlowEntry, last_hop: LastHop) -> list[Action]:
    """Where an event goes, in an order that a switch can follow one by one.

    With `rewrite` the destination becomes the host's own before the host's port. What was set stays set for later
    outputs, so ports that lead to switches come first.
    """
    sent: list[Action] = []
    delivered: list[Action] = []
    for number in sorted(entry.ports):
        peer = topology.peer(switch, number)
        if last_hop == "raw" or peer is None or peer.node not in topology.hosts:
            sent.append({"output": number})
        else:
            host = HostId(peer.node)
            own = {"eth_dst": mac(topology, host), "ipv6_dst": ipv6(topology, host)}
            delivered += [{"set": own}, {"output": number}]
    return sent + delivered


def documents(
    tables: Tables, plan: AddressPlan, last_hop: LastHop
) -> Iterator[tuple[SwitchId, list[dict[str, Any]]]]:
    """Each switch with its entries, highest priority first."""
    topology = tables.fabric.topology
    for switch in topology.switches:
        ordered = sorted(tables.entries(switch), key=lambda entry: (-entry.priority, entry.dz))
        yield (
            switch,
            [
                {
                    "priority": entry.priority,
                    "match": {plan.field: str(plan.network(entry.dz))},
                    "actions": actions(topology, switch, entry, last_hop),
                }
                for entry in ordered
            ],
        )


def ofctl_lines(tables: Tables, plan: AddressPlan, last_hop: LastHop) -> Iterator[str]:
    """Under a comment with each switch's name one line an entry, for `ovs-ofctl add-flows`.

    The protocol is `udp6`: Open vSwitch silently turns `ipv6,udp` into IPv4.
    """
    protocol, field = ("udp6", "ipv6_dst") if plan.family == "ipv6" else ("udp", "nw_dst")
    for switch, entries in documents(tables, plan, last_hop):
        yield f"# {switch}"
        for entry in entries:
            steps = ",".join(_ofctl(action) for action in entry["actions"]) or "drop"
            match = f"{protocol},{field}={entry['match'][plan.field]}"
            yield f"priority={entry['priority']},{match},actions={steps}"


def _ofctl(action: Action) -> str:
    if "output" in action:
        return f"output:{action['output']}"
    return ",".join(f"set_field:{value}->{name}" for name, value in action["set"].items())


class TablesError(ValueError):
    """A document that holds no tables of this network, with the place."""


class _Entry(msgspec.Struct):
    match: dict[str, str]
    actions: list[dict[str, Any]]


class _Tables(msgspec.Struct):
    switches: dict[str, list[_Entry]]


def read_tables(path: Path, fabric: Fabric) -> Tables:
    """The tables in a file that `plerion compile --format json` wrote; ports count, addresses that are set do not."""
    try:
        document = msgspec.json.decode(path.read_bytes(), type=_Tables)
    except msgspec.MsgspecError as error:
        raise TablesError(f"{path}: {error}") from None
    found: dict[SwitchId, list[FlowEntry]] = {}
    for name, entries in document.switches.items():
        if name not in fabric.switch_number:
            raise TablesError(f"{path}: there is no switch {name!r} in this network")
        found[SwitchId(name)] = [_entry(fabric, SwitchId(name), entry, path) for entry in entries]
        if len({entry.dz for entry in found[SwitchId(name)]}) < len(entries):
            raise TablesError(f"{path}: {name} has two entries with the same match")
    return tables_of(fabric, found)


def _entry(fabric: Fabric, switch: SwitchId, entry: _Entry, path: Path) -> FlowEntry:
    ports = frozenset(action["output"] for action in entry.actions if "output" in action)
    if not ports <= set(fabric.topology.ports(switch)):
        raise TablesError(f"{path}: {switch} sends to port {sorted(map(str, ports))}, which it does not have")
    for family in FAMILIES:
        plan = AddressPlan(family)
        if set(entry.match) == {plan.field}:
            try:
                return FlowEntry(plan.dz(entry.match[plan.field]), ports)
            except ValueError as error:
                raise TablesError(f"{path}: {switch}: {error}") from None
    raise TablesError(f"{path}: {switch} matches {entry.match}: only ipv6_dst or ipv4_dst can be judged")
