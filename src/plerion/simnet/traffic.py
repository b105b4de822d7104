"""What moves in the timeline: events to send, how slow things may be, packets, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from plerion.index.dz import Dz
from plerion.topology.graph import HostId, SwitchId
from plerion.update.entries import Entry, Side
from plerion.update.state import Delays


@dataclass(frozen=True, slots=True)
class Sample:
    """An event to send: its publisher, its code in either index (None: it has none) and who wants it."""

    publisher: HostId
    old: Dz | None
    new: Dz | None
    wanted: frozenset[HostId]


@dataclass(frozen=True, slots=True)
class Conditions:
    """How slow things may be. Links and switches are as slow as the plan was told; the rest it cannot know."""

    delays: Delays = field(default_factory=Delays)
    install_seconds: float = 0.004
    confirm_seconds: float = 0.001
    notice_seconds: float = 0.004
    lease_seconds: float = 0.03
    control_seconds: float = 0.002
    slowest: bool = False  # every link and every switch takes as long as it may
    gap_seconds: float = 0.0004  # between two events of a publisher, on average
    piecewise: bool = False  # switches take changes one by one
    quiet_seconds: float = 0.004  # before the plan begins and after it ends


@dataclass(slots=True)
class Sent:
    """One event on its way, and where its copies got to."""

    number: int
    sample: Sample
    side: Side
    at: float
    packets: int = 0  # links that its copies went through
    delivered: list[HostId] = field(default_factory=list)
    sides: set[Side] = field(default_factory=set)
    faults: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Packet:
    sent: Sent
    code: Dz
    epoch: int
    vlan: int
    came: frozenset[tuple[SwitchId, int]] = frozenset()


@dataclass(slots=True)
class Course:
    """What happened: every event with its deliveries, and the update's own story."""

    events: list[Sent]
    began: float
    ended: float
    most_entries: dict[SwitchId, int]
    back: bool
    left: frozenset[Entry]
    held: list[tuple[float, int]]  # entries for forwarding in the whole network, from each change on
    log: list[tuple[float, str]]
