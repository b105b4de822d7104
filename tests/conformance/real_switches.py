"""Open vSwitch behind the conformance suite: one daemon, the bridges of each fabric once, their tables emptied by
another program than the one under test before every scene."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from functools import cached_property

from plerion.flow.fabric import Fabric
from plerion.southbound.openflow.driver import OpenFlowSouthbound
from plerion.topology import Topology
from tests.ovs.daemon import OpenVSwitch, open_vswitch

EVENTS_AND_ADMISSIONS = "cookie=0x506c657200000002/0xfffffffffffffffe"


class RealSwitches:
    """Starts what is asked for when it is asked for; `runner` is the loop that all of it lives on."""

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._made: dict[Topology, tuple[OpenFlowSouthbound, list[str]]] = {}

    @cached_property
    def runner(self) -> asyncio.Runner:
        return asyncio.Runner()

    @cached_property
    def _open_vswitch(self) -> OpenVSwitch:
        return self._stack.enter_context(open_vswitch())

    async def southbound(self, fabric: Fabric) -> OpenFlowSouthbound:
        if fabric.topology not in self._made:
            self._made[fabric.topology] = await self._connected(fabric.topology)
        southbound, bridges = self._made[fabric.topology]
        # In a thread: the loop goes on answering, or it would give its switches up.
        await asyncio.to_thread(self._empty, bridges)
        return southbound

    def _empty(self, bridges: list[str]) -> None:
        for bridge in bridges:
            self._open_vswitch.ofctl("del-flows", bridge, EVENTS_AND_ADMISSIONS)

    async def _connected(self, topology: Topology) -> tuple[OpenFlowSouthbound, list[str]]:
        number = len(self._made) + 1
        ids = {switch: 1000 * number + i for i, switch in enumerate(topology.switches)}
        bridges = {f"n{number}{switch}": ids[switch] for switch in topology.switches}
        southbound = OpenFlowSouthbound(topology, ids=ids)
        await self._stack.enter_async_context(southbound.listening(port=0))
        await asyncio.to_thread(self._open_vswitch.add_bridges, bridges)
        controller = f"tcp:127.0.0.1:{southbound.port}"
        await asyncio.to_thread(self._open_vswitch.connect, list(bridges), controller)
        await southbound.until_connected(timeout=60)
        return southbound, list(bridges)

    def close(self) -> None:
        if "runner" in self.__dict__:
            self.runner.run(self._stack.aclose())
            self.runner.close()
