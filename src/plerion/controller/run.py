"""The process: one loop with switches on one side, hosts in-band, and operators on the other.

The journal is loaded before anybody can connect, so whoever gets an answer gets it from a controller that knows all it
ever acknowledged. Ending it leaves the switches as they are: events flow on without a controller.
"""

from __future__ import annotations

import asyncio
import gc
import secrets
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from logging import getLogger

from plerion.controller.announce import Announcer, packed
from plerion.controller.config import Config, Listen
from plerion.controller.desk import Desk
from plerion.controller.detour import Detour
from plerion.controller.inband import InBand
from plerion.controller.journal import Journal
from plerion.controller.language import at_rest
from plerion.controller.lease import Leases
from plerion.controller.network import Network
from plerion.controller.rehearsal import rehearse
from plerion.controller.reindex import Reindexing
from plerion.controller.service import Controller
from plerion.controller.watch import Watch
from plerion.southbound.openflow.driver import OpenFlowSouthbound
from plerion.southbound.openflow.events import PacketArrived, SwitchStatistics
from plerion.southbound.openflow.server import Tls
from plerion.topology.discovery import is_beacon
from plerion.topology.graph import Port, SwitchId

TICK_SECONDS = 0.25
EVENTS_AT_A_TIME = 32
DEAF_SECONDS = 1.0  # between two ticks: so long nobody was heard, and nobody may be held to it
ADOPT_SECONDS = 30.0  # between two looks for interests whose session nobody opened
ENDING_SECONDS = 5.0  # for a round that is under way when the process is told to end

log = getLogger(__name__)


class Service:
    """A controller at work on a network: `run` until it is told to `stop`."""

    def __init__(self, config: Config, controller: Controller, network: Network) -> None:
        now = asyncio.get_running_loop().time()
        self.config, self.controller, self.network = config, controller, network
        leases = Leases(config.leases.usual_seconds, config.leases.longest_seconds)
        spoken = at_rest(controller.state.settings, config.last_hop)
        desk = Desk(packed(spoken), leases, config.quotas)
        adopted = desk.adopt(controller.state, now)
        if adopted:
            log.info("%d sessions of before have a fresh lease", adopted)
        self.inband = InBand(config.settings.topology, controller, desk, network.send_packet)
        controller.rolling.publishers = Announcer(
            lambda: controller.state, desk, config.last_hop, self.inband.tell
        )
        self.detour = Detour(controller, network)
        self.changes = Reindexing(controller, desk, config.reindex)
        self.watch = Watch(
            controller,
            network,
            secrets.token_bytes(32),
            now,
            config.grace_seconds,
            config.start_seconds,
            config.beacon_seconds,
        )
        self._stopped = asyncio.Event()

    @property
    def ready(self) -> bool:
        """Whether every switch is connected and holds what it should."""
        every = frozenset(self.config.settings.topology.switches)
        return self.controller.in_step and self.network.connected == every

    def stop(self) -> None:
        self._stopped.set()

    async def run(self, until: asyncio.Event | None = None) -> None:
        """Works until it is told to stop, or the event comes about; then lets the round that is under way end."""
        work = (self._events(), self._ticks(), self.changes.follow(), self.detour.run())
        tasks = [asyncio.create_task(one) for one in work]
        stopped = asyncio.create_task((until or self._stopped).wait())
        try:
            done, _ = await asyncio.wait([*tasks, stopped], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in (*tasks, stopped):
                task.cancel()
            await asyncio.gather(*tasks, stopped, return_exceptions=True)
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self.controller.settled(), ENDING_SECONDS)

    async def statistics(self) -> dict[SwitchId, SwitchStatistics]:
        """Counters of all switches that can be asked."""
        switches = sorted(self.network.connected)
        found = await asyncio.gather(*map(self.network.statistics, switches), return_exceptions=True)
        pairs = zip(switches, found, strict=True)
        return {switch: counters for switch, counters in pairs if isinstance(counters, SwitchStatistics)}

    async def _events(self) -> None:
        loop = asyncio.get_running_loop()
        taken = 0
        async for event in self.network.events():
            taken += 1
            if taken % EVENTS_AT_A_TIME == 0:  # what never ends must not keep everything else waiting
                await asyncio.sleep(0)
            now = loop.time()
            if not isinstance(event, PacketArrived):
                self.watch.take(event, now)
            elif is_beacon(event.payload):
                self.watch.hear(Port(event.switch, event.in_port), event.payload, now)
            else:
                self.inband.arrived(Port(event.switch, event.in_port), event.payload, now)

    async def _ticks(self) -> None:
        loop = asyncio.get_running_loop()
        last = loop.time()
        adopt_due = last + ADOPT_SECONDS
        while True:
            await asyncio.sleep(TICK_SECONDS)
            now = loop.time()
            if now - last > DEAF_SECONDS:  # a large step, or the whole machine stood still
                self.watch.extend(now - last)
                self.inband.desk.leases.extend(now - last)
            last = now
            self.watch.tick(now)
            self.inband.expire(now)
            self.changes.tick(now)
            if now >= adopt_due:
                adopt_due = now + ADOPT_SECONDS
                self.inband.desk.adopt(self.controller.state, now)


@asynccontextmanager
async def started(config: Config) -> AsyncIterator[Service]:
    """A service on OpenFlow switches, its journal loaded and its port open; `run` it."""
    journal = Journal(config.journal, config.settings)
    try:
        rehearse(config.settings.index)
        network = OpenFlowSouthbound(
            config.settings.topology, config.settings.plan, config.last_hop, config.switch_ids
        )
        every = config.settings.topology.switches
        controller = await Controller.start(config.settings, journal, network, absent=every)
        state = controller.state
        log.info(
            "loaded %d subscriptions and %d advertisements",
            len(state.subscriptions),
            len(state.advertisements),
        )
        gc.collect()
        gc.freeze()  # what was loaded stays: looking through it again and again would hold up answers
        listen = config.openflow
        service = Service(config, controller, network)
        resumed = asyncio.create_task(controller.go_on(), name="go on")
        await asyncio.sleep(0)  # a rollout that was under way is known before any switch connects
        try:
            async with network.listening(listen.host, listen.port, _tls(listen)):
                log.info("switches are expected at %s:%d", listen.host, network.port or 0)
                yield service
        finally:
            resumed.cancel()
            await asyncio.gather(resumed, return_exceptions=True)
    finally:
        journal.close()


def _tls(listen: Listen) -> Tls | None:
    if listen.tls is None or listen.tls.authority is None:
        return None
    return Tls(listen.tls.certificate, listen.tls.key, listen.tls.authority)


async def serve(config: Config) -> None:
    """The whole process, until SIGTERM or SIGINT."""
    from plerion.controller.api import serving  # noqa: PLC0415 - FastAPI takes a second to import, `check` needs it not

    loop, told_to_end = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told_to_end.set)
    async with started(config) as service, serving(service):
        await service.run(told_to_end)
    log.info("ended; the switches keep what they hold")
