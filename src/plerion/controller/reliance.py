"""Which switches an interest relies on: those that events cross between who sends them and who wants them.

While a switch cannot be told anything, only interests that rely on it have to wait for it. A switch lies between two
hosts on a tree exactly when it would send to them by different ports.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from plerion.controller.inputs import Advertise, Input, Subscribe
from plerion.controller.state import State
from plerion.index.dzset import DzSet
from plerion.routing.tree import Spanning, spanning
from plerion.topology.graph import HostId, Port, SwitchId


class Reliance:
    """Answers for one state; the trees are laid once for all questions."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._laid: dict[SwitchId, Spanning] = {}

    def of(self, received: Input, switches: Iterable[SwitchId]) -> frozenset[SwitchId]:
        """Those of the switches that the interest relies on; a failure or a withdrawal relies on none."""
        alive = frozenset(switches).intersection(self._state.surviving.switches)
        if isinstance(received, Subscribe):
            cells = self._state.covers.get(received.id, ())
            senders = [(one.host, one.dz) for one in self._state.announced.values()]
            return self._between(HostId(received.host), DzSet.of(cells), senders, alive)
        if isinstance(received, Advertise):
            announced = self._state.announced.get(received.id)
            # Who wants it may be thousands; an advertisement is rare and can wait for all of them.
            return alive if announced is not None and announced.dz else frozenset()
        return frozenset()

    def _between(
        self,
        subscriber: HostId,
        wanted: DzSet,
        senders: Iterable[tuple[HostId, DzSet]],
        alive: frozenset[SwitchId],
    ) -> frozenset[SwitchId]:
        if not self._state.surviving.has_host(subscriber):
            return frozenset()
        found: set[SwitchId] = set()
        for publisher, sent in senders:
            common = sent & wanted
            if publisher == subscriber or not common or not self._state.surviving.has_host(publisher):
                continue
            roots = {tree.root for tree in self._state.forest.trees if tree.dz.overlaps(common)}
            crossed = (self._crossed(root, publisher, subscriber, alive - found) for root in roots)
            found.update(chain.from_iterable(crossed))
        return frozenset(found)

    def _crossed(
        self, root: SwitchId, one: HostId, other: HostId, switches: Iterable[SwitchId]
    ) -> list[SwitchId]:
        ways = ((s, self._port(root, s, one), self._port(root, s, other)) for s in switches)
        return [s for s, here, there in ways if here is not None and there is not None and here != there]

    def _port(self, root: SwitchId, switch: SwitchId, towards: HostId) -> int | None:
        if root not in self._laid:
            self._laid[root] = spanning(self._state.surviving, root, self._state.fabric.host_number)
        behind, number = self._laid[root], self._state.fabric.host_number[towards]
        ports = self._state.surviving.ports(switch)
        return next((p for p in ports if behind.get(Port(switch, p), 0) >> number & 1), None)
