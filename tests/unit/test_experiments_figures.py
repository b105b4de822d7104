"""Figures are data: points become rows, rows become verdicts that can go either way, and pictures."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from plerion.content.errors import InputError
from plerion.experiments import combined, dimension, dz_length, indexing, runtime
from plerion.experiments.figure import OURS, Point, Row, Verdict, curve, graded, is_ours, lines, saved
from plerion.experiments.figures import FIGURES, named, points, read_rows, work
from plerion.experiments.plot import draw
from plerion.experiments.study import Study, of_size
from plerion.experiments.synthetic import PRESETS, Settings, workload
from plerion.index.cover import covers
from plerion.index.encode import encode
from plerion.learning.selection import Selection, Step

LITTLE = Settings(subscriptions=40, events=800, attributes=4)

EXPECTED = {
    *(f"004-11{letter}" for letter in "abcd"),
    *(f"004-12{letter}" for letter in "abcdefg"),
    *("004-13a", "004-13b", "004-14a", "004-14b", "000-7d", "000-7e"),
    *(f"000-7{letter}" for letter in "abcf"),
    *("004-10", "004-14c"),
    *(f"001-6.{number}" for number in range(3, 9)),
}


def drawn(ys: Mapping[str, Sequence[float]], panel: str = "p") -> list[Row]:
    """Lines by name, with dots at 1, 2, 3 …"""
    return [Row(panel, line, x, y) for line, values in ys.items() for x, y in enumerate(values, 1)]


def test_every_figure_is_there_and_says_what_it_claims() -> None:
    assert set(FIGURES) == EXPECTED
    for name, figure in FIGURES.items():
        assert figure.name == name
        assert all((figure.title, figure.claim, figure.settings, figure.x, figure.y, figure.starts))
        assert {start.figure for start in figure.starts} == {name}
        if not name.startswith("004-13") and not figure.lab:
            assert any(is_ours(start.line) for start in figure.starts), name


def test_an_unknown_figure_is_refused_with_a_guess() -> None:
    with pytest.raises(InputError, match="004-11a"):
        named(["004-11aa"])
    assert named([]) == list(FIGURES.values())


@pytest.mark.slow
def test_a_point_and_its_rows_travel_as_text() -> None:
    figure = FIGURES["004-12a"]
    todo = points(figure, 0.02, 2, "")
    assert len(todo) == len(set(todo)) == 2 * len(figure.starts)
    found = read_rows(work(todo[-1]))
    assert [row.x for row in found] == list(range(1, 9))
    assert all(0 <= row.y <= 1 and row.seed == 2 and row.line == OURS for row in found)
    assert found == read_rows(work(todo[-1]))


@pytest.mark.slow
def test_the_judged_events_choose_nothing() -> None:
    load = workload(LITTLE)
    other = load.points.copy()
    other[1::2] = 0
    one, two = Study(load), Study(load.with_points(other))
    for method in ("regular", "adaptive", "selective", "boundary"):
        assert one.index(method, (0, 1, 2)) == two.index(method, (0, 1, 2))
    for name in ("evs", "emcs", "cs", "pca", "greedy", "brute"):
        assert one.selection(name) == two.selection(name)
    assert one.rate("regular", (0, 1)) != two.rate("regular", (0, 1))


def test_a_size_is_the_best_that_was_tried_or_the_top_of_the_ranking() -> None:
    ranked = Selection("evs", (2, 0, 1), (), (0, 1, 2))
    assert of_size(ranked, 2) == (0, 2)
    tried = replace(ranked, trail=(Step((0, 1), 0.5), Step((1, 2), 0.25), Step((0,), 0.0)))
    assert of_size(tried, 2) == (1, 2)


@pytest.mark.slow
def test_the_rate_at_hosts_is_what_a_double_loop_counts() -> None:
    load = workload(replace(LITTLE, hosts=3, events=100))
    study = Study(load, budget=4, bits=8)
    index = study.index("regular", study.attributes)
    inside = (load.bounds[:, None, :, 0] <= load.points) & (load.points < load.bounds[:, None, :, 1])
    wanted = np.asarray(inside.all(axis=2))
    codes = list(encode(index, load.points).dz)
    cells = covers(index, load.offsets, load.bounds, 4)
    sent = np.array(
        [
            [any(cell.covers(code) for cell in cells.dz[first:last]) for code in codes]
            for first, last in pairwise(cells.offsets)
        ]
    )
    sent_to, wanted_at = (
        np.stack([pairs[load.hosts == host].any(axis=0) for host in range(3)]) for pairs in (sent, wanted)
    )
    expected = (sent_to & ~wanted_at).sum() / sent_to.sum()
    assert 0 < expected < 1
    assert dz_length.host_rate(load, index, 4) == pytest.approx(expected)


def test_a_curve_is_the_mean_over_seeds_in_order_of_x() -> None:
    rows = [Row("p", "a", 2, 0.5, 1), Row("p", "a", 1, 0.2, 1), Row("p", "a", 2, 0.7, 2), Row("q", "a", 1, 9)]
    assert curve(rows, "a", "p") == {1: 0.2, 2: pytest.approx(0.6)}
    assert lines([Row("p", OURS, 1, 1), Row("p", "b", 1, 1)]) == ["b", OURS]
    assert saved(0.25, 1.0) == 0.75
    assert [graded(parts, "").holds for parts in ([True, True], [True, False], [False])] == [
        "holds",
        "holds in part",
        "does not hold",
    ]


STOCKS = {combined.PLAIN: (0.8, 0.8), OURS: (0.1, 0.1)}
# Which verdict: rows for which the claim holds, and rows for which it does not.
CASES = {
    "004-11a": (
        drawn({"RI": (0.8, 0.8), "SI": (0.4, 0.7), OURS: (0.3, 0.3)}),
        drawn({"RI": (0.8, 0.8), "SI": (0.8, 0.81), OURS: (0.3, 0.3)}),
    ),
    "004-12a": (
        drawn({"EVS": (0.6, 0.3, 0.7), "random": (0.7, 0.7, 0.7), OURS: (0.1,) * 3}),
        drawn({"EVS": (0.8, 0.75, 0.7), "random": (0.7, 0.7, 0.7), OURS: (0.1,) * 3}),
    ),
    "004-12b": (
        drawn({"EMCS": (0.3, 0.4, 0.7), "EVS": (0.7, 0.7, 0.7), "random": (0.7,) * 3, OURS: (0.1,) * 3}),
        drawn({"EMCS": (0.7, 0.7, 0.7), "EVS": (0.3, 0.4, 0.7), "random": (0.7,) * 3, OURS: (0.1,) * 3}),
    ),
    "004-12c": (
        drawn({"CS": (0.3, 0.4, 0.7), "EMCS": (0.7, 0.7, 0.7), OURS: (0.1,) * 3}),
        drawn({"CS": (0.7, 0.7, 0.7), "EMCS": (0.3, 0.4, 0.7), OURS: (0.1,) * 3}),
    ),
    "004-12d": (
        drawn({"CS": (0.7, 0.7), "EMCS": (0.7, 0.71), OURS: (0.1,) * 2}),
        drawn({"CS": (0.7, 0.7), "EMCS": (0.3, 0.7), OURS: (0.1,) * 2}),
    ),
    "004-12e": (
        drawn({"CS": (0.7, 0.6, 0.7), "GS": (0.5, 0.5, 0.7), OURS: (0.1,) * 3}),
        drawn({"CS": (0.5, 0.5, 0.7), "GS": (0.7, 0.6, 0.7), OURS: (0.1,) * 3}),
    ),
    "004-12f": (
        drawn({"brute force": (0.5, 0.6), "GS": (0.5, 0.61), OURS: (0.1,) * 2}),
        drawn({"brute force": (0.5, 0.6), "GS": (0.6, 0.7), OURS: (0.1,) * 2}),
    ),
    "004-13a": (
        drawn({"EVS": (1, 1), "EMCS": (1, 2), "CS": (1, 3), "GS": (1, 4)}, "events"),
        drawn({"EVS": (1, 4), "EMCS": (2, 3), "CS": (3, 2), "GS": (4, 1)}, "events"),
    ),
    "004-14a": (
        drawn({"CS": (0.5, 0.8), "GS": (0.5, 0.8), "CS+ASI": (0.1, 0.8), "GS+ASI": (0.1, 0.8), OURS: (0, 0)}),
        drawn({"CS": (0.5, 0.8), "GS": (0.5, 0.8), "CS+ASI": (0.6, 0.8), "GS+ASI": (0.5, 0.8), OURS: (0, 0)}),
    ),
    "004-14b": (
        drawn({"EVS+SI": (0.4, 0.5), "CS+SI": (0.4, 0.5), "GS+SI": (0.39, 0.5), **STOCKS}, "stocks"),
        drawn({"EVS+SI": (0.8, 0.8), "CS+SI": (0.6, 0.8), "GS+SI": (0.39, 0.5), **STOCKS}, "stocks"),
    ),
    "000-7d": (
        drawn({"100 subscriptions": (0.9, 0.5), "1,000 subscriptions": (0.8, 0.4)}),
        drawn({"100 subscriptions": (0.5, 0.6), "1,000 subscriptions": (0.8, 0.9)}),
    ),
    "000-7e": (
        drawn({"PCA": (0.4, 0.3, 0.6), OURS: (0.1,) * 3}),
        drawn({"PCA": (0.8, 0.7, 0.6), OURS: (0.1,) * 3}),
    ),
    "000-7a": (
        drawn({"median, first time": (1.0, 1.1, 1.2), "median, again": (0.5, 0.6, 0.6)}),
        drawn({"median, first time": (1.0, 1.1, 1.3), "median, again": (0.5, 0.6, 0.7)}),
    ),
    "000-7b": (
        drawn({"median, first time": (1.2, 1.1, 1.0), "median, again": (0.6, 0.5, 0.5)}),
        drawn({"median, first time": (1.3, 1.1, 1.0), "median, again": (0.9, 0.8, 0.6)}),
    ),
    "000-7c": (
        drawn({"wanted": (100, 200), "left the switches": (100, 200), "received": (100, 150)}),
        drawn({"wanted": (100, 200), "left the switches": (90, 100), "received": (90, 100)}),
    ),
    "000-7f": (
        drawn({"one by one": (1, 9), "64 at a time, each": (1, 2)}),
        drawn({"one by one": (1, 90), "64 at a time, each": (1, 20)}),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_verdict_can_go_either_way(name: str) -> None:
    good, bad = CASES[name]
    verdict = FIGURES[name].verdict
    assert verdict(good).holds == "holds", verdict(good)
    assert verdict(bad).holds == "does not hold", verdict(bad)
    assert verdict(good).because != verdict(bad).because


@pytest.mark.slow
def test_a_selection_is_timed_with_the_sums_that_it_needs() -> None:
    rows = runtime.rows(Point("004-13a", "events", at=1_000, scale=0.001))
    assert [row.line for row in rows] == ["EVS", "EMCS", "CS", "GS"]
    assert all(row.y > 0 and row.x == 400 for row in rows)


@pytest.mark.slow
def test_pictures_of_equal_rows_are_equal(tmp_path: Path) -> None:
    figure = FIGURES["004-11b"]
    rows = CASES["004-11a"][0]
    for name in ("one", "two"):
        draw(figure, rows, "a note", tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_indexes_are_compared_on_one_workload() -> None:
    """At the same number of subscriptions each line of Figure 11 sees the same events and subscriptions."""
    found = [indexing.rows(Point("004-11b", "zipf", line, 100, scale=0.01)) for line in ("RI", "SI", OURS)]
    assert [rows[0].x for rows in found] == [20, 20, 20]
    assert found[2][0].y < found[0][0].y


def test_the_workloads_of_selections_differ_in_their_attributes() -> None:
    for name in ("uniform data", "zipf data"):
        assert dimension.WORKLOADS[name].selectivity == "random"
    assert dimension.WORKLOADS["random variance"] == PRESETS["zipf-random-variance"]
    assert isinstance(dimension.greedy_is_ideal(CASES["004-12f"][0]), Verdict)
