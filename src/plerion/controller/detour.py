"""Events that go through the controller while the tables change (the strategy `bridge`).

An event says by which index it was coded; the tables of that index say to whom it goes, and the switches of those hosts
are handed it. Slow, and for as long as one change lasts; what was on its way then finds its way also afterwards.
"""

from __future__ import annotations

from ipaddress import IPv6Network
from logging import getLogger

from plerion.controller.network import Network
from plerion.controller.prepare import Prepared
from plerion.controller.service import Controller
from plerion.flow.walk import ModelNetwork
from plerion.index.address import AddressPlan
from plerion.index.dz import DzError
from plerion.southbound.openflow.events import Bridged
from plerion.topology.graph import HostId, SwitchId
from plerion.wire.error import WireError
from plerion.wire.event import decode
from plerion.wire.frame import TAGGED, parse

log = getLogger(__name__)


class Detour:
    """Hands on what switches bridge, for as long as it runs."""

    def __init__(self, controller: Controller, network: Network) -> None:
        self.passed = self.refused = 0  # events
        self._controller, self._network = controller, network
        self._change: Prepared | None = None
        self._spoken: dict[int, tuple[AddressPlan, ModelNetwork]] = {}  # by the epoch of the index

    async def run(self) -> None:
        async for event in self._network.bridged():
            try:
                await self.hand_on(event)
                self.passed += 1
            except (WireError, DzError, ConnectionError) as error:
                self.refused += 1
                log.debug("an event at %s:%d is not handed on: %s", event.switch, event.in_port, error)

    async def hand_on(self, event: Bridged) -> None:
        """To everybody to whom the tables of its index would have brought it."""
        topology = self._controller.state.settings.topology
        peer = topology.peer(event.switch, event.in_port)
        if peer is None or not topology.has_host(HostId(peer.node)):
            raise WireError(f"there is no host at {event.switch}:{event.in_port}")
        frame = parse(_untagged(event.payload))
        plan, model = self._known(decode(frame.payload).epoch)
        code = plan.dz(IPv6Network(frame.destination))
        for host in model.walk(code, HostId(peer.node)).delivered:
            place = topology.attachment(host)
            await self._network.hand_on(SwitchId(place.node), frozenset({place.number}), event.payload)

    def _known(self, epoch: int) -> tuple[AddressPlan, ModelNetwork]:
        """How the index of this epoch is spoken in the present change, or in the latest one."""
        change = self._controller.rolling.under_way
        if change is not None and change is not self._change:
            self._change = change
            self._spoken = {
                state.settings.index.epoch: (state.settings.plan, ModelNetwork(stood.tables, state.surviving))
                for state, stood in ((change.old, change.plan.old), (change.new, change.plan.new))
            }
        if epoch not in self._spoken:
            raise WireError(f"nobody speaks the index of epoch {epoch}")
        return self._spoken[epoch]


def _untagged(frame: bytes) -> bytes:
    """The frame without the one VLAN tag that it may have."""
    return frame[:12] + frame[16:] if frame[12:14] == TAGGED.to_bytes(2, "big") else frame
