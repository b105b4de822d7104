"""The rules of a connection as data: its phases, what leads from one to another, and what its owner learns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from plerion.southbound.openflow.messages import Error, Features, PacketIn, PortStatus, Received


class Phase(Enum):
    GREETING = "greeting"
    INTRODUCING = "introducing"
    READY = "ready"
    CLOSED = "closed"


class Signal(Enum):
    COMMON_VERSION = "hello, with a version that we speak"
    FOREIGN_VERSION = "hello, without one"
    FEATURES = "the switch says who it is"
    ANYTHING = "any other message"
    NONSENSE = "bytes that are no message, or one that is out of place"
    SILENCE = "nothing for too long"
    END = "either side hangs up"


_ENDS = dict.fromkeys((Signal.NONSENSE, Signal.SILENCE, Signal.END), Phase.CLOSED)

TRANSITIONS: Mapping[Phase, Mapping[Signal, Phase]] = {
    Phase.GREETING: {
        Signal.COMMON_VERSION: Phase.INTRODUCING,
        Signal.FOREIGN_VERSION: Phase.CLOSED,
        **_ENDS,
    },
    # A switch may already ask for an echo or report a port before it has said who it is.
    Phase.INTRODUCING: {Signal.FEATURES: Phase.READY, Signal.ANYTHING: Phase.INTRODUCING, **_ENDS},
    Phase.READY: {Signal.ANYTHING: Phase.READY, **_ENDS},
    Phase.CLOSED: {},
}


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds; a switch that is silent is asked for an echo, and given up when it stays silent."""

    handshake: float = 10.0
    probe: float = 5.0
    silence: float = 20.0
    answer: float = 60.0  # to any one request
    settle: float = (
        0.01  # from a second barrier until Open vSwitch forwards by nothing but its changed tables
    )


USUAL = Timing()


@dataclass(frozen=True, slots=True)
class Introduced:
    features: Features


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a request, in one piece."""

    xid: int
    answer: Received


@dataclass(frozen=True, slots=True)
class Refused:
    """The switch refuses a request; number 0 stands for one that nobody waits for, such as a packet."""

    xid: int
    error: Error


@dataclass(frozen=True, slots=True)
class BundleEnded:
    """All of the bundle is in force, or, with errors, nothing of it; an error names its message in the bundle.

    A message has its place from 0; -1 stands for the bundle as a whole.
    """

    xid: int
    errors: tuple[tuple[int, Error], ...] = ()


@dataclass(frozen=True, slots=True)
class Arrived:
    message: PacketIn | PortStatus


@dataclass(frozen=True, slots=True)
class Closed:
    reason: str


Occurrence = Introduced | Answered | Refused | BundleEnded | Arrived | Closed


def drawing() -> str:
    """The transitions as the table that the documents show."""
    lines = ["| while | when | then |", "| --- | --- | --- |"]
    for phase, ways in TRANSITIONS.items():
        lines += [f"| {phase.value} | {signal.value} | {after.value} |" for signal, after in ways.items()]
    return "\n".join(lines)
