"""From a list of links to 'what is behind this port', or the first reason why they are no network."""

from collections.abc import Set
from itertools import chain
from math import inf

from plerion.topology.error import TopologyError, shown
from plerion.topology.link import MAX_PORT, HostId, Link, Neighbour, NodeId, SwitchId

Wiring = dict[NodeId, dict[int, Neighbour]]


def wiring(switches: tuple[SwitchId, ...], hosts: tuple[HostId, ...], links: tuple[Link, ...]) -> Wiring:
    """Every node's neighbours in port order; raises `TopologyError` unless the parts make a valid network."""
    _check_names(switches, hosts)
    wired: Wiring = {name: {} for name in chain(switches, hosts)}
    leaves = frozenset(hosts)
    for link in links:
        _check_ends(link, wired.keys(), leaves)
        _check_amounts(link)
        _plug(wired, link, link.a, Neighbour(link.a_port, link.b, link.b_port, link))
        _plug(wired, link, link.b, Neighbour(link.b_port, link.a, link.a_port, link))
    for host in hosts:
        if len(wired[host]) != 1:
            raise TopologyError(
                f"the host has {len(wired[host])} links", where=host, fix="give every host exactly one link"
            )
    return {node: dict(sorted(ports.items())) for node, ports in wired.items()}


def _check_names(switches: tuple[SwitchId, ...], hosts: tuple[HostId, ...]) -> None:
    seen: dict[NodeId, str] = {}
    for kind, names in (("switch", switches), ("host", hosts)):
        for name in names:
            if not name or not name.isprintable() or ":" in name or " " in name:
                raise TopologyError(
                    f"{shown(name)} cannot name a {kind}",
                    where=f"{kind} names",
                    fix="use printable characters without spaces and ':', which separates node and port",
                )
            if name in seen:
                both = (
                    f"is the name of more than one {kind}"
                    if seen[name] == kind
                    else "names both a switch and a host"
                )
                raise TopologyError(f"{shown(name)} {both}", where=f"{kind} names", fix="rename one of them")
            seen[name] = kind


def _check_ends(link: Link, nodes: Set[NodeId], hosts: frozenset[HostId]) -> None:
    for node, port in ((link.a, link.a_port), (link.b, link.b_port)):
        if node not in nodes:
            raise TopologyError(
                f"there is no node {shown(node)}",
                where=_place(link),
                fix="list it among the switches or hosts, or drop the link",
            )
        if not 1 <= port <= MAX_PORT:
            raise TopologyError(
                f"port {shown(port)} of {node} is out of range",
                where=_place(link),
                fix=f"use a port from 1 to {MAX_PORT}",
            )
    if link.a == link.b:
        raise TopologyError(f"{link.a} is linked to itself", where=_place(link), fix="drop the link")
    if link.a in hosts and link.b in hosts:
        raise TopologyError(
            "both ends are hosts",
            where=_place(link),
            fix="put a switch between them: hosts hang on switches",
        )


def _check_amounts(link: Link) -> None:
    # Written so that NaN, for which every comparison is false, is refused as well.
    if link.latency is not None and not 0 <= link.latency < inf:
        raise TopologyError(
            f"latency {shown(link.latency)}",
            where=_place(link),
            fix="give finite seconds from 0, or leave it out",
        )
    if link.capacity is not None and not 0 < link.capacity < inf:
        raise TopologyError(
            f"capacity {shown(link.capacity)}",
            where=_place(link),
            fix="give finite bit/s above 0, or leave it out",
        )


def _plug(wired: Wiring, link: Link, node: NodeId, neighbour: Neighbour) -> None:
    taken = wired[node].setdefault(neighbour.port, neighbour)
    if taken is not neighbour:
        raise TopologyError(
            f"port {node}:{neighbour.port} is already used by {_place(taken.link)}",
            where=_place(link),
            fix="give each link its own port",
        )


def _place(link: Link) -> str:
    # Names are not known to be printable before all checks are through.
    return f"link {shown(str(link))}"
