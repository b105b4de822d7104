"""The synthetic workloads have the properties that their settings promise."""

from dataclasses import replace

import numpy as np
import pytest

from plerion.experiments.synthetic import HARDLY, PRESETS, Settings, layout, workload
from plerion.index.propose import regular
from plerion.learning.judge import Judge
from plerion.learning.workload import Floats
from plerion.matching.bitset import match_counts

SMALL = {name: replace(settings, subscriptions=300, events=4_000) for name, settings in PRESETS.items()}


def correlations(columns: Floats) -> Floats:
    """The absolute correlation of each pair of columns, in rising order."""
    found = np.abs(np.corrcoef(columns.T))
    return np.sort(found[np.triu_indices(len(found), 1)])


@pytest.mark.parametrize("name", PRESETS)
def test_events_and_boxes_are_whole_numbers_within_the_schema(name: str) -> None:
    load = workload(SMALL[name])
    assert load.points.shape == (4_000, 8)
    assert load.bounds.shape == (300, 8, 2)
    assert load.interests == len(load.hosts) == 300
    assert (load.points == np.floor(load.points)).all()
    assert load.points.min() >= 0
    assert load.points.max() <= 4095
    held = load.bounds[np.isfinite(load.bounds).all(axis=2)]
    assert (held == np.floor(held)).all()
    assert (held[:, 0] < held[:, 1]).all()
    assert held.min() >= 0
    assert held.max() <= 4096
    assert 0 <= load.hosts.min() <= load.hosts.max() < 256


@pytest.mark.parametrize("name", PRESETS)
def test_most_subscriptions_match_some_events_and_none_matches_all(name: str) -> None:
    load = workload(SMALL[name])
    boxes = np.moveaxis(load.bounds, 2, 0)[:, :, None, :]
    matched = ((boxes[0] <= load.points) & (load.points < boxes[1])).all(axis=2).sum(axis=1)
    assert matched.sum() == match_counts(load.bounds, load.points).sum()
    assert np.mean(matched > 0) > 0.6
    assert matched.max() < 4_000


def test_equal_settings_give_equal_workloads_and_other_seeds_others() -> None:
    one, same = workload(SMALL["zipf"]), workload(SMALL["zipf"])
    other = workload(replace(SMALL["zipf"], seed=2))
    for part in ("points", "bounds", "hosts"):
        assert np.array_equal(getattr(one, part), getattr(same, part))
        assert not np.array_equal(getattr(one, part), getattr(other, part))


def test_more_events_leave_the_subscriptions_alone() -> None:
    one, more = workload(SMALL["zipf"]), workload(replace(SMALL["zipf"], events=5_000))
    assert np.array_equal(one.bounds, more.bounds)


def test_high_correlation_leaves_two_independent_attributes() -> None:
    load = workload(SMALL["high-correlation"])
    for columns in (load.points, load.bounds.mean(axis=2)):
        found = np.abs(np.corrcoef(columns.T))
        alike = found > 0.9
        assert len({tuple(row) for row in alike.tolist()}) == 2  # two groups, alike within
        assert found[~alike].max() < 0.2


def test_low_correlation_is_one_weak_pair() -> None:
    load = workload(SMALL["low-correlation"])
    *others, pair = correlations(load.points)
    assert 0.2 < pair < 0.6
    assert max(others) < 0.1


def test_events_of_the_uniform_model_are_independent() -> None:
    assert correlations(workload(SMALL["uniform"]).points).max() < 0.1


def test_random_variance_leaves_much_on_some_attributes_and_hardly_any_on_others() -> None:
    spread = np.sort(workload(SMALL["zipf-random-variance"]).points.std(axis=0))
    assert spread[-1] > 20 * spread[0]
    even = np.sort(workload(SMALL["zipf-uniform-variance"]).points.std(axis=0))
    assert even[-1] < 4 * even[0]
    assert spread[0] < 4095 * HARDLY


def test_random_selectivity_has_attributes_that_tell_much_and_nothing() -> None:
    load = workload(SMALL["random-selectivity"])
    width = np.sort((load.bounds[..., 1] - load.bounds[..., 0]).mean(axis=0)) / 4096
    assert width[0] < 0.1
    assert width[-1] > 0.6


@pytest.mark.parametrize(("name", "useful"), [("redundant-2", 2), ("redundant-3", 3)])
def test_redundant_attributes_copy_others_or_are_free(name: str, useful: int) -> None:
    load, plan = workload(SMALL[name]), layout(SMALL[name])
    assert np.array_equal(load.points, load.points[:, plan.source])
    assert np.array_equal(load.bounds, load.bounds[:, plan.source])
    assert np.isinf(load.bounds[:, plan.idle]).all()
    assert len(set(plan.source.tolist()) - set(plan.idle.tolist())) == useful


def test_hosts_of_the_interest_popularity_model_ask_for_one_hotspot() -> None:
    load = workload(replace(SMALL["zipf"], hosts=10, spread=0.0, widths=(0.1, 0.1)))
    for host in range(10):
        assert len(np.unique(load.bounds[load.hosts == host], axis=0)) == 1
    assert len(np.unique(load.bounds, axis=0)) == 8


def test_the_setting_of_the_first_paper_can_be_had() -> None:
    load = workload(Settings(attributes=7, high=1023, hotspots=7, events=100, subscriptions=10))
    assert load.points.shape == (100, 7)
    assert load.points.max() <= 1023


@pytest.mark.parametrize(
    "wrong", [{"copies": 4, "idle": 4}, {"widths": (0.5, 0.1)}, {"widths": (0.1, 1.5)}, {"hosts": 0}]
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"leave|shares|at least"):
        replace(Settings(), **wrong)  # type: ignore[arg-type]  # one key at a time


def test_random_selectivity_starts_where_the_paper_does() -> None:
    rates = []
    for seed, subscriptions in ((4, 1_000), (1, 300), (2, 300), (3, 300)):
        load = workload(replace(PRESETS["random-selectivity"], seed=seed, subscriptions=subscriptions))
        rates.append(Judge.of(load, 32).rate(regular(load.schema, 23)))
    assert rates[0] == pytest.approx(0.8, abs=0.05)
    assert np.mean(rates) == pytest.approx(0.8, abs=0.07)
