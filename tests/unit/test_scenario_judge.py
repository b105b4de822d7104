"""The judge of the scenarios can tell: what is lost, doubled or unasked is found, and nothing else is."""

from tests.ovs.witness import EventId, Seen, Wish, judged

ONE, OTHER = EventId("p", 1), EventId("p", 2)
WISHES = [Wish("h2", 0, 9, 0.0, 1.0, 5.0, 6.0)]
ALWAYS = [(0.0, 10.0)]


def sent(event: EventId, at: float, value: int = 5) -> Seen:
    return Seen("h1", True, at, event, (value,))


def came(event: EventId, at: float, host: str = "h2", value: int = 5) -> Seen:
    return Seen(host, False, at, event, (value,))


def test_what_came_once_is_fine() -> None:
    assert judged([sent(ONE, 2.0), came(ONE, 2.1)], WISHES, ALWAYS).fine


def test_what_never_came_is_lost_and_what_came_again_is_doubled() -> None:
    seen = [sent(ONE, 2.0), sent(OTHER, 2.0), came(OTHER, 2.1), came(OTHER, 2.2)]
    found = judged(seen, WISHES, ALWAYS)
    assert (found.due, found.lost, found.doubled) == (2, [("h2", ONE)], [("h2", OTHER)])
    assert not found.fine


def test_what_nobody_wants_is_unasked() -> None:
    elsewhere = [sent(ONE, 2.0), came(ONE, 2.1), came(ONE, 2.1, "h3")]
    assert judged(elsewhere, WISHES, ALWAYS).unasked == [("h3", ONE)]
    another = [sent(ONE, 2.0, 99), came(ONE, 2.1, value=99)]
    assert judged(another, WISHES, ALWAYS).unasked == [("h2", ONE)]
    long_after = [sent(ONE, 7.0), came(ONE, 7.1)]
    assert judged(long_after, WISHES, ALWAYS).unasked == [("h2", ONE)]


def test_between_asking_and_ready_an_event_may_come_and_need_not() -> None:
    assert judged([sent(ONE, 0.5), sent(OTHER, 0.6), came(ONE, 0.7)], WISHES, ALWAYS).fine
    assert judged([sent(ONE, 5.5), sent(OTHER, 5.6), came(ONE, 5.7)], WISHES, ALWAYS).fine


def test_only_events_of_the_spans_are_judged_and_a_host_gets_none_of_its_own() -> None:
    assert judged([sent(ONE, 2.0)], WISHES, [(0.0, 1.5), (2.5, 9.0)]).fine
    assert judged([sent(ONE, 2.0)], [Wish("h1", 0, 9)], ALWAYS).fine
