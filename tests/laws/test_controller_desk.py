"""Whatever hosts send, in any order, repeated and late: the desk keeps to its bounds and what it said stays said."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from plerion.controller import inputs
from plerion.controller.adoption import Described
from plerion.controller.desk import REFUSALS_PER_SECOND, REMEMBERED, Desk, Work
from plerion.controller.lease import Leases, Session
from plerion.controller.quota import Quotas
from plerion.topology import HostId
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
    Refused,
    Reply,
    Request,
    Subscribe,
    Unadvertise,
    Unknown,
    Unsubscribe,
    Welcome,
    encode,
)

HOSTS = [HostId("h1"), HostId("h2")]
QUOTAS = Quotas(subscriptions=3, advertisements=1, sessions=2, requests_per_second=50, unanswered=4)
sessions = st.sampled_from([letter * 16 for letter in "abc"])
digests = st.sampled_from([digit * 64 for digit in "01"])
names, texts = st.sampled_from(["one", "two", "three", "four"]), st.sampled_from(["TRUE", "x < 3", "x <"])


def requests(number: int) -> st.SearchStrategy[Request]:
    own = (st.just(number), sessions)
    return st.one_of(
        st.builds(Join, *own, st.sampled_from([1.0, 5.0])),
        st.builds(Subscribe, *own, names, texts),
        st.builds(Advertise, *own, names, texts),
        st.builds(Unsubscribe, *own, names) | st.builds(Unadvertise, *own, names),
        st.builds(KeepAlive, *own) | st.builds(Leave, *own) | st.builds(Describe, *own, st.integers(0, 3)),
        st.builds(Adopted, *own, digests),
    )


class Days(RuleBasedStateMachine):
    """A desk and a toy controller that takes every interest but those whose filter does not parse."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk(Described(7, "0" * 64, [b"a", b"b"]), Leases(5.0, 60.0), QUOTAS)
        self.adopted: dict[Session, str] = {}  # what each session last said that it speaks
        self.now, self.number = 0.0, 0
        self.held: dict[str, str] = {}
        self.open: list[Work] = []
        self.said: dict[tuple[HostId, Request], Reply] = {}

    @rule(data=st.data(), host=st.sampled_from(HOSTS))
    def ask(self, data: st.DataObject, host: HostId) -> None:
        self.number += 1
        self._receive(host, data.draw(requests(self.number)))

    @rule(data=st.data())
    def ask_again(self, data: st.DataObject) -> None:
        if self.said:
            host, request = data.draw(st.sampled_from(list(self.said)))
            reply = self.desk.receive(host, request, self.now)
            if not (isinstance(reply, Refused) and "times a second" in reply.reason):
                assert reply == self.said[host, request], "what was said stays said"

    @rule()
    def answer(self) -> None:
        if self.open:
            work = self.open.pop(0)  # in the order of asking, as a controller does
            self._finish(work)

    @rule(seconds=st.sampled_from([0.01, 0.5, 3.0, 10.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        while self.open:
            self._finish(self.open.pop(0))
        for gone in self.desk.expired(self.now):
            assert self._take(gone) is None

    @rule(digest=digests)
    def another_description_is_in_force(self, digest: str) -> None:
        if digest != self.desk.adoption.described.digest:
            self.adopted.clear()
        self.desk.adoption.announce(Described(8, digest, [b"c"]))

    @invariant()
    def bounds_are_kept(self) -> None:
        for host in HOSTS:
            assert self.desk.holdings.count("subscriptions", host) <= 3
            assert self.desk.holdings.count("advertisements", host) <= 1
            assert self.desk.leases.of_host(host) <= 2

    @invariant()
    def nothing_is_held_without_a_lease(self) -> None:
        if not self.open:
            for name, host in self.held.items():
                session = name.split("/")[1]
                assert Session(HostId(host), session) in self.desk.leases, name

    def _receive(self, host: HostId, request: Request) -> None:
        found = self.desk.receive(host, request, self.now)
        session = Session(host, request.session)
        if isinstance(request, Adopted) and isinstance(found, Ready):
            self.adopted[session] = request.digest
        if isinstance(found, Work):
            if isinstance(request, Advertise):  # or it would send what is not understood any more
                assert self.adopted[session] == self.desk.adoption.described.digest
            for one in found.inputs:
                name = one.id if isinstance(one, inputs.Subscribe | inputs.Advertise) else None
                assert name is None or name.startswith(f"{host}/{request.session}/")
            self.open.append(found)
        else:
            assert found is not None
            kinds = {Join: Welcome | Refused, Describe: Part | Refused}
            maybe = Outdated if isinstance(request, Advertise | Adopted) else Unknown
            assert isinstance(found, kinds.get(type(request), Ready | Refused | Unknown | maybe))
            if not isinstance(found, Unknown | Outdated) and "times a second" not in getattr(
                found, "reason", ""
            ):
                self._say(host, request, found)

    def _finish(self, work: Work) -> None:
        reply = self.desk.finish(work, [self._take(one) for one in work.inputs])
        if isinstance(work.request, Advertise) and isinstance(reply, Ready):
            assert self.adopted[work.session] == self.desk.adoption.described.digest
        if not isinstance(reply, Outdated):
            self._say(work.session.host, work.request, reply)

    def _say(self, host: HostId, request: Request, reply: Reply) -> None:
        assert reply.number == request.number
        encode(reply)
        if "requests open" not in getattr(reply, "reason", ""):
            self.said[host, request] = reply

    def _take(self, received: inputs.Input) -> str | None:
        match received:
            case inputs.Subscribe(name, host, text) | inputs.Advertise(name, host, text):
                if text == "x <":
                    return "this is no filter"
                kept = f"{type(received).__name__}:{name}"
                self.held[name if kept.startswith("S") else f"{name} "] = host
            case inputs.Unsubscribe(name):
                return None if self.held.pop(name, None) else f"there is no subscription {name}"
            case inputs.Unadvertise(name):
                return None if self.held.pop(f"{name} ", None) else f"there is no advertisement {name}"
        return None


TestDays = Days.TestCase
TestDays.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 5))
def test_answers_are_remembered_up_to_a_bound(times: int) -> None:
    desk = Desk(Described(0, "0" * 64, [b"a"]), Leases(), Quotas(requests_per_second=1e9))
    session = "a" * 16
    desk.receive(HOSTS[0], Join(0, session, 9.0), 0.0)
    for number in range(1, times * REMEMBERED // 2):
        desk.receive(HOSTS[0], KeepAlive(number, session), 0.0)
    assert len(desk._told[HOSTS[0]].answers) <= REMEMBERED


def test_a_host_that_floods_is_told_so_a_few_times_and_nobody_else_notices() -> None:
    desk = Desk(Described(0, "0" * 64, [b"a"]), Leases(), Quotas(requests_per_second=1))
    flood = [desk.receive(HOSTS[0], KeepAlive(number, "a" * 16), 0.0) for number in range(10_000)]
    assert 0 < sum(isinstance(reply, Refused) for reply in flood) <= 2 * REFUSALS_PER_SECOND
    assert desk.tally.hurried == 9_998
    assert isinstance(desk.receive(HOSTS[1], Join(1, "b" * 16, 9.0), 0.0), Welcome)
    assert isinstance(desk.receive(HOSTS[0], Join(1, "a" * 16, 9.0), 60.0), Welcome), "later it may ask again"
