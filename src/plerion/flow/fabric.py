"""A topology as arrays: switches, hosts and switch ports by number, for kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from plerion.topology.graph import HostId, Port, SwitchId, Topology

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)  # without slots: what follows from the fields is kept
class Fabric:
    """All ports of all switches in one list of *slots*, switch by switch in port order.

    Switch x owns the slots `first[x]` to `first[x + 1]`; in a set of ports of x, bit j stands for its j-th slot.
    A slot leads to a switch (`peer_slot`, else -1) or to a host (`host`, else -1).
    """

    topology: Topology
    first: Ints
    switch_of: Ints
    port: Ints
    peer_slot: Ints
    host: Ints
    attachment: Ints  # by host: the slot that it hangs on
    switch_number: dict[SwitchId, int]
    host_number: dict[HostId, int]

    @property
    def switches(self) -> int:
        return len(self.first) - 1

    @cached_property
    def port_words(self) -> int:
        """64-bit words that a set of ports of any one switch needs, with at least one bit that no port uses."""
        return int(np.diff(self.first).max(initial=0)) // 64 + 1

    @cached_property
    def host_words(self) -> int:
        return max(1, -(-len(self.attachment) // 64))

    @cached_property
    def host_ports(self) -> npt.NDArray[np.uint64]:
        """By switch: the set of its ports that lead to hosts."""
        found = np.zeros((self.switches, self.port_words), np.uint64)
        slots = np.flatnonzero(self.host >= 0)
        place = slots - self.first[self.switch_of[slots]]
        bits = np.uint64(1) << (place % 64).astype(np.uint64)
        np.bitwise_or.at(found, (self.switch_of[slots], place // 64), bits)
        return found

    def slot(self, port: Port) -> int:
        x = self.switch_number[SwitchId(port.node)]
        begin, end = int(self.first[x]), int(self.first[x + 1])
        return begin + int(np.searchsorted(self.port[begin:end], port.number))

    def ports(self, switch: int, words: npt.NDArray[np.uint64]) -> tuple[int, ...]:
        """The port numbers in a set of ports of the switch."""
        mask = sum(int(word) << (64 * i) for i, word in enumerate(words))
        begin = int(self.first[switch])
        return tuple(int(self.port[begin + j]) for j in range(mask.bit_length()) if mask >> j & 1)


@lru_cache(maxsize=16)
def fabric(topology: Topology) -> Fabric:
    """The arrays of a topology; made once for each."""
    slots = [Port(switch, number) for switch in topology.switches for number in topology.ports(switch)]
    number = {port: i for i, port in enumerate(slots)}
    hosts = {host: i for i, host in enumerate(topology.hosts)}
    peers = [topology.peer(port.node, port.number) for port in slots]
    switches = {switch: i for i, switch in enumerate(topology.switches)}
    sizes = [len(topology.ports(switch)) for switch in topology.switches]
    return Fabric(
        topology,
        first=np.cumsum([0, *sizes]).astype(np.int64),
        switch_of=np.array([switches[SwitchId(port.node)] for port in slots], np.int64),
        port=np.array([port.number for port in slots], np.int64),
        peer_slot=np.array([-1 if peer is None else number.get(peer, -1) for peer in peers], np.int64),
        host=np.array([-1 if peer is None else hosts.get(HostId(peer.node), -1) for peer in peers], np.int64),
        attachment=np.array([number[topology.attachment(host)] for host in topology.hosts], np.int64),
        switch_number=switches,
        host_number=hosts,
    )
