"""The network as a value: switches, hosts and the links between their ports.

A `Topology` that exists is valid, never changes, and can be shared, hashed, pickled and compared. A failure
does not change it either: `without` gives the part that survived. Nodes are ``s1``, ``h1``, ports ``s1:2``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv6Address

import msgspec
import rustworkx as rx

from plerion.topology.error import TopologyError, shown
from plerion.topology.link import HostId, Link, Neighbour, NodeId, Port, SwitchId
from plerion.topology.wiring import Wiring, wiring

__all__ = [
    "HostId",
    "Link",
    "Neighbour",
    "NodeId",
    "Port",
    "SwitchId",
    "Topology",
    "TopologyError",
    "ipv6",
    "mac",
    "mac_beside",
]

_HOSTS = 0xFD00 << 112  # the address in front of the first host's


@dataclass(frozen=True, slots=True)
class Topology:
    """A valid network: names are unique, each port holds one link, each host hangs on exactly one switch.

    The order of `switches` and `hosts` is kept and carries meaning (a host's number is its position). Two
    switches may have several links between them; the switches need not be connected; there may be no hosts.
    Construction checks all of it in O(size) and raises `TopologyError`; afterwards every query about one node
    costs its degree at most.
    """

    switches: tuple[SwitchId, ...]
    hosts: tuple[HostId, ...]
    links: tuple[Link, ...]
    _wiring: Wiring = field(init=False, repr=False, compare=False)
    _host_numbers: dict[HostId, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_wiring", wiring(self.switches, self.hosts, self.links))
        object.__setattr__(self, "_host_numbers", {host: i for i, host in enumerate(self.hosts, start=1)})

    def neighbours(self, node: NodeId) -> tuple[Neighbour, ...]:
        """(port, peer, peer's port, link) for each link of the node, in port order."""
        return tuple(self._ports_of(node).values())

    def peer(self, node: NodeId, port: int) -> Port | None:
        """The port at the other end of the cable, `None` where no cable is plugged in; its own inverse."""
        found = self._ports_of(node).get(port)
        return None if found is None else Port(found.peer, found.peer_port)

    def attachment(self, host: HostId) -> Port:
        """The switch port that the host hangs on."""
        self.host_number(host)
        (only,) = self._wiring[host].values()
        return Port(only.peer, only.peer_port)

    def ports(self, switch: SwitchId) -> tuple[int, ...]:
        """The numbers of the ports in use, in order."""
        return tuple(self._ports_of(switch))

    def has_host(self, host: HostId) -> bool:
        """Whether the host is part of this network, or of what is left of it."""
        return host in self._host_numbers

    def host_number(self, host: HostId) -> int:
        """The host's position, from 1; its addresses are made from it."""
        if host not in self._host_numbers:
            raise TopologyError(f"there is no host {shown(host)}", fix="use a name from `hosts`")
        return self._host_numbers[host]

    def components(self) -> tuple[frozenset[SwitchId], ...]:
        """The switches in parts that reach each other, ordered by each part's first switch. O(size)."""
        position: dict[NodeId, int] = {switch: i for i, switch in enumerate(self.switches)}
        graph: rx.PyGraph[None, None] = rx.PyGraph()
        graph.add_nodes_from([None] * len(self.switches))
        graph.add_edges_from_no_data(
            [
                (position[link.a], position[link.b])
                for link in self.links
                if position.keys() >= {link.a, link.b}
            ]
        )
        parts = sorted(rx.connected_components(graph), key=min)
        return tuple(frozenset(self.switches[i] for i in part) for part in parts)

    def without(self, switches: Iterable[SwitchId] = (), links: Iterable[Port] = ()) -> "Topology":
        """What survives when these switches and links fail; order, names and ports of the rest stay.

        A link is named by either of its ports. A switch takes its links with it, and a host whose link is
        gone is gone too. What is not part of this topology cannot fail: an unknown name raises
        `TopologyError`.
        """
        gone = frozenset(switches)
        if unknown := gone.difference(self.switches):
            switch = min(unknown)
            raise TopologyError(f"there is no switch {shown(switch)}", fix="use a name from `switches`")
        cut = {self._link_at(port) for port in links}
        kept = tuple(
            link for link in self.links if link not in cut and link.a not in gone and link.b not in gone
        )
        linked = {end for link in kept for end in (link.a, link.b)}
        return Topology(
            tuple(switch for switch in self.switches if switch not in gone),
            tuple(host for host in self.hosts if host in linked),
            kept,
        )

    def to_json(self) -> dict[str, object]:
        """The document that `from_json` reads back to an equal topology; unknown amounts are left out."""
        return {
            "switches": list(self.switches),
            "hosts": list(self.hosts),
            "links": [_link_document(link) for link in self.links],
        }

    @classmethod
    def from_json(cls, document: object) -> "Topology":
        """The topology of a parsed JSON document; raises `TopologyError` with the path to the fault.

        `hosts` and `links` may be missing. Other keys are ignored here; `read_topology` warns of them.
        """
        try:
            parts = msgspec.convert(document, _Document)
        except UnicodeEncodeError as error:
            raise TopologyError(
                f"a text holds {shown(error.object[error.start])}, half a character"
            ) from None
        except (msgspec.ValidationError, OverflowError) as error:
            what, _, place = str(error).partition(" - at ")
            raise TopologyError(what, where=place.strip("`").removeprefix("$.")) from None
        return cls(parts.switches, parts.hosts, parts.links)

    def to_dot(self, labels: Mapping[NodeId, str] | None = None) -> str:
        """A Graphviz drawing: hosts are boxes, link ends show their ports, a label stands under its name."""
        labels = labels or {}
        lines = ["graph topology {"]
        for node in (*self.switches, *self.hosts):
            text = f"{node}\n{labels[node]}" if node in labels else node
            shape = "box" if node in self._host_numbers else "ellipse"
            lines.append(f"  {_quoted(node)} [shape={shape}, label={_quoted(text)}];")
        for link in self.links:
            ends = f"{_quoted(link.a)} -- {_quoted(link.b)}"
            lines.append(f'  {ends} [taillabel="{link.a_port}", headlabel="{link.b_port}"];')
        return "\n".join([*lines, "}", ""])

    def _ports_of(self, node: NodeId) -> dict[int, Neighbour]:
        if node not in self._wiring:
            raise TopologyError(
                f"there is no node {shown(node)}", fix="use a name from `switches` or `hosts`"
            )
        return self._wiring[node]

    def _link_at(self, port: Port) -> Link:
        found = self._ports_of(port.node).get(port.number)
        if found is None:
            raise TopologyError(f"there is no link at port {port}", fix=f"see ports of {port.node}")
        return found.link


def mac(topology: Topology, host: HostId) -> str:
    """The host's own, locally administered MAC address, ``02:00:00:00:00:01`` for the first host.

    Like `ipv6` it follows from the host's position: ask the whole network, not what is left after a failure.
    """
    return _mac(topology.host_number(host))


def ipv6(topology: Topology, host: HostId) -> str:
    """The host's own, unique local IPv6 address in its canonical spelling, ``fd00::1`` for the first host."""
    return str(IPv6Address(_HOSTS + topology.host_number(host)))


def mac_beside(address: IPv6Address) -> str | None:
    """The MAC address of a host that has this IPv6 address, in any network; None when no host has it."""
    number = int(address) - _HOSTS
    return _mac(number) if 0 < number < 1 << 32 else None


def _mac(number: int) -> str:
    return ":".join(f"{byte:02x}" for byte in b"\x02\x00" + number.to_bytes(4, "big"))


class _Document(msgspec.Struct):
    switches: tuple[SwitchId, ...]
    hosts: tuple[HostId, ...] = ()
    links: tuple[Link, ...] = ()


def _link_document(link: Link) -> dict[str, object]:
    document: dict[str, object] = {"a": link.a, "a_port": link.a_port, "b": link.b, "b_port": link.b_port}
    amounts = {"capacity": link.capacity, "latency": link.latency}
    return document | {name: amount for name, amount in amounts.items() if amount is not None}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "").replace("\n", "\\n")
    return f'"{escaped}"'
