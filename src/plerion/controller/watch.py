"""From what switches report to inputs: ports that fall and rise, switches that go and return, links that were learned.

A switch that is gone may be back in a moment with its table as it was, so it is declared down only after a grace; until
then events flow through it as before. A link is down as long as a port at either end is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from logging import getLogger
from typing import Any

from plerion.controller.inputs import Input, LinkDown, LinkUp, SwitchDown
from plerion.controller.network import Network
from plerion.controller.service import Controller
from plerion.southbound.openflow.events import (
    PortChanged,
    SwitchConnected,
    SwitchEvent,
    SwitchLost,
    SwitchRefused,
    UnknownSwitch,
)
from plerion.topology.discovery import Comparison, LearnedLinks, beacon, compare, sender
from plerion.topology.graph import Port, SwitchId, Topology

SETTLED_SECONDS = 1.0  # after it connected, a switch has said which of its ports are down
MEND_SECONDS = 10.0  # between two tries to bring a connected switch up to date that is behind

log = getLogger(__name__)


class Watch:
    """Looks after switches and links for a controller; `take` for each event, `tick` about once a second."""

    def __init__(
        self,
        controller: Controller,
        network: Network,
        key: bytes,
        now: float,
        grace_seconds: float,
        start_seconds: float,
        beacon_seconds: float,
    ) -> None:
        self.comparison = Comparison()
        self.unknown = 0  # connections with an id that no switch has, or in the name of another one
        self._controller, self._network, self._key = controller, network, key
        self._grace, self._beacon_seconds = grace_seconds, beacon_seconds
        self._since: dict[SwitchId, float] = {}  # connected switches
        # For how long a switch may stay away; those that are there at once report it.
        self._until = {s: now + max(grace_seconds, start_seconds) for s in self._topology.switches}
        self._down: set[Port] = set()
        self._learned = LearnedLinks()
        self._beacons_due, self._mend_due = now, now + MEND_SECONDS
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def _topology(self) -> Topology:
        return self._controller.state.settings.topology

    def take(self, event: SwitchEvent, now: float) -> None:
        """What a switch reported, packets aside."""
        match event:
            case SwitchConnected(switch):
                log.info("%s is connected", switch)
                self._since[switch] = now
                self._until.pop(switch, None)
                self._controller.connected(switch)
            case SwitchLost(switch, reason):
                log.warning("%s is lost: %s", switch, reason)
                self._since.pop(switch, None)
                self._until[switch] = now + self._grace
                self._controller.lost(switch)
            case PortChanged(switch, number, up):
                log.warning("%s:%d is %s", switch, number, "up" if up else "down")
                (self._down.discard if up else self._down.add)(Port(switch, number))
                self._relink(now)
            case UnknownSwitch(number, address):
                self.unknown += 1
                log.warning(
                    "a switch with the unknown id %d connected from %s and was sent away", number, address
                )
            case SwitchRefused(switch, address, reason):
                self.unknown += 1
                log.warning("%s from %s was sent away: %s", switch, address, reason)

    def hear(self, at: Port, frame: bytes, now: float) -> None:
        """An LLDP frame that came in at a port."""
        sent_from = sender(frame, self._key)
        if sent_from is not None:
            self._learned.hear(at, sent_from, now)

    def extend(self, seconds: float) -> None:
        """Switches that are away have so much longer: for a time in which nobody could be heard."""
        self._until = {switch: until + seconds for switch, until in self._until.items()}

    def tick(self, now: float) -> None:
        overdue = [switch for switch, until in self._until.items() if until <= now]
        for switch in overdue:
            del self._until[switch]
            log.error("%s stays away and is taken for down", switch)
        self._tell([SwitchDown(switch) for switch in overdue])
        self._relink(now)
        if now >= self._mend_due:
            self._mend_due = now + MEND_SECONDS
            for switch in self._controller.switches.behind & self._network.connected:
                self._controller.connected(switch)
        if now >= self._beacons_due:
            self._beacons_due = now + self._beacon_seconds
            self._compare(now)
            self._spawn(self._send_beacons())

    def _relink(self, now: float) -> None:
        """Inputs for links that are otherwise than the state has them; a link is up when both its ends say so."""
        state = self._controller.state
        settled = {s for s, since in self._since.items() if now - since >= SETTLED_SECONDS}
        wanted = {min(port, peer) for port in self._down if (peer := self._peer(port)) is not None}
        down = [LinkDown(str(port)) for port in wanted if port not in state.dead_links]
        up = [LinkUp(str(p)) for p in state.dead_links if p not in wanted and self._ends(p) <= settled]
        self._tell([*down, *up])

    def _peer(self, port: Port) -> Port | None:
        return self._topology.peer(port.node, port.number)

    def _ends(self, port: Port) -> set[SwitchId]:
        """The switches at the two ends of a link."""
        ends = [end.node for end in (port, self._peer(port)) if end is not None]
        return {SwitchId(node) for node in ends if node in self._controller.state.fabric.switch_number}

    def _compare(self, now: float) -> None:
        """Only among switches that were there for long enough to be heard."""
        listening = 2 * self._beacon_seconds
        heard = {s for s, since in self._since.items() if now - since >= listening}
        away = frozenset(self._topology.switches) - heard
        learned = self._learned.recent(now, 3 * self._beacon_seconds)
        among = {at: found for at, found in learned.items() if at.node not in away and found.node not in away}
        found = compare(self._topology.without(away, self._down_ends(away)), among)
        if found != self.comparison:
            self.comparison = found
            for line in differences(found):
                log.warning(line)

    def _down_ends(self, away: frozenset[SwitchId]) -> list[Port]:
        return [port for port in self._down if port.node not in away and self._peer(port) is not None]

    async def _send_beacons(self) -> None:
        for switch in self._network.connected:
            for number in self._topology.ports(switch):
                place = Port(switch, number)
                try:
                    await self._network.send_packet(switch, number, beacon(place, self._key))
                except ConnectionError:  # lost just now; its loss is reported
                    break

    def _tell(self, inputs: list[Input]) -> None:
        if inputs:
            self._spawn(self._handled(inputs))

    async def _handled(self, inputs: list[Input]) -> None:
        for received, answer in zip(inputs, await self._controller.handle_all(inputs), strict=True):
            if not answer.ready:
                log.error("%s was not taken: %s", received, answer.reason)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("what the switches reported was not handled", exc_info=task.exception())


def differences(found: Comparison) -> Iterable[str]:
    """A comparison in words, a line each."""
    yield from (f"nothing comes through the link {link}, which is declared" for link in found.missing)
    yield from (f"the link {link} carries beacons one way only" for link in found.one_way)
    for wrong in found.miswired:
        yield f"{wrong.at} hears {wrong.found}, but {wrong.declared} is declared there: is a cable in the wrong port?"
    for wrong in found.unexpected:
        yield f"{wrong.at} hears {wrong.found}, where no switch is declared"
