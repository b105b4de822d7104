"""The definition of what tables must do: every publisher/subscriber pair leaves demands on its path (design §4.3).

Nothing here is fast. The tables that a network runs on come from `flow.trie`; a law says that they are those
that these demands give.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from plerion.index.dz import Dz
from plerion.routing.interest import Subscription
from plerion.routing.tree import Forest, spanning
from plerion.topology.graph import HostId, Port, SwitchId, Topology


@dataclass(frozen=True, slots=True)
class Demand:
    """Events under this dz that are at this switch must leave by this port (to this host, if it is the last hop)."""

    switch: SwitchId
    dz: Dz
    in_port: int
    out_port: int
    host: HostId | None = None


def demands(topology: Topology, grown: Forest, subscriptions: Iterable[Subscription]) -> Iterator[Demand]:
    """All demands of all pairs; the same one comes once for each pair that needs it."""
    wanted = [s for s in subscriptions if s.host in topology.hosts]
    numbers = {host: i for i, host in enumerate(topology.hosts)}
    for tree in grown.trees:
        behind = spanning(topology, tree.root, numbers)
        for advertisement in grown.advertisements:
            sent = advertisement.dz & tree.dz
            if not sent or advertisement.host not in numbers:
                continue
            for subscription in wanted:
                common = sent & subscription.dz
                if not common or subscription.host == advertisement.host:
                    continue
                for hop in _path(topology, behind, advertisement.host, subscription.host, numbers):
                    yield from (Demand(hop[0], dz, *hop[1:]) for dz in common)


def _path(
    topology: Topology,
    behind: dict[Port, int],
    publisher: HostId,
    subscriber: HostId,
    numbers: dict[HostId, int],
) -> list[tuple[SwitchId, int, int, HostId | None]]:
    """(switch, in-port, out-port, host at the last hop) along the tree; empty when no path joins the two."""
    hops: list[tuple[SwitchId, int, int, HostId | None]] = []
    at = topology.attachment(publisher)
    while True:
        onward = [p for p in topology.ports(SwitchId(at.node)) if _leads(behind, at, p, numbers[subscriber])]
        if not onward:
            return []
        peer = topology.peer(at.node, onward[0])
        assert peer is not None, "a tree port has a link"
        last = peer.node == subscriber
        hops.append((SwitchId(at.node), at.number, onward[0], subscriber if last else None))
        if last:
            return hops
        at = peer


def _leads(behind: dict[Port, int], at: Port, port: int, host: int) -> bool:
    return port != at.number and bool(behind.get(Port(at.node, port), 0) >> host & 1)
