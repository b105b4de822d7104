"""Real data becomes workloads: all of it, within its schema, with subscriptions that match."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from plerion.content.errors import InputError
from plerion.content.schema import Number
from plerion.experiments.datasets import DATASETS, Settings, Source, fitted, read
from plerion.index.propose import regular
from plerion.learning.judge import Judge
from plerion.learning.workload import Workload

SHARED = Path(__file__).parents[3] / "shared" / "data"
SETTINGS = Settings(subscriptions=200, events=2_000)
# name: (rows, attributes, the lowest and highest rate of a regular index)
EXPECTED = {
    "stocks": (314_642, 5, 0.7, 0.97),
    "room-climate": (418_938, 8, 0.7, 0.97),
    "beijing-air": (105_120, 11, 0.9, 0.99),
    "quakes": (41_195, 12, 0.9, 0.999),
    "flights": (166_158, 11, 0.9, 0.99),
}

real = pytest.mark.skipif(not SHARED.is_dir(), reason="the real data lies beside the repository, not in it")

LITTLE = Source(("little.csv",), ("who",), ("x", "y", "z"), ("z",))


@cache
def thinned(name: str) -> Workload:
    return DATASETS[name](SHARED, SETTINGS)


def matches(load: Workload) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """By the definition: how many events lie in each subscription's box."""
    low, high = np.moveaxis(load.bounds, 2, 0)[:, :, None, :]
    found: np.ndarray[tuple[int], np.dtype[np.int64]] = (
        ((low <= load.points) & (load.points < high)).all(axis=2).sum(axis=1)
    )
    return found


def little(directory: Path) -> Path:
    """Sixty rows of three groups: `x` whole, `y` with every third value missing, `z` crowded at its low end."""
    rows = [f"{'abc'[i % 3]},{i},{'' if i % 3 == 0 else i / 4},{2.0**i}" for i in range(60)]
    (directory / "little.csv").write_text("\n".join(["who,x,y,z", *rows]))
    return directory


def test_attributes_are_fitted_to_their_values(tmp_path: Path) -> None:
    load = read(LITTLE, little(tmp_path), SETTINGS)
    assert load.schema.attributes[:2] == (Number("x", 0, 59, integer=True), Number("y", 0.25, 14.75))
    assert load.schema.attributes[2] == Number("z", 1, 2.0**59, integer=False, scale="log")


def test_missing_values_stand_below_everything_and_nobody_asks_for_them(tmp_path: Path) -> None:
    load = read(LITTLE, little(tmp_path), SETTINGS)
    assert np.isneginf(load.points[::3, 1]).all()
    assert np.isfinite(load.points[:, [0, 2]]).all()
    asked = np.isfinite(load.bounds[..., 1])
    assert (load.bounds[asked] >= 0).all()
    assert not asked[:, 1].all()


def test_every_subscription_asks_on_two_to_five_attributes_and_matches_an_event(tmp_path: Path) -> None:
    load = read(LITTLE, little(tmp_path), SETTINGS)
    asked = np.isfinite(load.bounds[..., 1]).sum(axis=1)
    assert 2 <= asked.min() <= asked.max() <= 3
    assert matches(load).min() >= 1


def test_thresholds_are_open_above(tmp_path: Path) -> None:
    load = read(LITTLE, little(tmp_path), SETTINGS)
    asked = np.isfinite(load.bounds[:, 2, 1])
    assert (load.bounds[asked, 2, 1] == load.schema.ends[2]).all()


def test_thinning_keeps_the_ends_and_the_schema(tmp_path: Path) -> None:
    directory = little(tmp_path)
    all_of_it = read(LITTLE, directory, Settings(10))
    seven = read(LITTLE, directory, Settings(10, events=7))
    assert len(all_of_it.points) == 60
    assert seven.points[:, 0].tolist() == [0, 9, 19, 29, 39, 49, 59]
    assert seven.schema == all_of_it.schema


def test_a_constant_column_is_an_attribute_of_one_value() -> None:
    assert fitted("win", np.zeros(5)) == Number("win", 0, 0, integer=True)


def test_a_directory_without_the_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"little\.csv"):
        read(LITTLE, tmp_path, SETTINGS)


@pytest.mark.parametrize("wrong", [{"shares": (0.5, 0.1)}, {"hosts": 0}, {"events": 0}])
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"shares|at least"):
        Settings(**wrong)  # type: ignore[arg-type]  # one key at a time


@real
@pytest.mark.parametrize("name", DATASETS)
def test_real_data_is_read_whole(name: str) -> None:
    load = DATASETS[name](SHARED, Settings(subscriptions=10))
    assert load.points.shape == EXPECTED[name][:2]
    present = np.isfinite(load.points)
    assert ((load.points >= load.schema.starts) | ~present).all()
    assert ((load.points < load.schema.ends) | ~present).all()
    assert present.mean() > 0.8


@real
@pytest.mark.parametrize("name", DATASETS)
def test_subscriptions_to_real_data_match_and_are_drawn_alike_for_a_seed(name: str) -> None:
    load, same = thinned(name), DATASETS[name](SHARED, SETTINGS)
    found = matches(load)
    assert found.min() >= 1
    assert 5 < found.mean() < 500
    assert np.array_equal(load.bounds, same.bounds)
    assert np.array_equal(load.points, same.points)


@real
@pytest.mark.parametrize("name", DATASETS)
def test_a_regular_index_is_bad_at_real_data(name: str) -> None:
    load = thinned(name)
    judge = Judge.of(load, 32)
    assert judge.wanted == matches(load).sum()
    assert EXPECTED[name][2] < judge.rate(regular(load.schema, 23)) < EXPECTED[name][3]


@real
def test_the_four_prices_of_a_stock_are_nearly_one() -> None:
    points = DATASETS["stocks"](SHARED, Settings(1)).points
    found = np.atleast_2d(np.corrcoef(points[np.isfinite(points).all(axis=1)].T))
    assert found[:4, :4].min() > 0.99
    assert np.abs(found[4, :4]).max() < 0.5
