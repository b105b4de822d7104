"""Who waits for answers neither gives up hope nor floods a controller that has much to do, and is not silent long."""

from hypothesis import given
from hypothesis import strategies as st

from plerion.client.membership import silence
from plerion.client.patience import LATEST_SECONDS, SOONEST_SECONDS, Patience
from plerion.controller.config import LeaseTimes

answers = st.lists(st.floats(0, 100), max_size=50)


def after(seconds: list[float]) -> Patience:
    found = Patience()
    for one in seconds:
        found.heard(one)
    return found


@given(answers)
def test_a_request_is_repeated_within_bounds_whatever_was_heard(seconds: list[float]) -> None:
    assert SOONEST_SECONDS <= after(seconds).seconds <= LATEST_SECONDS


@given(answers, st.floats(0.1, 0.6))
def test_where_answers_take_long_nobody_repeats_before_they_can_have_come(
    seconds: list[float], usual: float
) -> None:
    assert after([*seconds, *[usual] * 60]).seconds >= 2 * usual


@given(answers)
def test_after_quick_answers_a_lost_one_is_soon_asked_for_again(seconds: list[float]) -> None:
    assert after([*seconds, *[0.003] * 80]).seconds < 2 * SOONEST_SECONDS


@given(answers, st.floats(0, 2))
def test_while_one_request_waits_long_others_are_not_repeated_sooner(
    seconds: list[float], waited: float
) -> None:
    found = after(seconds)
    found.unheard(waited)
    assert found.seconds >= 0.999 * waited
    assert SOONEST_SECONDS <= found.seconds <= LATEST_SECONDS


@given(st.floats(1, 86_400))
def test_a_session_shows_itself_in_time_also_to_a_controller_that_has_forgotten_its_lease(
    lease: float,
) -> None:
    assert 3 * silence(lease) <= lease * (1 + 1e-9)
    assert 3 * silence(lease) <= LeaseTimes().usual_seconds
    assert silence(lease) >= min(lease, 1) / 3
