"""What a lab is made of, as data: a topology and a name in, the words of commands out. Nothing here does anything.

One ovsdb-server and one ovs-vswitchd serve all switches of a lab. The userspace datapath of class ``netdev`` makes a
tap device ``ovs-netdev`` of which there can be one a machine, and a tap for each bridge that stays behind when the
daemon is killed. With ``--enable-dummy`` the same datapath is offered as class ``dummy`` without any tap, and ports
of type ``system`` are real interfaces all the same: so that labs run side by side, also beside an Open vSwitch that
does something else, both kinds of lab use it. ``--enable-dummy=override`` makes the interfaces dummies, too.

What makes Open vSwitch fast for us is ``prefixes`` on the flow tables: without it nearly each event's address becomes
an entry of the datapath's cache of its own (design §4.10).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from plerion.content.errors import quoted
from plerion.lab import names
from plerion.lab.error import LabError
from plerion.topology.graph import HostId, Link, Port, SwitchId, Topology, ipv6, mac

MAX_SWITCHES = 64
TABLES = (0, 1)
EVENTS = "ff0e::/16"
RECEIVED_TABLE = 100

Datapath = Literal["netdev", "dummy"]
Links = Literal["veth", "patch"]
_CONTROLLER = re.compile(r"(tcp|ssl|unix):[^\s\"',]{1,200}")


@dataclass(frozen=True, slots=True)
class Tls:
    """The files by which the switches and their controller know each other."""

    key: Path
    certificate: Path
    authority: Path


@dataclass(frozen=True, slots=True)
class Options:
    """How a lab is built; what is impossible is refused.

    `links` of `None` are veth pairs where there are interfaces and patch ports where there are none.
    """

    controller: str | None = "tcp:127.0.0.1:6653"
    datapath: Datapath = "netdev"
    links: Links | None = None
    tls: Tls | None = None
    shape: bool = False
    table_limit: int | None = None
    prefixes: tuple[str, ...] = ("ipv6_dst", "ipv6_src")

    def __post_init__(self) -> None:
        if self.datapath not in ("netdev", "dummy"):
            raise LabError(f"there is no datapath {quoted(self.datapath)}", "use netdev or dummy")
        if self.links not in ("veth", "patch", None):
            raise LabError(f"there are no links {quoted(self.links)}", "use veth or patch")
        if self.datapath == "dummy" and (self.links == "veth" or self.shape):
            raise LabError("the dummy datapath has no interfaces", "use links patch, without --shape")
        if self.controller is not None and not _CONTROLLER.fullmatch(self.controller):
            raise LabError(f"{quoted(self.controller)} is no controller", "write tcp:127.0.0.1:6653")
        if self.controller is not None and self.controller.startswith("ssl:") and self.tls is None:
            raise LabError("a controller at ssl: needs a key, a certificate and an authority")
        if self.table_limit is not None and self.table_limit < 1:
            raise LabError(f"a table cannot be limited to {self.table_limit} entries", "use 1 or more")

    @property
    def cables(self) -> Links:
        """What links between switches are made of."""
        return self.links or ("veth" if self.datapath == "netdev" else "patch")


@dataclass(frozen=True)
class Plan:
    """All names and commands of one lab, checked: whatever is asked of it can be built."""

    topology: Topology
    name: str
    options: Options = field(default_factory=Options)

    def __post_init__(self) -> None:
        names.checked(self.name)
        count = len(self.topology.switches)
        if count > MAX_SWITCHES:
            raise LabError(f"the topology has {count} switches", f"a lab has at most {MAX_SWITCHES}")
        if count == 0:
            raise LabError("the topology has no switches", "a lab has at least one")

    @cached_property
    def numbers(self) -> dict[str, int]:
        """A switch's number, its datapath id, is its position from 1."""
        return {switch: number for number, switch in enumerate(self.topology.switches, start=1)}

    def bridge(self, switch: str) -> str:
        return names.bridge(self.name, self._number(switch))

    def interface(self, port: Port) -> str:
        """The interface at a switch's port."""
        if port.number not in self.topology.ports(SwitchId(port.node)):
            raise LabError(f"there is no port {port} in lab {self.name}")
        return names.interface(self.name, self._number(port.node), port.number)

    def namespace(self, host: str) -> str:
        return names.namespace(self.name, host, self.topology.host_number(HostId(host)))

    def link(self, port: Port) -> Link:
        """The cable in a port of a switch or host."""
        for found in self.topology.neighbours(port.node):
            if found.port == port.number:
                return found.link
        raise LabError(f"there is no link at port {port} in lab {self.name}")

    def interfaces(self, links: Iterable[Link] | None = None) -> Iterator[str]:
        """The switches' ends of links that are real interfaces, each once."""
        for link in self.topology.links if links is None else links:
            if self.is_wired(link):
                yield from (self.interface(end) for end in link.ends if end.node in self.numbers)

    def is_wired(self, link: Link) -> bool:
        """Whether a link is a veth pair."""
        if self.options.datapath == "dummy":
            return False
        return self.options.cables == "veth" or not (link.a in self.numbers and link.b in self.numbers)

    def _number(self, switch: str) -> int:
        if switch not in self.numbers:
            raise LabError(f"there is no switch {quoted(switch)} in lab {self.name}")
        return self.numbers[switch]


def namespaces(plan: Plan) -> list[str]:
    """Lines for ``ip -batch``: a namespace a host."""
    if plan.options.datapath == "dummy":
        return []
    return [f"netns add {plan.namespace(host)}" for host in plan.topology.hosts]


def cables(plan: Plan) -> list[str]:
    """Lines for ``ip -batch``: a veth pair a link, the host's end in its namespace with its own address."""
    group = names.group(plan.name)
    lines = []
    for link in filter(plan.is_wired, plan.topology.links):
        near, far = link.ends if link.a in plan.numbers else link.ends[::-1]
        if far.node in plan.numbers:
            peer = f"name {plan.interface(far)} group {group}"
        else:
            host = HostId(far.node)
            space = plan.namespace(host)
            peer = f"name {names.HOST_INTERFACE} address {mac(plan.topology, host)} netns {space}"
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
    eth0 = names.HOST_INTERFACE
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


def bridge_words(plan: Plan, switch: SwitchId) -> list[str]:
    """Words for ``ovs-vsctl``: one switch with its tables, its controller and all its ports."""
    number, bridge = plan.numbers[switch], plan.bridge(switch)
    words = ["--", "add-br", bridge, "--", "set", "Bridge", bridge, "datapath_type=dummy", "fail_mode=secure"]
    # 1.4 is there for the bundles of ovs-ofctl; a controller that says 1.3 gets 1.3.
    words += ["protocols=OpenFlow13,OpenFlow14", "other-config:disable-in-band=true"]
    words.append(f"other-config:datapath-id={number:016x}")
    for table in TABLES:
        words += _flow_table(plan, number, table)
        words += ["--", "set", "Bridge", bridge, f"flow_tables:{table}=@t{table}s{number}"]
    if plan.options.controller is not None:
        target = f'target="{plan.options.controller}"'
        words += ["--", f"--id=@c{number}", "create", "Controller", target, "connection_mode=out-of-band"]
        # A second, not eight, until a controller that is back is found; and room for a burst of requests.
        words += ["max_backoff=1000", "controller_queue_size=512"]
        words += ["--", "set", "Bridge", bridge, f"controller=@c{number}"]
    for port in plan.topology.ports(switch):
        words += port_words(plan, Port(switch, port))
    return words


def port_words(plan: Plan, port: Port) -> list[str]:
    """Words for ``ovs-vsctl``: one port of a switch, with the number that the topology gives it."""
    name, link = plan.interface(port), plan.link(port)
    words = ["--", "add-port", plan.bridge(port.node), name, "--", "set", "Interface", name]
    words.append(f"ofport_request={port.number}")
    (peer,) = (end for end in link.ends if end != port)
    if plan.is_wired(link):
        return words
    if peer.node in plan.numbers:
        return [*words, "type=patch", f"options:peer={plan.interface(peer)}"]
    return [*words, "type=dummy"]


def network_words(plan: Plan) -> list[str]:
    """Words for one transaction of ``ovs-vsctl`` that makes the whole network."""
    words = ["init"]
    if (tls := plan.options.tls) is not None:
        words += ["--", "set-ssl", str(tls.key), str(tls.certificate), str(tls.authority)]
    for switch in plan.topology.switches:
        words += bridge_words(plan, switch)
    return words


def _flow_table(plan: Plan, number: int, table: int) -> list[str]:
    # A row of its own for each table, so that each can be limited on its own.
    words = ["--", f"--id=@t{table}s{number}", "create", "Flow_Table", f"name=table{table}"]
    if plan.options.prefixes:
        words.append(f"prefixes={','.join(plan.options.prefixes)}")
    if plan.options.table_limit is not None and table == TABLES[-1]:
        words += [f"flow_limit={plan.options.table_limit}", "overflow_policy=refuse"]
    return words


def own_interfaces(plan: Plan, switch: str) -> list[str]:
    """The real interfaces at a switch's ports."""
    ports = [(Port(switch, found.port), found.link) for found in plan.topology.neighbours(switch)]
    return [plan.interface(port) for port, link in ports if plan.is_wired(link)]


def attached(plan: Plan, link: Link) -> list[str]:
    """Words for ``ovs-vsctl``: the ends of a link that is no veth pair are ports."""
    # A patch port knows no 'down', so a link that is cut has no ports and a healed one has them again.
    return detached(plan, link) + [word for end in _ends(plan, link) for word in port_words(plan, end)]


def detached(plan: Plan, link: Link) -> list[str]:
    """Words for ``ovs-vsctl``: the ends of a link are no ports."""
    words = ["init"]
    for end in _ends(plan, link):
        words += ["--", "--if-exists", "del-port", plan.interface(end)]
    return words


def limit_words(plan: Plan, switch: str, entries: int | None, policy: str, table: int) -> list[str]:
    """Words for ``ovs-vsctl``: the most entries of one table of a switch, `None` for no limit."""
    if policy not in ("refuse", "evict") or table not in TABLES or (entries is not None and entries < 0):
        raise LabError(f"table {table} cannot be limited to {entries} with {quoted(policy)}")
    bridge, row = plan.bridge(switch), f"@t{table}s{plan.numbers[switch]}"
    words = [f"--id={row}", "create", "Flow_Table", f"name=table{table}"]
    if plan.options.prefixes:
        words.append(f"prefixes={','.join(plan.options.prefixes)}")
    if entries is not None:
        words += [f"flow_limit={entries}", f"overflow_policy={policy}"]
    return [*words, "--", "set", "Bridge", bridge, f"flow_tables:{table}={row}"]


def _ends(plan: Plan, link: Link) -> list[Port]:
    return [end for end in link.ends if end.node in plan.numbers]
