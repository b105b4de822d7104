"""The network: which switches, hosts and links there are. Trees and paths (`routing`) are laid on it.

`graph` is the value, `generate` makes regular ones, `read` takes them from files. It imports nothing else of
Plerion.
"""

from plerion.topology.error import TopologyError, TopologyWarning
from plerion.topology.generate import fat_tree, from_name, line, random_graph, ring, star, torus
from plerion.topology.graph import Topology, ipv6, mac
from plerion.topology.link import HostId, Link, Neighbour, NodeId, Port, SwitchId
from plerion.topology.read import load, parse_topology, read_topology
from plerion.topology.sketch import Reading

__all__ = [
    "HostId",
    "Link",
    "Neighbour",
    "NodeId",
    "Port",
    "Reading",
    "SwitchId",
    "Topology",
    "TopologyError",
    "TopologyWarning",
    "fat_tree",
    "from_name",
    "ipv6",
    "line",
    "load",
    "mac",
    "parse_topology",
    "random_graph",
    "read_topology",
    "ring",
    "star",
    "torus",
]
