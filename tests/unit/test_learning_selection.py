"""Small selections, worked out by hand."""

from math import inf, isclose, sqrt

import numpy as np
import pytest

from plerion.learning.projection import Projections
from plerion.learning.selection import (
    MAX_BRUTE,
    Selection,
    SelectionError,
    Step,
    brute,
    cs,
    emcs,
    evs,
    greedy,
    pca,
    principal,
)
from plerion.learning.similarity import similarity
from plerion.learning.summaries import WMoments, attribute_moments, match_totals, w_moments

SCHEMA_ORDER = (0, 1, 2)


def roughly(found: tuple[float, ...], expected: tuple[float, ...]) -> bool:
    return len(found) == len(expected) and all(
        isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) for a, b in zip(found, expected, strict=True)
    )


def test_evs_prefers_the_attribute_on_which_events_spread() -> None:
    places = np.array([[0.0, 3.0, -inf], [1.0, 3.0, 0.0], [0.0, 3.0, 10.0], [1.0, 3.0, 20.0]])
    found = evs(attribute_moments(places))
    assert found.ranking == (2, 0, 1)
    assert roughly(found.factors, (0.25, 0.0, 200 / 3))
    assert found.first(2).chosen == (0, 2)


def test_emcs_prefers_the_attribute_on_which_few_subscriptions_match() -> None:
    """Figure 8 of seed 004: subscriptions that overlap along P and are apart along T."""
    asked = np.array([[[0.0, 8.0], [0.0, 2.0]], [[1.0, 9.0], [4.0, 6.0]], [[2.0, 10.0], [8.0, 10.0]]])
    places = np.array([[3.0, 1.0], [5.0, 5.0], [7.0, 9.0], [9.0, 3.0]])
    totals = match_totals(Projections.of(np.arange(4), asked), places)
    assert totals.tolist() == [10, 3]
    found = emcs(totals, 4, 3)
    assert found.ranking == (1, 0)
    assert roughly(found.factors, (1 - 10 / 12, 1 - 3 / 12))


def test_cs_ranks_by_the_first_component_of_the_dissimilarities() -> None:
    """With ten pairs the matrix is (0.2 0.4; 0.4 0.8), whose vector is (1 2) / √5."""
    found = cs(np.array([[8, 6], [6, 2]]), 5, 2)
    assert found.ranking == (1, 0)
    assert roughly(found.factors, (1 / sqrt(5), 2 / sqrt(5)))


def test_pca_leaves_out_an_attribute_on_which_every_event_matches_as_many() -> None:
    """W is 0 2 0 2, 1 1 1 1, 0 4 0 4, so the vector is (1 0 2) / √5: 2/3 of the sum with one, all with two."""
    asked = np.array([[[1.0, 2.0], [-inf, inf], [-inf, inf]]] * 2)
    assert pca(w_moments(Projections.of(np.arange(3), asked), np.zeros((4, 3)))).method == "pca"
    moments = WMoments(4, (4, 4, 8), ((8, 4, 16), (4, 4, 8), (16, 8, 32)))
    assert moments.covariance().tolist() == [[1, 0, 2], [0, 0, 0], [2, 0, 4]]
    found = pca(moments)
    assert (found.ranking, found.chosen) == ((2, 0, 1), (0, 2))
    assert roughly(found.factors, (1 / sqrt(5), 0.0, 2 / sqrt(5)))
    assert pca(moments, 0.6).chosen == (2,)
    assert pca(moments, 1.0).chosen == (0, 2)


def test_greedy_keeps_the_best_combination_of_all_rounds() -> None:
    rate = {
        (0, 1, 2): 0.5,
        (1, 2): 0.3,  # best of the second round
        (0, 2): 0.4,
        (0, 1): 0.6,
        (2,): 0.7,
        (1,): 0.35,  # best of the last round, but not of all
        (0,): 0.1,  # never seen: 0 was dropped first
    }
    found = greedy(3, rate.__getitem__)
    assert found.chosen == (1, 2)
    assert found.ranking == (1, 2, 0)
    assert [step.attributes for step in found.trail] == [(0, 1, 2), (1, 2), (0, 2), (0, 1), (2,), (1,)]
    assert found.trail[1] == Step((1, 2), 0.3)
    assert brute(3, rate.__getitem__).chosen == (0,)


def test_equal_rates_leave_the_fewest_attributes_and_drop_the_first() -> None:
    assert greedy(3, lambda _: 1.0).ranking == (2, 1, 0)
    assert greedy(3, lambda _: 1.0).chosen == (2,)
    assert brute(3, lambda _: 0.0).chosen == (0,)
    assert Selection("evs", (2, 0, 1), (), (0, 1, 2)).best_prefix(lambda _: 0.0).chosen == (2,)


def test_equal_factors_rank_in_schema_order() -> None:
    assert evs(attribute_moments(np.array([[0.0, 5.0, 1.0], [1.0, 6.0, 2.0]]))).ranking == SCHEMA_ORDER
    assert emcs(np.array([7, 7, 7]), 5, 5).ranking == SCHEMA_ORDER
    same = (
        np.array([[3.0, 1.0, 1.0], [1.0, 3.0, 1.0], [1.0, 1.0, 3.0]]) / 7
    )  # coefficients differ by rounding
    assert principal(same).tolist() == [round(1 / sqrt(3), 12)] * 3


def test_attributes_share_in_all_vectors_of_the_largest_eigenvalue() -> None:
    """2 - v vᵗ with v = (1 2 2) / 3 has the eigenvalue 2 on all that is orthogonal to v, and 1 on v."""
    v = np.array([1.0, 2.0, 2.0]) / 3
    assert np.allclose(principal(2 * np.eye(3) - np.outer(v, v)), np.sqrt(1 - v**2))
    assert principal(np.zeros((3, 3))).tolist() == [1, 1, 1]


@pytest.mark.parametrize("events", [0, 4])
@pytest.mark.parametrize("asked", [0, 2])
def test_without_events_or_subscriptions_or_differences_the_ranking_is_the_schema(
    events: int, asked: int
) -> None:
    places = np.full((events, 3), 5.0)
    made = Projections.of(np.arange(asked + 1), np.array([[[0.0, 9.0]] * 3] * asked).reshape(-1, 3, 2))
    for found in (
        evs(attribute_moments(places)),
        emcs(match_totals(made, places), events, asked),
        cs(similarity(made, places), events, asked),
        pca(w_moments(made, places)),
    ):
        assert found.ranking == SCHEMA_ORDER
        assert found.chosen == SCHEMA_ORDER
        assert len(set(found.factors)) == 1
        assert not np.isnan(found.factors).any()


def test_one_attribute_is_always_chosen() -> None:
    places = np.array([[1.0], [2.0]])
    made = Projections.of(np.array([0, 1]), np.array([[[0.0, 2.0]]]))
    assert evs(attribute_moments(places)).chosen == (0,)
    assert emcs(match_totals(made, places), 2, 1).chosen == (0,)
    assert cs(similarity(made, places), 2, 1).chosen == (0,)
    assert pca(w_moments(made, places)).chosen == (0,)
    assert greedy(1, lambda _: 0.5) == Selection("greedy", (0,), (), (0,), (Step((0,), 0.5),))
    assert brute(1, lambda _: 0.5).chosen == (0,)


def test_a_variance_past_the_greatest_double_ranks_first() -> None:
    found = evs(attribute_moments(np.array([[0.0, -8e307], [9.0, 8e307]])))
    assert found.ranking == (1, 0)
    assert found.factors == (20.25, inf)


def test_what_cannot_be_selected_is_refused_with_the_bound() -> None:
    ranked = emcs(np.array([1, 2]), 5, 5)
    for wanted in (0, 3):
        with pytest.raises(SelectionError, match=f"1 to 2 attributes can be selected, not {wanted}"):
            ranked.first(wanted)
    with pytest.raises(SelectionError, match=f"at most {MAX_BRUTE} attributes, not of {MAX_BRUTE + 1}"):
        brute(MAX_BRUTE + 1, lambda _: 0.0)
    for threshold in (0.0, 1.5, float("nan")):
        with pytest.raises(SelectionError, match="above 0 and at most 1"):
            pca(WMoments(1, (1,), ((1,),)), threshold)
    for method in (greedy, brute):
        with pytest.raises(SelectionError, match="at least one attribute"):
            method(0, lambda _: 0.0)
    with pytest.raises(SelectionError, match=r"rate of \(0, 1\) is not a number"):
        greedy(2, lambda _: float("nan"))
