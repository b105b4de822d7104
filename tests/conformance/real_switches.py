"""Open vSwitch behind the conformance suite: one daemon, the bridges of each fabric once, their tables emptied by
another program than the one under test before every scene."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import cached_property
from time import monotonic

from plerion.flow.fabric import Fabric
from plerion.index.address import AddressPlan
from plerion.southbound.openflow.driver import OpenFlowSouthbound
from plerion.topology import SwitchId, Topology
from tests.ovs.daemon import OpenVSwitch, open_vswitch

EVENTS_AND_ADMISSIONS = "cookie=0x506c657200000002/0xfffffffffffffffe"
PATIENCE_SECONDS = 60.0


@dataclass
class RealSite:
    """Switches that lose their controller, find it again and have little room."""

    southbound: OpenFlowSouthbound
    bridges: dict[SwitchId, str]
    open_vswitch: OpenVSwitch

    async def lose(self, *switches: SwitchId) -> None:
        # To where nobody listens: a switch without any controller would forget all that it was told.
        await self._point(switches, 1)
        give_up = monotonic() + PATIENCE_SECONDS
        while self.southbound.connected & set(switches):
            assert monotonic() < give_up, f"{switches} stay connected"
            await asyncio.sleep(0.002)

    async def connect(self, *switches: SwitchId) -> None:
        await self._point(switches, self.southbound.port or 0)
        await self.southbound.until_connected(switches, PATIENCE_SECONDS)

    async def _point(self, switches: Sequence[SwitchId], port: int) -> None:
        names = [self.bridges[switch] for switch in switches]
        await asyncio.to_thread(self.open_vswitch.connect, names, f"tcp:127.0.0.1:{port}")

    async def give_room(self, switch: SwitchId, entries: int | None) -> None:
        """The entry that drops what nobody wants needs room, too."""
        limit = [] if entries is None else [f"flow_limit={entries + 1}", "overflow_policy=refuse"]
        await asyncio.to_thread(
            self.open_vswitch.vsctl,
            *("--", "--id=@t", "create", "Flow_Table", "name=t", *limit),
            *("--", "set", "Bridge", self.bridges[switch], "flow_tables:1=@t"),
        )


class RealSwitches:
    """Starts what is asked for when it is asked for; `runner` is the loop that all of it lives on."""

    def __init__(self, plan: AddressPlan | None = None) -> None:
        self._plan = plan or AddressPlan()
        self._stack = AsyncExitStack()
        self._made: dict[Topology, RealSite] = {}

    @cached_property
    def runner(self) -> asyncio.Runner:
        return asyncio.Runner()

    @cached_property
    def _open_vswitch(self) -> OpenVSwitch:
        return self._stack.enter_context(open_vswitch())

    async def southbound(self, fabric: Fabric) -> OpenFlowSouthbound:
        return (await self.site(fabric.topology)).southbound

    async def site(self, topology: Topology) -> RealSite:
        if topology not in self._made:
            self._made[topology] = await self._connected(topology)
        site = self._made[topology]
        # In a thread: the loop goes on answering, or it would give its switches up.
        await asyncio.to_thread(self._empty, site)
        return site

    def _empty(self, site: RealSite) -> None:
        for bridge in site.bridges.values():
            self._open_vswitch.ofctl("del-flows", bridge, EVENTS_AND_ADMISSIONS)

    async def _connected(self, topology: Topology) -> RealSite:
        number = len(self._made) + 1
        ids = {switch: 1000 * number + i for i, switch in enumerate(topology.switches)}
        bridges = {switch: f"n{number}{switch}" for switch in topology.switches}
        southbound = OpenFlowSouthbound(topology, self._plan, ids=ids)
        await self._stack.enter_async_context(southbound.listening(port=0))
        named = {bridges[switch]: ids[switch] for switch in topology.switches}
        await asyncio.to_thread(self._open_vswitch.add_bridges, named)
        site = RealSite(southbound, bridges, self._open_vswitch)
        await site.connect(*topology.switches)
        return site

    def close(self) -> None:
        if "runner" in self.__dict__:
            self.runner.run(self._stack.aclose())
            self.runner.close()
