"""The cables and hosts of a plan, as lines for `ip` and `tc`. Nothing here does anything.

A link is a veth pair: packets in flight are in no switch. Each end of a cable that has a latency or a capacity delays
what leaves by it, so each direction is delayed once.
"""

from __future__ import annotations

from collections.abc import Iterable

from plerion.index.address import AddressPlan
from plerion.lab.names import HOST_INTERFACE
from plerion.lab.plan import Plan
from plerion.topology.graph import HostId, Link, Port, ipv6, mac

EVENTS = AddressPlan().everything
RECEIVED_TABLE = 100


def namespaces(plan: Plan) -> list[str]:
    """Lines for ``ip -batch``: a namespace a host."""
    if plan.options.datapath == "dummy":
        return []
    return [f"netns add {plan.namespace(host)}" for host in plan.topology.hosts]


def cables(plan: Plan) -> list[str]:
    """Lines for ``ip -batch``: a veth pair a link, the host's end in its namespace with its own address."""
    group = plan.names.group
    lines = []
    for link in filter(plan.is_wired, plan.topology.links):
        near, far = link.ends if link.a in plan.numbers else link.ends[::-1]
        if far.node in plan.numbers:
            peer = f"name {plan.interface(far)} group {group}"
        else:
            host = HostId(far.node)
            space = plan.namespace(host)
            peer = f"name {HOST_INTERFACE} address {mac(plan.topology, host)} netns {space}"
        lines.append(f"link add {plan.interface(near)} group {group} type veth peer {peer}")
    return lines


def raised(interfaces: Iterable[str], up: bool = True) -> list[str]:
    """Lines for ``ip -batch``: interfaces up, or down."""
    return [f"link set {interface} {'up' if up else 'down'}" for interface in interfaces]


def host_lines(plan: Plan, host: HostId) -> list[str]:
    """Lines for ``ip -6 -batch`` in a host's namespace: it sends events out of eth0 and takes all that come in.

    A packet to a group that nobody joined is not delivered, unless the route that it came by is a local one. But what
    is sent must not find that route, or it would never leave the host: so the route is in a table that only what
    comes in looks at, and looks at first. Without link-local addresses a host says nothing that nobody asked for.
    """
    eth0 = HOST_INTERFACE
    return [
        "link set lo up",
        f"link set {eth0} addrgenmode none",
        f"link set {eth0} allmulticast on up",
        f"address add {ipv6(plan.topology, host)}/128 dev {eth0} nodad",
        f"rule add pref 10 iif {eth0} lookup {RECEIVED_TABLE}",
        "rule add pref 100 lookup local",
        "rule del pref 0",
        f"route add local {EVENTS} dev {eth0} table {RECEIVED_TABLE}",
    ]


def own_interfaces(plan: Plan, switch: str) -> list[str]:
    """The real interfaces at a switch's ports."""
    ports = [(Port(switch, found.port), found.link) for found in plan.topology.neighbours(switch)]
    return [plan.interface(port) for port, link in ports if plan.is_wired(link)]


def shapes(plan: Plan) -> dict[str, list[str]]:
    """Lines for ``tc -batch`` by the namespace that they are for, "" being the machine's own."""
    lines: dict[str, list[str]] = {}
    for link in plan.topology.links:
        if (how := discipline(link)) and plan.is_wired(link):
            for end in link.ends:
                inside = end.node not in plan.numbers
                device = HOST_INTERFACE if inside else plan.interface(end)
                line = f"qdisc replace dev {device} root {how}"
                lines.setdefault(plan.namespace(end.node) if inside else "", []).append(line)
    return lines


def discipline(link: Link) -> str:
    """How one direction of a link is delayed: nothing where nothing is known of it."""
    rate = None if link.capacity is None else max(8, round(link.capacity))
    if link.latency:
        pace = "" if rate is None else f" rate {rate}bit"
        return f"netem delay {max(1, round(link.latency * 1e6))}us limit 100000{pace}"
    # Room for 4 ms at the full rate, and for two frames at the least.
    return "" if rate is None else f"tbf rate {rate}bit burst {max(rate // 8 // 250, 3100)} limit 1000000"
