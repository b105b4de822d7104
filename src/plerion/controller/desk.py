"""What hosts ask in-band, answered: a request, the host that it came from and the time give a reply or work to do.

Without a socket and without a clock. The host is who sits at the port where the packet came in; nothing that the
packet says about its sender counts. A request that is repeated gets the answer that it got, and one whose answer is
still being worked on gets none until then. Everything a host can make the desk remember is bounded.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from plerion.controller import inputs
from plerion.controller.adoption import Adoption, Described
from plerion.controller.inputs import Input
from plerion.controller.lease import Leases, Session, session_of
from plerion.controller.quota import Holdings, Kind, Pace, Quotas
from plerion.controller.state import State
from plerion.topology.graph import HostId
from plerion.wire.control import (
    Adopted,
    Advertise,
    Describe,
    Join,
    KeepAlive,
    Leave,
    Outdated,
    Part,
    Ready,
    Reply,
    Report,
    Request,
    Subscribe,
    Unadvertise,
    Unknown,
    Unsubscribe,
    Welcome,
    refused,
)

REMEMBERED = 1_024  # answers a host
REFUSALS_PER_SECOND = 50.0  # to a host that asks too fast


@dataclass(frozen=True, slots=True)
class Work:
    """Inputs for the controller; `Desk.finish` turns what comes of them into the reply."""

    session: Session
    request: Request
    inputs: tuple[Input, ...]
    reserved: bool = False  # whether it took a place in the host's quota


@dataclass(slots=True)
class DeskTally:
    requests: int = 0
    repeats: int = 0
    hurried: int = 0  # refused because they came too fast
    over_quota: int = 0
    unknown: int = 0  # of sessions that are not there
    expired: int = 0  # sessions that gave no sign of life


@dataclass(slots=True)
class _Told:
    """By (session, number): the request and its reply, None while it is worked on."""

    answers: OrderedDict[tuple[str, int], tuple[Request, Reply | None]] = field(default_factory=OrderedDict)
    unanswered: int = 0


class Desk:
    """Sessions, leases, quotas and answers of all hosts."""

    def __init__(self, described: Described, leases: Leases, quotas: Quotas) -> None:
        self.adoption = Adoption(described)
        self.leases = leases
        self.quotas = quotas
        self.holdings = Holdings(quotas)
        self.tally = DeskTally()
        self.reports: dict[Session, Report] = {}  # what the sessions with a lease last said of themselves
        self._pace = Pace(quotas.requests_per_second)
        self._refusals = Pace(REFUSALS_PER_SECOND)
        self._told: dict[HostId, _Told] = {}

    def adopt(self, state: State, now: float) -> int:
        """What hosts asked for before this desk counts, and their sessions get a fresh lease; how many do."""
        asked, announced = (
            [(one.id, one.host) for one in every.values() if session_of(one.id, one.host) is not None]
            for every in (state.subscriptions, state.advertisements)
        )
        self.holdings.load("subscriptions", asked)
        self.holdings.load("advertisements", announced)
        return self.leases.adopt([*asked, *announced], now)

    def receive(self, host: HostId, request: Request, now: float) -> Reply | Work | None:
        """The reply, or what must be done for one; None while an earlier copy is worked on, or amid a flood."""
        self.tally.requests += 1
        if not self._pace.allows(host, now):
            self.tally.hurried += 1
            if not self._refusals.allows(host, now):
                return None  # it was told often enough: answers cost more than they tell
            most = self.quotas.requests_per_second
            return refused(request.number, f"{host} asks more than {most:,.0f} times a second: wait a little")
        told = self._told.setdefault(host, _Told())
        known = told.answers.get((request.session, request.number))
        if known is not None and known[0] == request:
            self.tally.repeats += 1
            self.leases.renew(Session(host, request.session), now)
            return known[1]
        if told.unanswered >= self.quotas.unanswered:
            return refused(request.number, f"{host} has {told.unanswered:,} requests open: wait for answers")
        found = self._considered(Session(host, request.session), request, now)
        if isinstance(found, Work):
            told.unanswered += 1
            self._note(told, request, None)
        elif not isinstance(found, Unknown | Outdated):
            self._note(told, request, found)
        return found

    def finish(self, work: Work, reasons: Iterable[str | None]) -> Reply:
        """The reply when the controller has answered, with a reason for each input that it did not take."""
        why = next((reason for reason in reasons if reason is not None), None)
        self._settle(work, why is not None)
        number = work.request.number
        if isinstance(work.request, Advertise) and why is None and work.session not in self.adoption:
            self._forget(work)  # the index was changed meanwhile: it may send when it has adopted the new one
            return Outdated(number)
        reply: Reply = Ready(number) if why is None else refused(number, why)
        self._note(self._told[work.session.host], work.request, reply)
        return reply

    def fail(self, work: Work, reason: str) -> Reply:
        """The reply when the controller could not answer; it is forgotten, so that asking again is a new try."""
        self._settle(work, failed=True)
        self._forget(work)
        return refused(work.request.number, reason)

    def expired(self, now: float) -> list[Input]:
        """What must be withdrawn because who asked for it gave no sign of life."""
        gone = self.leases.expired(now)
        self.tally.expired += len(gone)
        for session in gone:
            self._ended(session)
        return [withdrawal for session in gone for withdrawal in self._withdrawals(session)]

    def _settle(self, work: Work, failed: bool) -> None:
        self._told[work.session.host].unanswered -= 1
        if failed and work.reserved:
            for received in work.inputs:
                if isinstance(received, inputs.Subscribe | inputs.Advertise):
                    self.holdings.drop(_kind(received), work.session.host, received.id)

    def _forget(self, work: Work) -> None:
        """Asking again is a new question."""
        self._told[work.session.host].answers.pop((work.request.session, work.request.number), None)

    def _considered(self, session: Session, request: Request, now: float) -> Reply | Work:
        match request:
            case Join():
                return self._welcome(session, request, now)
            case Describe():
                return self._part(request)
        if not self.leases.renew(session, now):
            self.tally.unknown += 1
            return Unknown(request.number)
        return self._of_session(session, request)

    def _of_session(self, session: Session, request: Request) -> Reply | Work:
        """What a session that has a lease asks for."""
        match request:
            case Subscribe():
                wanted = inputs.Subscribe(session.id(request.name), session.host, request.filter)
                return self._asking(session, request, wanted)
            case Advertise() if session not in self.adoption:
                return Outdated(request.number)
            case Advertise():
                sent = inputs.Advertise(session.id(request.name), session.host, request.filter)
                return self._asking(session, request, sent)
            case Unsubscribe() | Unadvertise():
                return self._withdrawing(session, request)
            case Leave():
                withdrawn = tuple(self._withdrawals(session))
                self.leases.close(session)
                self._ended(session)
                return Work(session, request, withdrawn) if withdrawn else Ready(request.number)
            case KeepAlive():
                if request.report is not None:
                    self.reports[session] = request.report
                return Ready(request.number)
            case Adopted():
                adopted = self.adoption.adopt(session, request.digest)
                return Ready(request.number) if adopted else Outdated(request.number)
        raise AssertionError(f"{type(request).__name__} needs no lease")

    def _ended(self, session: Session) -> None:
        self.reports.pop(session, None)
        self.adoption.forget(session)

    def _welcome(self, session: Session, request: Join, now: float) -> Reply:
        most = self.quotas.sessions
        if session not in self.leases and self.leases.of_host(session.host) >= most:
            self.tally.over_quota += 1
            return refused(request.number, f"{session.host} has {most:,} sessions, and no more are allowed")
        granted = self.leases.open(session, request.lease_seconds, now)
        told = self.adoption.described
        return Welcome(request.number, session.host, granted, told.epoch, told.digest, len(told.parts))

    def _part(self, request: Describe) -> Reply:
        parts = self.adoption.described.parts
        if request.part >= len(parts):
            return refused(
                request.number, f"there is no part {request.part}: the description has {len(parts)}"
            )
        return Part(request.number, request.part, len(parts), parts[request.part])

    def _asking(
        self, session: Session, request: Request, taken: inputs.Subscribe | inputs.Advertise
    ) -> Reply | Work:
        kind = _kind(taken)
        held = self.holdings.holds(kind, session.host, taken.id)
        too_many = self.holdings.take(kind, session.host, taken.id)
        if too_many is not None:
            self.tally.over_quota += 1
            return refused(request.number, too_many)
        return Work(session, request, (taken,), reserved=not held)

    def _withdrawing(self, session: Session, request: Unsubscribe | Unadvertise) -> Reply | Work:
        """What is not there counts as withdrawn: an answer that was lost must not become a refusal."""
        name = session.id(request.name)
        kind: Kind = "subscriptions" if isinstance(request, Unsubscribe) else "advertisements"
        if not self.holdings.holds(kind, session.host, name):
            return Ready(request.number)
        self.holdings.drop(kind, session.host, name)
        gone = inputs.Unsubscribe(name) if isinstance(request, Unsubscribe) else inputs.Unadvertise(name)
        return Work(session, request, (gone,))

    def _withdrawals(self, session: Session) -> list[Input]:
        kinds: tuple[Kind, ...] = ("advertisements", "subscriptions")  # first nothing more comes in
        found: list[Input] = []
        for kind in kinds:
            make = inputs.Unadvertise if kind == "advertisements" else inputs.Unsubscribe
            for name in sorted(self.holdings.of(kind, session.host)):
                if session_of(name, session.host) == session:
                    self.holdings.drop(kind, session.host, name)
                    found.append(make(name))
        return found

    @staticmethod
    def _note(told: _Told, request: Request, reply: Reply | None) -> None:
        key = (request.session, request.number)
        told.answers[key] = (request, reply)
        told.answers.move_to_end(key)
        while len(told.answers) > REMEMBERED + told.unanswered:
            told.answers.popitem(last=False)


def _kind(received: inputs.Subscribe | inputs.Advertise) -> Kind:
    return "subscriptions" if isinstance(received, inputs.Subscribe) else "advertisements"
