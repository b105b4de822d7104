"""A network under traffic while a plan runs, on a virtual clock: the same seed gives the same course, always.

What real networks do and a plan must survive is drawn from the seed, within the bounds that the plan was told of:

- An event is a packet on each link for some time. Two packets may overtake each other on one link.
- A switch takes what it is told after some time of its own, in one piece or one change after the other, and confirms
  later still. So switches are out of step with each other for a whole round.
- A publisher hears a notice late, goes on for a while as before, and acknowledges later still; what it sent before is
  then still on the wires.

Nothing here knows how a plan works: switches match what they hold, and `check` judges what arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from heapq import heappop, heappush
from itertools import count
from random import Random

from plerion.flow.walk import ModelNetwork
from plerion.simnet.fault import Faults
from plerion.simnet.switch import Switch
from plerion.simnet.traffic import Conditions, Course, Packet, Sample, Sent
from plerion.topology.graph import HostId, Port, SwitchId, Topology
from plerion.update.entries import Entry, Side, Table
from plerion.update.machine import (
    Acknowledged,
    BarrierIn,
    Began,
    Cut,
    Drain,
    Drained,
    Finish,
    Heard,
    LeaseOver,
    Notify,
    Order,
    Phase,
    Refused,
    Run,
    Stopped,
    Tell,
    resumed,
    started,
    step,
)
from plerion.update.plan import Plan, Sending, marked

MOST_HOPS = 64


class Timeline:
    """One run. `play` it once."""

    def __init__(
        self,
        plan: Plan,
        samples: Sequence[Sample],
        conditions: Conditions,
        seed: int,
        faults: Faults | None = None,
    ) -> None:
        self._plan, self._conditions, self._faults = plan, conditions, faults or Faults()
        self._random = Random(seed)
        self._topology: Topology = plan.old.tables.fabric.topology
        self._hosts = frozenset(self._topology.hosts)
        self._switches = {switch: Switch(switch) for switch in self._topology.switches}
        for entry in marked(plan.before(), plan.after()):
            self._switches[entry.switch].add(entry)
        self._at_rest = {Side.OLD: ModelNetwork(plan.old.tables), Side.NEW: ModelNetwork(plan.new.tables)}
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._turn = count()
        self._now = self._began = self._ended = 0.0
        self._sending: dict[HostId, Sending] = dict.fromkeys(plan.publishers, plan.first_sending)
        self._cut: set[HostId] = set()
        self._events: list[Sent] = []
        self._run: Run | None = None
        # A controller's life: what an earlier one asked for is not heard any more.
        self._life = 0
        self._deaths: set[int] = set()
        self._log: list[tuple[float, str]] = []
        self._held = [(0.0, sum(switch.held for switch in self._switches.values()))]
        self._repertoire = _by_publisher(samples)
        self._last = Began(0, back=False)
        self._heard_until: dict[HostId, float] = {}

    def play(self) -> Course:
        """Runs to the end of the plan, and on until every event has come to rest."""
        for publisher in self._repertoire:
            self._later(self._gap(), partial(self._publish, publisher))
        self._later(self._conditions.quiet_seconds, self._begin)
        while self._queue:
            self._now, _, action = heappop(self._queue)
            action()
        most = {name: switch.most for name, switch in self._switches.items()}
        left = frozenset(entry for switch in self._switches.values() for entry in switch.entries())
        assert self._run is not None, "a plan begins"
        assert self._run.phase == Phase.FINISHED, "a plan ends"
        back = self._run.back
        return Course(self._events, self._began, self._ended, most, back, left, self._held, self._log)

    # The controller: the machine's orders take effect in time.

    def _begin(self) -> None:
        self._began = self._now
        if self._faults.stop_after is not None:
            self._later(self._faults.stop_after, lambda: self._hear(Stopped(), self._life))
        if self._faults.kill_after is not None:
            self._later(self._faults.kill_after, self._die)
        self._run, orders = started(self._plan)
        self._obey(orders)

    def _hear(self, heard: Heard, life: int) -> None:
        if life == self._life and self._run is not None:
            self._run, orders = step(self._run, heard)
            self._obey(orders)

    def _obey(self, orders: Iterable[Order]) -> None:
        for order in orders:
            self._note(order)
            if isinstance(order, Began):
                self._last = order
                if self._killed():
                    return
            elif isinstance(order, Tell):
                self._tell(order)
            elif isinstance(order, Notify):
                self._notify(order)
            elif isinstance(order, Drain):
                self._answer(order.seconds, Drained(order.token))
            elif isinstance(order, Cut):
                self._cut.add(order.publisher)
            elif isinstance(order, Finish):
                self._ended = self._now

    def _answer(self, seconds: float, heard: Heard) -> None:
        life = self._life
        self._later(seconds, lambda: self._hear(heard, life))

    def _die(self) -> None:
        """The controller is killed. Another one takes over from what was written down."""
        if self._run is not None and self._run.phase != Phase.FINISHED:
            self._log.append((self._now, "killed"))
            self._life += 1
            self._later(self._conditions.install_seconds, self._take_over)

    def _killed(self) -> bool:
        """Whether the controller dies now, having written down that a round begins and told nobody anything of it."""
        assert self._run is not None, "a round is one of a plan"
        waiting = self._run.phase != Phase.FINISHED
        dies = waiting and self._run.token in self._faults.kill_rounds - self._deaths
        if dies:
            self._deaths.add(self._run.token)
            self._die()
        return dies

    def _take_over(self) -> None:
        self._run, orders = resumed(self._plan, self._last)
        self._obey(orders)

    def _tell(self, order: Tell) -> None:
        """A switch takes what it is told in the order that it is told it."""
        switch, most = self._switches[order.switch], self._conditions.install_seconds
        ready = max(0.0, switch.busy_until - self._now)
        if self._faults.refuses(order.switch, order.token):
            self._answer(ready + self._drawn(most), Refused(order.switch))
            return
        pieces = switch.pieces(order.changes)
        drawn = [self._drawn(most) for _ in (pieces if self._conditions.piecewise else [0])]
        times = [ready + seconds for seconds in sorted(drawn)]
        if self._conditions.piecewise:
            for at, piece in zip(times, pieces, strict=True):
                self._later(at, partial(self._take, [piece]))
        else:
            self._later(times[0], partial(self._take, pieces))
        switch.busy_until = self._now + times[-1]
        confirmed = times[-1] + self._drawn(self._conditions.confirm_seconds)
        self._answer(confirmed, BarrierIn(order.switch, order.token))

    def _take(self, pieces: Iterable[Callable[[], None]]) -> None:
        for piece in pieces:
            piece()
        self._held.append((self._now, sum(switch.held for switch in self._switches.values())))

    def _notify(self, order: Notify) -> None:
        if order.publisher in self._faults.mute:
            self._answer(self._conditions.lease_seconds, LeaseOver(order.publisher, order.token))
            return
        most = self._conditions.notice_seconds
        ready = max(0.0, self._heard_until.get(order.publisher, 0.0) - self._now)
        turned = ready + self._drawn(most)
        self._heard_until[order.publisher] = self._now + turned
        self._later(turned, lambda: self._sending.update({order.publisher: order.notice.sending}))
        self._answer(turned + self._drawn(most), Acknowledged(order.publisher, order.token))

    # The traffic.

    def _publish(self, publisher: HostId) -> None:
        finished = self._run is not None and self._run.phase == Phase.FINISHED
        if finished and self._now > self._ended + self._conditions.quiet_seconds:
            return
        self._later(self._gap(), lambda: self._publish(publisher))
        sample = self._random.choice(self._repertoire[publisher])
        sending = self._sending[publisher]
        destination = sending.destination(sample.old, sample.new)
        if destination is None or publisher in self._cut:
            return
        sent = Sent(len(self._events), sample, sending.side, self._now)
        self._events.append(sent)
        packet = Packet(sent, destination[1], destination[0], sending.vlan)
        place = self._topology.attachment(publisher)
        sent.packets += 1
        self._later(self._link_delay(place), lambda: self._arrive(packet, place, at_edge=True))

    def _arrive(self, packet: Packet, at: Port, *, at_edge: bool = False) -> None:
        switch = self._switches[SwitchId(at.node)]
        here = (switch.name, at.number)
        if here in packet.came or len(packet.came) > MOST_HOPS:
            packet.sent.faults.add("looping")
            return
        if at_edge:
            entry = self._match(switch, Table.EDGE, packet, at.number)
            if entry is None:
                return
            if entry.bridge:
                self._later(self._drawn(self._conditions.control_seconds), lambda: self._carry(packet))
                return
            packet = _retagged(packet, entry.set_vlan)
        found = self._match(switch, Table.FORWARDING, packet, at.number)
        if found is None:
            return
        packet.sent.sides.add(found.side)
        onward = replace(_retagged(packet, found.set_vlan), came=packet.came | {here})
        for number in found.ports - {at.number}:
            self._forward(onward, Port(switch.name, number), untag=found.untag)

    def _match(self, switch: Switch, table: Table, packet: Packet, in_port: int) -> Entry | None:
        found = switch.match(table, in_port, packet.code, packet.epoch, packet.vlan)
        if len(found) > 1:
            packet.sent.faults.add("ambiguous")
        return found[0] if found else None

    def _forward(self, packet: Packet, out: Port, *, untag: bool) -> None:
        peer = self._topology.peer(out.node, out.number)
        if peer is None:
            return
        switching = self._conditions.delays.switch_seconds
        delay = (switching if self._conditions.slowest else self._drawn(switching)) + self._link_delay(out)
        packet.sent.packets += 1
        if peer.node in self._hosts:
            if packet.vlan and not untag:
                packet.sent.faults.add("tagged")
            self._later(delay, lambda: packet.sent.delivered.append(HostId(peer.node)))
        else:
            self._later(delay, lambda: self._arrive(packet, peer))

    def _carry(self, packet: Packet) -> None:
        """The controller hands an event to the last switches, as the tables of its own index would."""
        journey = self._at_rest[packet.sent.side].walk(packet.code, packet.sent.sample.publisher)
        packet.sent.delivered.extend(journey.delivered)
        packet.sent.packets += len(journey.delivered)

    # The clock.

    def _later(self, seconds: float, action: Callable[[], object]) -> None:
        heappush(self._queue, (self._now + seconds, next(self._turn), action))  # type: ignore[misc]  # result unused

    def _drawn(self, most: float) -> float:
        return self._random.uniform(0.0, most)

    def _gap(self) -> float:
        return self._random.expovariate(1.0 / self._conditions.gap_seconds)

    def _link_delay(self, port: Port) -> float:
        most = self._conditions.delays.link_seconds
        for near in self._topology.neighbours(port.node):
            if near.port == port.number and near.link.latency is not None:
                most = near.link.latency
        return most if self._conditions.slowest else self._random.uniform(0.1 * most, most)

    def _note(self, order: Order) -> None:
        if not isinstance(order, Tell | Notify):
            self._log.append((self._now, str(order)))


def _by_publisher(samples: Iterable[Sample]) -> dict[HostId, list[Sample]]:
    found: dict[HostId, list[Sample]] = {}
    for sample in samples:
        found.setdefault(sample.publisher, []).append(sample)
    return found


def _retagged(packet: Packet, set_vlan: int) -> Packet:
    return packet if set_vlan in (-1, packet.vlan) else replace(packet, vlan=set_vlan)
