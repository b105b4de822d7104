"""Leases, quotas and pace: who is believed to live, and how much a host may ask for."""

from __future__ import annotations

from plerion.controller.lease import Leases, Session, session_of
from plerion.controller.quota import Holdings, Pace, Quotas
from plerion.topology import HostId

H1, H2 = HostId("h1"), HostId("h2")
ONE, TWO = Session(H1, "a" * 16), Session(H2, "b" * 16)


def test_a_session_lives_as_long_as_it_gives_signs_of_life() -> None:
    leases = Leases()
    assert leases.open(ONE, 10.0, now=0.0) == 10.0
    leases.open(TWO, 10.0, now=0.0)
    assert leases.renew(ONE, now=9.0)
    assert leases.expired(now=9.9) == []
    assert leases.expired(now=10.0) == [TWO]
    assert not leases.renew(TWO, now=10.0)
    assert leases.expired(now=19.0) == [ONE]
    assert len(leases) == 0


def test_a_lease_is_granted_within_bounds() -> None:
    leases = Leases(longest_seconds=60.0)
    assert leases.open(ONE, 0.001, 0.0) == 1.0
    assert leases.open(ONE, 1e9, 0.0) == 60.0
    assert leases.of_host(H1) == 1


def test_time_in_which_nobody_was_heard_does_not_count() -> None:
    leases = Leases()
    leases.open(ONE, 10.0, 0.0)
    leases.extend(100.0)
    assert leases.expired(109.0) == []
    assert leases.expired(110.0) == [ONE]


def test_the_owner_of_an_interest_follows_from_its_id() -> None:
    assert session_of(ONE.id("q"), "h1") == ONE
    assert session_of(ONE.id("with/slash"), "h1") == ONE
    assert session_of("a/b/" + "c" * 16 + "/q", "a/b") == Session(HostId("a/b"), "c" * 16)
    for operators in ("h1/-/q", "q", "h10/" + "a" * 16 + "/q", "h1"):
        assert session_of(operators, "h1") is None, operators


def test_interests_found_at_a_start_get_their_sessions_a_fresh_lease() -> None:
    leases = Leases(usual_seconds=5.0)
    leases.open(TWO, 60.0, 0.0)
    found = [(ONE.id("q"), "h1"), (ONE.id("r"), "h1"), (TWO.id("q"), "h2"), ("h1/-/op", "h1")]
    assert leases.adopt(found, now=100.0) == 1
    assert leases.expired(now=104.0) == [TWO], "who is known keeps the lease that it has"
    assert leases.expired(now=105.0) == [ONE]


def test_a_quota_counts_what_is_held_and_not_how_often_it_is_asked_for() -> None:
    held = Holdings(Quotas(subscriptions=2, advertisements=1))
    for _ in range(3):
        assert held.take("subscriptions", H1, "one") is None
    assert held.take("subscriptions", H1, "two") is None
    reason = "h1 has 2 subscriptions, and at most 2 are allowed: withdraw some first"
    assert held.take("subscriptions", H1, "three") == reason
    assert held.take("subscriptions", H2, "three") is None
    assert held.take("advertisements", H1, "three") is None
    held.drop("subscriptions", H1, "one")
    assert held.take("subscriptions", H1, "three") is None
    assert held.of("subscriptions", H1) == {"two", "three"}


def test_what_is_there_at_a_start_counts_even_above_the_quota() -> None:
    held = Holdings(Quotas(subscriptions=1))
    held.load("subscriptions", [("one", "h1"), ("two", "h1")])
    assert held.count("subscriptions", H1) == 2
    assert held.take("subscriptions", H1, "two") is None
    assert held.take("subscriptions", H1, "three") is not None


def test_a_host_may_burst_for_two_seconds_and_then_keeps_to_its_rate() -> None:
    pace = Pace(10.0)
    assert sum(pace.allows(H1, 0.0) for _ in range(100)) == 20
    assert pace.allows(H2, 0.0), "another host has its own"
    assert sum(pace.allows(H1, i / 100) for i in range(1, 301)) in (29, 30)
    assert sum(pace.allows(H1, 100.0) for _ in range(100)) == 20
    assert not pace.allows(H1, 50.0), "a clock that goes back gives nothing"
