"""The switches of a plan, as words for `ovs-vsctl`. Nothing here does anything.

One ovsdb-server and one ovs-vswitchd serve all switches of a lab. The userspace datapath of class ``netdev`` makes a
tap device ``ovs-netdev`` of which there can be one a machine, and a tap for each bridge that stays behind when the
daemon is killed. With ``--enable-dummy`` the same datapath is offered as class ``dummy`` without any tap, and ports
of type ``system`` are real interfaces all the same: so that labs run side by side, also beside an Open vSwitch that
does something else, both kinds of lab use it. ``--enable-dummy=override`` makes the interfaces dummies, too.

What makes Open vSwitch fast for us is ``prefixes`` on the flow tables: without it nearly each event's address becomes
an entry of the datapath's cache of its own.
"""

from __future__ import annotations

from collections.abc import Container

from plerion.content.errors import quoted
from plerion.lab.error import LabError
from plerion.lab.plan import Plan
from plerion.lab.wires import discipline
from plerion.topology.graph import Link, Port, SwitchId

TABLES = (0, 1)


def network_words(plan: Plan) -> list[str]:
    """Words for one transaction of ``ovs-vsctl`` that makes the whole network."""
    words = ["init"]
    if (tls := plan.options.tls) is not None:
        words += ["--", "set-ssl", str(tls.key), str(tls.certificate), str(tls.authority)]
    for switch in plan.topology.switches:
        words += bridge_words(plan, switch)
    return words


def bridge_words(plan: Plan, switch: SwitchId) -> list[str]:
    """Words for ``ovs-vsctl``: one switch with its tables, its controller and all its ports."""
    number, bridge = plan.numbers[switch], plan.bridge(switch)
    words = ["--", "add-br", bridge, "--", "set", "Bridge", bridge, "datapath_type=dummy", "fail_mode=secure"]
    # 1.4 is there for the bundles of ovs-ofctl; a controller that says 1.3 gets 1.3.
    words += ["protocols=OpenFlow13,OpenFlow14", "other-config:disable-in-band=true"]
    words.append(f"other-config:datapath-id={number:016x}")
    for table in TABLES:
        words += _flow_table(plan, switch, table, plan.options.table_limit if table == TABLES[-1] else None)
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
        return words + (_left_alone(plan, port) if plan.options.shape and discipline(link) else [])
    if peer.node in plan.numbers:
        return [*words, "type=patch", f"options:peer={plan.interface(peer)}"]
    return [*words, "type=dummy"]


def _left_alone(plan: Plan, port: Port) -> list[str]:
    # Without being told not to, Open vSwitch removes what shapes an interface.
    row = f"@q{plan.numbers[port.node]}p{port.number}"
    words = ["--", f"--id={row}", "create", "QoS", "type=linux-noop"]
    return [*words, "--", "set", "Port", plan.interface(port), f"qos={row}"]


def attached(plan: Plan, link: Link) -> list[str]:
    """Words for ``ovs-vsctl``: the ends of a link that is no veth pair are ports."""
    # A patch port knows no 'down', so a link that is cut has no ports and a healed one has them again.
    ends = [end for end in link.ends if end.node in plan.numbers]
    return detached(plan, link) + [word for end in ends for word in port_words(plan, end)]


def detached(plan: Plan, link: Link) -> list[str]:
    """Words for ``ovs-vsctl``: the ends of a link are no ports."""
    ends = [end for end in link.ends if end.node in plan.numbers]
    return [
        "init",
        *(word for end in ends for word in ("--", "--if-exists", "del-port", plan.interface(end))),
    ]


def stopped(plan: Plan, switch: str) -> list[str]:
    """Words for ``ovs-vsctl``: a switch is gone, and so are the far ends of its patch links."""
    words = ["--if-exists", "del-br", plan.bridge(switch)]
    for link in _patches(plan, switch):
        words += ["--", *detached(plan, link)]
    return words


def started(plan: Plan, switch: SwitchId, running: Container[str]) -> list[str]:
    """Words for ``ovs-vsctl``: a switch is there, linked to those that run."""
    words = ["init", *bridge_words(plan, switch)]
    for end in (end for link in _patches(plan, switch) for end in link.ends):
        if end.node != switch and plan.bridge(end.node) in running:
            words += port_words(plan, end)
    return words


def _patches(plan: Plan, switch: str) -> list[Link]:
    links = (found.link for found in plan.topology.neighbours(switch))
    return [link for link in links if {link.a, link.b} <= plan.numbers.keys() and not plan.is_wired(link)]


def limit_words(plan: Plan, switch: str, entries: int | None, policy: str, table: int) -> list[str]:
    """Words for ``ovs-vsctl``: the most entries of one table of a switch, `None` for no limit."""
    if policy not in ("refuse", "evict") or table not in TABLES or (entries is not None and entries < 0):
        raise LabError(f"table {table} cannot be limited to {entries} with {quoted(policy)}")
    words = _flow_table(plan, switch, table, entries, policy)
    return words[1:]


def _flow_table(
    plan: Plan, switch: str, table: int, entries: int | None, policy: str = "refuse"
) -> list[str]:
    # A row of its own for each table, so that each can be limited on its own.
    bridge, row = plan.bridge(switch), f"@t{table}s{plan.numbers[switch]}"
    words = ["--", f"--id={row}", "create", "Flow_Table", f"name=table{table}"]
    if plan.options.prefixes:
        words.append(f"prefixes={','.join(plan.options.prefixes)}")
    if entries is not None:
        words += [f"flow_limit={entries}", f"overflow_policy={policy}"]
    return [*words, "--", "set", "Bridge", bridge, f"flow_tables:{table}={row}"]
