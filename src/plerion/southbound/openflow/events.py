"""What the driver learns from switches, as values, and the counters that it reads from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from plerion.southbound.openflow.messages import PortCounters
from plerion.southbound.openflow.pipeline import Purpose
from plerion.topology.graph import SwitchId


@dataclass(frozen=True, slots=True)
class SwitchConnected:
    """The switch can be told, and its furniture stands; what else it holds is for the controller to compare."""

    switch: SwitchId


@dataclass(frozen=True, slots=True)
class SwitchLost:
    switch: SwitchId
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PortChanged:
    switch: SwitchId
    port: int
    up: bool


@dataclass(frozen=True, slots=True)
class PacketArrived:
    switch: SwitchId
    in_port: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Bridged:
    """An event on its way over the controller: an entry of ours sent it here and nowhere else."""

    switch: SwitchId
    in_port: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class UnknownSwitch:
    """Somebody connected with an id that no switch of the topology has, and was sent away."""

    id: int
    address: str


@dataclass(frozen=True, slots=True)
class SwitchRefused:
    """Somebody connected as this switch and was sent away."""

    switch: SwitchId
    address: str
    reason: str


SwitchEvent = SwitchConnected | SwitchLost | PortChanged | PacketArrived | UnknownSwitch | SwitchRefused


@dataclass(frozen=True, slots=True)
class SwitchStatistics:
    """Counters of one switch, read at once. `refused` counts packets dropped at each host's port."""

    switch: SwitchId
    entries: Mapping[int, int]  # by table, everybody's
    packets: Mapping[Purpose, int]  # that met an entry of ours
    ports: tuple[PortCounters, ...]
    refused: Mapping[int, int]
    strangers: int  # packets of no host of ours and of no event
    unwanted: int  # events that no entry wanted


class NotConnected(ConnectionError):  # noqa: N818 - a state, not a mistake
    """Nobody can talk to the switch now."""

    def __init__(self, switch: SwitchId, reason: str = "") -> None:
        super().__init__(f"{switch} is not connected{': ' + reason if reason else ''}")
        self.switch, self.reason = switch, reason
