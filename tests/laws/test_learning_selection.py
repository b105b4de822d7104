"""Selections are what the algorithms of the seeds, written out independently, decide."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plerion.learning.projection import Projections
from plerion.learning.selection import Selection, brute, cs, emcs, evs, greedy, pca, prefix_trail
from plerion.learning.similarity import similarity
from plerion.learning.summaries import attribute_moments, match_totals, w_moments
from tests.laws.indexes import Floats, costly_law, law
from tests.laws.test_learning_summaries import Asked, columns, crowds, matched

Rates = dict[tuple[int, ...], float]


@st.composite
def rates(draw: st.DrawFn) -> tuple[int, Rates]:
    """A rate for every combination of one to five attributes; many are equal."""
    count = draw(st.integers(1, 5))
    every = [some for n in range(1, count + 1) for some in combinations(range(count), n)]
    some = st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.0]) | st.floats(0, 1)
    return count, {attributes: draw(some) for attributes in every}


def algorithm_4(count: int, rate: Rates) -> tuple[list[set[int]], set[int]]:
    """Line by line: `combinations` of every size, and SD. Where all rates are 1 the first attribute is ignored, too."""
    combination = {count: set(range(count))}
    fpr = {count: rate[tuple(range(count))]}
    omega = count
    while omega > 1:
        lowest, ignored = 1.0, min(combination[omega])
        for d in sorted(combination[omega]):
            temporary = combination[omega] - {d}
            found = rate[tuple(sorted(temporary))]
            if found < lowest:
                lowest, ignored = found, d
        combination[omega - 1] = combination[omega] - {ignored}
        fpr[omega - 1] = lowest
        omega -= 1
    least = min(size for size in fpr if fpr[size] == min(fpr.values()))
    return [combination[size] for size in range(count, 0, -1)], combination[least]


def kept_by(selection: Selection) -> list[set[int]]:
    """The combination of each round, all attributes first, from the order in which they were dropped."""
    return [set(selection.ranking[:size]) for size in range(len(selection.ranking), 0, -1)]


@law
@given(rates())
def test_greedy_decides_as_algorithm_4(drawn: tuple[int, Rates]) -> None:
    count, rate = drawn
    found = greedy(count, rate.__getitem__)
    rounds, chosen = algorithm_4(count, rate)
    assert kept_by(found) == rounds
    assert set(found.chosen) == chosen
    assert len(found.trail) == count * (count + 1) // 2
    assert all(rate[step.attributes] == step.rate for step in found.trail)


@law
@given(rates())
def test_brute_force_finds_the_least_rate_of_all_and_nothing_else_finds_less(
    drawn: tuple[int, Rates],
) -> None:
    count, rate = drawn
    found = brute(count, rate.__getitem__)
    assert rate[found.chosen] == min(rate.values())
    assert {step.attributes: step.rate for step in found.trail} == rate
    fewest = min(len(some) for some in rate if rate[some] == min(rate.values()))
    assert len(found.chosen) == fewest
    assert rate[greedy(count, rate.__getitem__).chosen] >= rate[found.chosen]


@law
@given(rates(), st.data())
def test_the_best_prefix_is_the_best_of_all_prefixes(drawn: tuple[int, Rates], data: st.DataObject) -> None:
    count, rate = drawn
    ranking = tuple(data.draw(st.permutations(range(count))))
    trail = prefix_trail(ranking, rate.__getitem__)
    assert [set(step.attributes) for step in trail] == [set(ranking[: n + 1]) for n in range(count)]
    found = Selection("evs", ranking, (), ranking).best_prefix(rate.__getitem__)
    assert found.trail == trail
    assert rate[found.chosen] == min(step.rate for step in trail)
    for n in range(1, count + 1):
        assert found.first(n).chosen == tuple(sorted(ranking[:n]))


@costly_law
@given(rates(), st.sampled_from([greedy, brute]))
def test_rates_found_at_once_decide_alike(drawn: tuple[int, Rates], method: Callable[..., Selection]) -> None:
    count, rate = drawn
    with ThreadPoolExecutor(2) as pool:
        assert method(count, rate.__getitem__, pool.map) == method(count, rate.__getitem__)


@law
@given(rates(), st.sampled_from([greedy, brute]))
def test_combinations_are_tried_and_chosen_in_schema_order(
    drawn: tuple[int, Rates], method: Callable[..., Selection]
) -> None:
    count, rate = drawn
    found = method(count, rate.__getitem__)  # a key that is not in order would not be there
    assert found.chosen == tuple(sorted(found.chosen))
    assert sorted(found.ranking) == list(range(count))


def powers(matrix: Floats) -> Floats:
    """The projection on the largest eigenvalue's space of a positive matrix, by squaring it again and again."""
    moved = matrix + np.eye(len(matrix)) * (
        np.abs(matrix).sum() + 1
    )  # all eigenvalues positive, vectors the same
    for _ in range(30):
        moved = moved @ moved
        moved /= np.abs(moved).max()
    rank = round(np.trace(moved) / np.linalg.eigvalsh(moved)[-1])
    parts: Floats = np.sqrt(np.diag(moved) * rank / np.trace(moved))
    return parts


def differs(found: Selection, factors: Floats) -> list[str]:
    """What is wrong with a ranking by these factors."""
    wrong = []
    if not np.allclose(found.factors, factors, rtol=1e-6, atol=1e-6):
        wrong.append("factors")
    if found.ranking != tuple(sorted(range(len(factors)), key=lambda a: (-found.factors[a], a))):
        wrong.append("ranking")
    return wrong


@law
@given(crowds())
def test_factors_are_those_of_the_seeds(drawn: tuple[Asked, Floats]) -> None:
    asked, places = drawn
    made, inside = Projections.of(*columns(asked, places.shape[1])), matched(asked, places)
    events, subscriptions = len(places), len(asked)
    every = max(1, events * subscriptions)
    values = [column[np.isfinite(column)] for column in places.T]
    variance = np.array([column.var() if len(column) else 0.0 for column in values])
    assert differs(evs(attribute_moments(places)), variance) == []
    share = 1 - inside.sum(axis=(1, 2)) / every
    assert differs(emcs(match_totals(made, places), events, subscriptions), share) == []
    alike = cs(similarity(made, places), events, subscriptions)
    assert (
        differs(alike, powers(np.array([[1 - (a & b).sum() / every for b in inside] for a in inside]))) == []
    )


@law
@given(crowds(), st.sampled_from([0.1, 0.5, 0.9, 1.0]))
def test_pca_takes_the_fewest_that_reach_the_threshold(drawn: tuple[Asked, Floats], threshold: float) -> None:
    asked, places = drawn
    w = matched(asked, places).sum(axis=2)
    centred = w - (w.mean(axis=1, keepdims=True) if len(places) else 0)
    found = pca(w_moments(Projections.of(*columns(asked, places.shape[1])), places), threshold)
    values, vectors = np.linalg.eigh(centred @ centred.T)
    if len(values) == 1 or values[-1] - values[-2] > 1e-3 * values[-1] > 0:  # one component is the first
        assert differs(found, np.abs(vectors[:, -1])) == []
    sizes = sorted(found.factors, reverse=True)
    taken = len(found.chosen)
    assert sum(sizes[:taken]) >= threshold * sum(sizes) - 1e-6
    assert taken == 1 or sum(sizes[: taken - 1]) < threshold * sum(sizes)
    assert set(found.chosen) == set(found.ranking[:taken])


def test_the_oracles_see_another_decision() -> None:
    rate = {(0,): 0.5, (1,): 0.25, (0, 1): 0.75}
    assert algorithm_4(2, rate) == ([{0, 1}, {1}], {1})
    other = greedy(2, {**rate, (0,): 0.1}.__getitem__)
    assert kept_by(other) != algorithm_4(2, rate)[0]
    found = Selection("evs", (0, 1), (1.0, 2.0), (0, 1))
    assert differs(found, np.array([1.0, 3.0])) == ["factors", "ranking"]
    with pytest.raises(KeyError):
        prefix_trail((1, 0), {(1,): 0.5, (1, 0): 0.5}.__getitem__)


def test_the_oracle_of_components_knows_one_by_hand() -> None:
    assert np.allclose(powers(np.array([[1.0, 2.0], [2.0, 4.0]])), [1 / sqrt(5), 2 / sqrt(5)])
    assert np.allclose(powers(np.zeros((3, 3))), 1)
    assert np.allclose(powers(np.diag([5.0, 5.0, 1.0])), [1, 1, 0])
