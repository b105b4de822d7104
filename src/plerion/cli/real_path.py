"""An event's way through the switches of a lab, asked of the switches themselves, beside the one that was predicted."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from typing import Any

from plerion.flow.admission import EVENT_PORT
from plerion.lab import Lab
from plerion.topology.graph import HostId, Port, ipv6, mac

MAX_HOPS = 10_000  # an event that makes more is in a loop
_OUTPUT = re.compile(r"^ +output:(\d+)$", re.MULTILINE)
_SKIPPED = re.compile(r"^ +output:(\d+)\n +>> skipping output to input port", re.MULTILINE)

Place = tuple[str, int]  # a switch and the port where the event came in


@dataclass(frozen=True, slots=True)
class RealJourney:
    """The ports that each switch says an event leaves by, and the hosts that get it, once for each copy."""

    address: str
    hops: dict[Place, tuple[int, ...]]
    delivered: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        hops = [
            {"switch": switch, "in_port": port, "out": list(out)} for (switch, port), out in self.hops.items()
        ]
        return {"address": self.address, "hops": hops, "delivered": list(self.delivered)}


def walk(lab: Lab, publisher: str, address: str) -> RealJourney:
    """Asks each switch on the way (``ofproto/trace``), from the publisher's port on; nothing is sent."""
    topology, host = lab.topology, HostId(publisher)
    ends = f"dl_src={mac(topology, host)},dl_dst=33:33:00:00:00:00,ipv6_src={ipv6(topology, host)}"
    flow = f"udp6,{ends},ipv6_dst={address},nw_ttl=64,udp_dst={EVENT_PORT}"
    hops: dict[Place, tuple[int, ...]] = {}
    delivered: list[str] = []
    waiting = deque([topology.attachment(host)])
    for _ in range(MAX_HOPS):
        if not waiting:
            break
        at = waiting.popleft()
        out = outputs(lab.trace(at.node, at.number, flow), at.number)
        hops.setdefault((at.node, at.number), out)
        for number in out:
            peer = topology.peer(at.node, number)
            if peer is not None and topology.has_host(HostId(peer.node)):
                delivered.append(peer.node)
            elif peer is not None:
                waiting.append(Port(peer.node, peer.number))
    return RealJourney(address, hops, tuple(delivered))


def outputs(told: str, in_port: int) -> tuple[int, ...]:
    """The ports in an answer of ``ofproto/trace``, of the first switch in it: patch ports lead on to others."""
    first = told.partition("bridge(")[2].partition("\nbridge(")[0]
    skipped = {int(port) for port in _SKIPPED.findall(first)}
    return tuple(sorted({int(port) for port in _OUTPUT.findall(first)} - skipped - {in_port}))


def disagreements(predicted: dict[str, Any], real: RealJourney) -> list[str]:
    """Where a journey as `trace` tells it and the switches differ, a line each."""
    model = {
        (hop["switch"], hop["in_port"]): tuple(sorted(out["port"] for out in hop["out"]))
        for hop in predicted["hops"]
    }
    lines = []
    for place in [*model, *(place for place in real.hops if place not in model)]:
        told, does = model.get(place), real.hops.get(place)
        if (told or ()) != (does or ()):
            name = f"{place[0]} in {place[1]}"
            lines.append(f"{name}: the model sends it to {_ports(told)}, the switch to {_ports(does)}")
    return lines


def _ports(found: tuple[int, ...] | None) -> str:
    if found is None:
        return "nothing, because it never gets there"
    return "port " + ", ".join(map(str, found)) if found else "nothing"
