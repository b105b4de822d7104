"""One connection to a switch as a machine without a socket: bytes and the time in, occurrences and bytes out.

Whoever owns the socket feeds what came (`receive`), says what time it is (`tick`, at `deadline` or later), and sends
what `outgoing` gives. The machine greets, agrees on OpenFlow 1.3, asks who the switch is, answers its echoes,
asks for one when the switch is silent, puts answers in parts together, and ties every answer and every error to the
request that caused it. How the bytes were cut on their way makes no difference (a law).

Changes travel as a *bundle*: opened, filled and closed in one go; committed, with a barrier behind it, only when the
switch has taken every part of it, and else discarded. So a switch has all of a change or nothing.

What can follow what stands in `phases.TRANSITIONS`; a message that is out of place there ends the connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from plerion.southbound.openflow.codec import decode, encode
from plerion.southbound.openflow.messages import (
    HEADER,
    BarrierReply,
    BarrierRequest,
    BundleControl,
    BundleStep,
    EchoReply,
    EchoRequest,
    Error,
    Features,
    FeaturesRequest,
    Hello,
    MalformedMessage,
    MultipartReply,
    MultipartRequest,
    PacketIn,
    PacketOut,
    PortStatus,
    Received,
    Sent,
)
from plerion.southbound.openflow.phases import (
    TRANSITIONS,
    USUAL,
    Answered,
    Arrived,
    BundleEnded,
    Closed,
    Introduced,
    Occurrence,
    Phase,
    Refused,
    Signal,
    Timing,
)

MAX_ANSWER = 256 << 20  # bytes of an answer in parts
_ERRORS_KEPT = 8  # of one bundle: if all of it is refused, a few say why
_LAST_XID = 0xFFFF_FFFE
_UNSENT = 256  # messages; with so many before it, an echo tells a switch nothing: one that only asks costs no memory


@dataclass(slots=True)
class _Request:
    expected: type
    since: float
    part: int = 0
    pieces: list[bytes] = field(default_factory=list)
    size: int = 0


@dataclass(slots=True)
class _Bundle:
    """Numbers in order: open, `count` messages, close, commit or discard, barrier."""

    first: int
    count: int
    since: float
    errors: list[tuple[int, Error]] = field(default_factory=list)

    @property
    def close(self) -> int:
        return self.first + self.count + 1


class Channel:
    """The machine; `phase` is where it stands. After `Closed` it says and does nothing more."""

    def __init__(self, now: float, timing: Timing = USUAL) -> None:
        self.phase = Phase.GREETING
        self.features: Features | None = None
        self.unasked = 0  # answers that nobody waited for
        self._timing = timing
        self._began = self._heard = now
        self._probed = False
        self._buffer = bytearray()
        self._outgoing: list[bytes] = []
        self._requests: dict[int, _Request] = {}
        self._bundles: dict[int, _Bundle] = {}
        self._xid = 0
        self._send(Hello())

    def outgoing(self) -> list[bytes]:
        """What is to be sent, and forgets it."""
        taken, self._outgoing = self._outgoing, []
        return taken

    def receive(self, octets: bytes, now: float) -> list[Occurrence]:
        """What follows from these bytes, in any cut; no bytes mean that the switch hung up."""
        if self.phase is Phase.CLOSED:
            return []
        if not octets:
            return self._end(Signal.END, "the switch hung up")
        self._heard, self._probed = now, False
        self._buffer += octets
        found: list[Occurrence] = []
        try:
            for frame in self._frames():
                xid, message = decode(frame)
                found += self._step(xid, message)
                if found and isinstance(found[-1], Closed):
                    break
        except MalformedMessage as error:
            found += self._end(Signal.NONSENSE, str(error))
        return found

    @property
    def deadline(self) -> float:
        """When `tick` has something to do at the latest."""
        if self.phase is not Phase.READY:
            return self._began + self._timing.handshake
        heard = self._heard + (self._timing.silence if self._probed else self._timing.probe)
        return min([heard, *(since + self._timing.answer for since in self._waiting())])

    def tick(self, now: float) -> list[Occurrence]:
        if self.phase is Phase.CLOSED or now < self.deadline:
            return []
        if self.phase is not Phase.READY:
            return self._end(Signal.SILENCE, f"no handshake in {self._timing.handshake:g} s")
        if any(now >= since + self._timing.answer for since in self._waiting()):
            return self._end(Signal.SILENCE, f"a request was not answered in {self._timing.answer:g} s")
        if now >= self._heard + self._timing.silence:
            return self._end(Signal.SILENCE, f"silent for {self._timing.silence:g} s")
        self._probed = True
        self._send(EchoRequest())
        return []

    def close(self, reason: str) -> list[Occurrence]:
        return [] if self.phase is Phase.CLOSED else self._end(Signal.END, reason)

    def ask(self, request: BarrierRequest | MultipartRequest | EchoRequest, now: float) -> int:
        """Sends a request; its answer comes as `Answered` or `Refused` with this number."""
        part = int(request.part) if isinstance(request, MultipartRequest) else 0
        xid = self._send(request)
        self._requests[xid] = _Request(_ANSWER[type(request)], now, part)
        return xid

    def tell(self, message: PacketOut) -> None:
        """Sends what is not answered."""
        self._send(message)

    def bundle(self, count: int, write: Callable[[int, int], bytes], now: float) -> int:
        """Sends a bundle of `count` messages; `write(first xid, bundle id)` gives their bytes."""
        opening = self._numbers(count + 4)
        changes = write(opening + 1, opening)
        self._bundles[opening] = bundle = _Bundle(opening, count, now)
        self._outgoing += [
            encode(BundleControl(opening, BundleStep.OPEN), opening),
            changes,
            encode(BundleControl(opening, BundleStep.CLOSE), bundle.close),
        ]
        return opening

    def _frames(self) -> Iterator[bytes]:
        at = 0
        try:
            while len(self._buffer) - at >= HEADER:
                length = int.from_bytes(self._buffer[at + 2 : at + 4], "big")
                if length < HEADER:
                    raise MalformedMessage(f"a message says that it has {length} bytes")
                if len(self._buffer) - at < length:
                    return
                at += length
                yield bytes(self._buffer[at - length : at])
        finally:
            del self._buffer[:at]

    def _move(self, signal: Signal) -> None:
        after = TRANSITIONS[self.phase].get(signal)
        if after is None:
            raise MalformedMessage(f"out of place while {self.phase.value}: {signal.value}")
        self.phase = after

    def _end(self, signal: Signal, reason: str) -> list[Occurrence]:
        self._move(signal)
        self._requests.clear()
        self._bundles.clear()
        return [Closed(reason)]

    def _step(self, xid: int, message: Received) -> list[Occurrence]:
        if isinstance(message, Hello):
            return self._greeted(message)
        if isinstance(message, Features):
            return self._introduced(message)
        self._move(Signal.ANYTHING)
        if isinstance(message, EchoRequest):
            if len(self._outgoing) < _UNSENT:
                self._outgoing.append(encode(EchoReply(message.body), xid))
        elif isinstance(message, PacketIn | PortStatus):
            return [Arrived(message)]
        elif isinstance(message, Error):
            return self._refused(xid, message)
        elif (bundle := self._bundle_of(xid)) is not None:
            return self._bundled(bundle, xid, message)
        elif xid in self._requests:
            return self._answered(xid, message)
        else:
            self.unasked += not isinstance(message, EchoReply)
        return []

    def _greeted(self, hello: Hello) -> list[Occurrence]:
        if not hello.speaks_ours:
            self._send(Error(0, 0, b"OpenFlow 1.3 only"))
            return self._end(Signal.FOREIGN_VERSION, f"the switch speaks version {hello.version}, not 1.3")
        self._move(Signal.COMMON_VERSION)
        self._send(FeaturesRequest())
        return []

    def _introduced(self, features: Features) -> list[Occurrence]:
        self._move(Signal.FEATURES)
        self.features = features
        return [Introduced(features)]

    def _answered(self, xid: int, message: Received) -> list[Occurrence]:
        request = self._requests[xid]
        if not isinstance(message, request.expected):
            raise MalformedMessage(f"{type(message).__name__} for an answer that is none to the request")
        if isinstance(message, MultipartReply):
            request.pieces.append(message.body)
            request.size += len(message.body)
            if message.part != request.part or request.size > MAX_ANSWER:
                raise MalformedMessage(f"an answer of {request.size} bytes to another request or of no end")
            if message.more:
                return []
            message = MultipartReply(message.part, False, b"".join(request.pieces))
        del self._requests[xid]
        return [Answered(xid, message)]

    def _refused(self, xid: int, error: Error) -> list[Occurrence]:
        bundle = self._bundle_of(xid)
        if bundle is None:
            return [Refused(xid if self._requests.pop(xid, None) else 0, error)]
        place = xid - bundle.first - 1 if bundle.first < xid < bundle.close else -1
        if len(bundle.errors) < _ERRORS_KEPT:
            bundle.errors.append((place, error))
        if xid == bundle.close:
            self._settle(bundle)
        return []

    def _bundle_of(self, xid: int) -> _Bundle | None:
        return next((b for b in self._bundles.values() if b.first <= xid <= b.close + 2), None)

    def _bundled(self, bundle: _Bundle, xid: int, message: Received) -> list[Occurrence]:
        if isinstance(message, BarrierReply) and xid == bundle.close + 2:
            del self._bundles[bundle.first]
            return [BundleEnded(bundle.first, tuple(bundle.errors))]
        if isinstance(message, BundleControl) and message.step is BundleStep.CLOSED:
            self._settle(bundle)
        return []

    def _settle(self, bundle: _Bundle) -> None:
        """The switch has seen all of the bundle: now it counts, or it never was."""
        step = BundleStep.DISCARD if bundle.errors else BundleStep.COMMIT
        self._outgoing += [
            encode(BundleControl(bundle.first, step), bundle.close + 1),
            encode(BarrierRequest(), bundle.close + 2),
        ]

    def _waiting(self) -> Iterator[float]:
        """Since when each request waits; the oldest of either kind comes first, and no other matters."""
        for kind in (self._requests, self._bundles):
            yield from [next(iter(kind.values())).since] if kind else []  # type: ignore[attr-defined]  # both have it

    def _send(self, message: Sent) -> int:
        xid = self._numbers(1)
        self._outgoing.append(encode(message, xid))
        return xid

    def _numbers(self, count: int) -> int:
        """The first of so many numbers in a row that no request uses; 0 is nobody's."""
        if self._xid + count > _LAST_XID:
            self._xid = 0
        self._xid += count
        return self._xid - count + 1


_ANSWER: Mapping[type, type] = {
    BarrierRequest: BarrierReply,
    MultipartRequest: MultipartReply,
    EchoRequest: EchoReply,
}
