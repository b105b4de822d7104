"""Prometheus metrics, read from the service when somebody asks; only latencies are counted as they happen."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from plerion.controller.answer import Answer
from plerion.controller.lease import Session
from plerion.southbound.openflow.events import SwitchStatistics
from plerion.topology.graph import SwitchId
from plerion.wire.control import Report

if TYPE_CHECKING:
    from plerion.controller.run import Service

FRESH_SECONDS = 10.0  # counters of switches are read again after this
BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class Metrics:
    """What Prometheus is told of one service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._switches: dict[SwitchId, SwitchStatistics] = {}
        self._read_at = float("-inf")
        self._registry = CollectorRegistry()
        self._seconds = Histogram(
            "plerion_answer_seconds",
            "From an input to its answer.",
            ["outcome"],
            registry=self._registry,
            buckets=BUCKETS,
        )
        self._registry.register(self)
        service.controller.observe = self._observe

    def _observe(self, answer: Answer, seconds: float) -> None:
        self._seconds.labels("ready" if answer.ready else "refused").observe(seconds)

    async def text(self) -> bytes:
        """The exposition; counters in switches are as old as `FRESH_SECONDS` at most."""
        now = asyncio.get_running_loop().time()
        if now - self._read_at > FRESH_SECONDS:
            self._read_at = now
            self._switches = await self._service.statistics()
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        yield from self._controller()
        yield from self._hosts()
        yield from self._tables()
        yield from self._counters()

    def _controller(self) -> Iterator[Metric]:
        controller = self._service.controller
        state, tally = controller.state, controller.tally
        yield _gauge("plerion_subscriptions", "Subscriptions that are deployed.", len(state.subscriptions))
        yield _gauge("plerion_advertisements", "Advertisements that are deployed.", len(state.advertisements))
        yield _gauge("plerion_trees", "Trees that events travel on.", len(state.forest.trees))
        yield _gauge("plerion_inputs_waiting", "Inputs whose answer is due.", controller.waiting)
        yield _gauge("plerion_links_down", "Links that are down.", len(state.dead_links))
        differing = self._service.watch.comparison
        wrong = {"missing": differing.missing, "one_way": differing.one_way}
        links = GaugeMetricFamily("plerion_links_wrong", "Links not as they are declared.", labels=["how"])
        for how, found in {
            **wrong,
            "miswired": differing.miswired,
            "unexpected": differing.unexpected,
        }.items():
            links.add_metric([how], len(found))
        yield links
        inputs = CounterMetricFamily("plerion_inputs", "Inputs by what became of them.", labels=["outcome"])
        for name in ("accepted", "refused", "withdrawn"):
            inputs.add_metric([name], getattr(tally, name))
        yield inputs
        yield _counter("plerion_rounds", "Rounds to the switches.", tally.rounds)
        yield _counter("plerion_changes", "Changes of entries told to switches.", tally.changes)
        yield _counter("plerion_repairs", "Changes that a compared switch lacked.", tally.repaired)

    def _hosts(self) -> Iterator[Metric]:
        inband, desk = self._service.inband.tally, self._service.inband.desk
        yield _gauge("plerion_sessions", "Sessions with a lease.", len(desk.leases))
        yield _counter("plerion_sessions_expired", "Sessions that gave no sign of life.", desk.tally.expired)
        yield _counter("plerion_requests", "Control messages of hosts.", desk.tally.requests)
        yield _counter("plerion_replies", "Replies to hosts.", inband.replies)
        yield from _reported(desk.reports)
        refused = CounterMetricFamily(
            "plerion_requests_refused", "Control messages that were not served.", labels=["why"]
        )
        for why, count in {
            "malformed": inband.malformed,
            "no host": inband.strangers,
            "too fast": desk.tally.hurried,
            "over quota": desk.tally.over_quota,
            "unknown session": desk.tally.unknown,
        }.items():
            refused.add_metric([why], count)
        yield refused
        strangers = self._service.watch.unknown
        yield _counter("plerion_switches_sent_away", "Connections of switches that were refused.", strangers)

    def _tables(self) -> Iterator[Metric]:
        settings, controller = self._service.controller.state.settings, self._service.controller
        entries = GaugeMetricFamily(
            "plerion_table_entries", "Entries that a switch holds.", labels=["switch"]
        )
        limits = GaugeMetricFamily("plerion_table_limit", "Entries that it may hold.", labels=["switch"])
        there = GaugeMetricFamily("plerion_switch_connected", "Whether it can be told.", labels=["switch"])
        level = GaugeMetricFamily(
            "plerion_switch_in_step", "Whether it holds what it should.", labels=["switch"]
        )
        sizes = zip(settings.topology.switches, controller.state.table.sizes.tolist(), strict=True)
        for switch, size in sizes:
            entries.add_metric([switch], size)
            there.add_metric([switch], switch in self._service.network.connected)
            level.add_metric([switch], switch not in controller.switches.behind)
            if switch in settings.tcam:
                limits.add_metric([switch], settings.tcam[switch])
        yield from (entries, limits, there, level)

    def _counters(self) -> Iterator[Metric]:
        names = ["switch", "port"]
        refused = CounterMetricFamily(
            "plerion_admission_dropped", "Events that no admission covers.", labels=names
        )
        received = CounterMetricFamily("plerion_port_received", "Packets in.", labels=names)
        sent = CounterMetricFamily("plerion_port_sent", "Packets out.", labels=names)
        unwanted = CounterMetricFamily("plerion_unwanted", "Events that no entry wanted.", labels=names[:1])
        for switch, found in self._switches.items():
            unwanted.add_metric([switch], found.unwanted)
            for port, count in found.refused.items():
                refused.add_metric([switch, str(port)], count)
            for counters in found.ports:
                received.add_metric([switch, str(counters.number)], counters.received)
                sent.add_metric([switch, str(counters.number)], counters.sent)
        yield from (refused, received, sent, unwanted)


def _reported(reports: Mapping[Session, Report]) -> Iterator[Metric]:
    """What sessions say of themselves, added up by host; a session that ends takes its share with it."""
    for name, meaning in {
        "published": "Events that sessions of the host sent.",
        "received": "Events that reached them.",
        "false_positives": "Those of them that nobody there asked for.",
        "doubles": "Events that reached them again.",
        "dropped": "Events that they had no room for.",
    }.items():
        metric = GaugeMetricFamily(f"plerion_host_{name}", meaning, labels=["host"])
        hosts: Counter[str] = Counter()
        for session, report in reports.items():
            hosts[session.host] += getattr(report, name)
        for host, count in sorted(hosts.items()):
            metric.add_metric([host], count)
        yield metric


def _gauge(name: str, meaning: str, value: float) -> Metric:
    return GaugeMetricFamily(name, meaning, value=value)


def _counter(name: str, meaning: str, value: float) -> Metric:
    return CounterMetricFamily(name, meaning, value=value)
