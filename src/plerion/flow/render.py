"""Tables as text: the JSON of `plerion compile` and the lines that `ovs-ofctl add-flows` reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from plerion.flow.entry import FlowEntry, Tables, tables_of
from plerion.flow.fabric import Fabric
from plerion.index.address import FAMILIES, AddressPlan
from plerion.index.dz import Dz
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


class _Action(msgspec.Struct):
    output: int | None = None
    set: dict[str, str] | None = None


class _Entry(msgspec.Struct):
    priority: int
    match: dict[str, str]
    actions: list[_Action]


class _Tables(msgspec.Struct):
    switches: dict[str, list[_Entry]]


def read_tables(path: Path, fabric: Fabric) -> Tables:
    """The tables in a file that `plerion compile --format json` wrote, or that somebody changed since.

    Tables here mean that the longest match wins and that a port gets one copy; a document that a switch would read in
    another way is refused.
    """
    try:
        document = msgspec.json.decode(path.read_bytes(), type=_Tables)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise TablesError(f"{path}: {error}") from None
    found: dict[SwitchId, list[FlowEntry]] = {}
    for name, entries in document.switches.items():
        if name not in fabric.switch_number:
            raise TablesError(f"{path}: there is no switch {name!r} in this network")
        switch, where = SwitchId(name), f"{path}: {name}"
        ranked = sorted(
            ((_dz(entry, where), entry.priority, _ports(fabric, switch, entry, where)) for entry in entries),
            key=lambda row: row[0],
        )
        _check_priorities([(dz, priority) for dz, priority, _ in ranked], where)
        found[switch] = [FlowEntry(dz, ports) for dz, _, ports in ranked]
    return tables_of(fabric, found)


def _check_priorities(ranked: list[tuple[Dz, int]], where: str) -> None:
    above: list[tuple[Dz, int]] = []
    for dz, priority in ranked:
        while above and not above[-1][0].covers(dz):
            above.pop()
        if above and (above[-1][0] == dz or above[-1][1] >= priority):
            raise TablesError(
                f"{where}: the entry at {dz} does not come before the wider one at {above[-1][0]}"
            )
        above.append((dz, priority))


def _ports(fabric: Fabric, switch: SwitchId, entry: _Entry, where: str) -> frozenset[int]:
    outputs = [action.output for action in entry.actions if action.output is not None]
    if len(set(outputs)) < len(outputs) or not set(outputs) <= set(fabric.topology.ports(switch)):
        raise TablesError(f"{where}: outputs {outputs} repeat a port or name one that is not there")
    rewritten = False
    for action in entry.actions:
        rewritten |= action.set is not None
        peer = None if action.output is None else fabric.topology.peer(switch, action.output)
        if rewritten and peer is not None and peer.node in fabric.switch_number:
            raise TablesError(
                f"{where}: the address is rewritten before port {action.output}, which leads on"
            )
    return frozenset(outputs)


def _dz(entry: _Entry, where: str) -> Dz:
    for plan in map(AddressPlan, FAMILIES):
        if set(entry.match) == {plan.field}:
            try:
                return plan.dz(entry.match[plan.field])
            except ValueError as error:
                raise TablesError(f"{where}: {error}") from None
    raise TablesError(f"{where}: matches {entry.match}; only ipv6_dst or ipv4_dst can be judged")
