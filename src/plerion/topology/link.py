"""The parts of a network: node names, ports and links. Plain values; `Topology` checks them."""

from dataclasses import dataclass
from typing import NamedTuple, NewType

from plerion.topology.error import TopologyError, shown

SwitchId = NewType("SwitchId", str)
HostId = NewType("HostId", str)
NodeId = str

# 16 bits less the range that OpenFlow 1.0 reserved, so that a port number fits every switch and every log.
MAX_PORT = 65279


@dataclass(frozen=True, slots=True, order=True)
class Port:
    """One end of a link, written ``s1:2``."""

    node: NodeId
    number: int

    def __str__(self) -> str:
        return f"{self.node}:{self.number}"

    @classmethod
    def parse(cls, text: str) -> "Port":
        """The inverse of `str`; whether there is such a port only a topology knows."""
        node, _, number = text.rpartition(":")
        if not node or not (number.isascii() and number.isdigit() and len(number) <= 5):
            raise TopologyError(f"{shown(text)} is not a port", fix="write node:number, such as s1:2")
        return cls(node, int(number))


@dataclass(frozen=True, slots=True)
class Link:
    """A cable between two ports that carries both directions; `None` means that nobody knows.

    `capacity` is in bit/s, `latency` in seconds, both for one direction. A host's only cable is a link too.
    """

    a: NodeId
    a_port: int
    b: NodeId
    b_port: int
    capacity: float | None = None
    latency: float | None = None

    def __str__(self) -> str:
        return f"{self.a}:{self.a_port}–{self.b}:{self.b_port}"

    @property
    def ends(self) -> tuple[Port, Port]:
        return Port(self.a, self.a_port), Port(self.b, self.b_port)


class Neighbour(NamedTuple):
    """What a node finds behind one of its ports."""

    port: int
    peer: NodeId
    peer_port: int
    link: Link
