"""The index changes under traffic, on real switches: independent receivers count what is lost and what comes twice."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

import msgspec
import numpy as np
import pytest

from plerion.index.codec import to_json
from plerion.learning.propose import Request, propose, summaries
from plerion.learning.workload import Workload
from plerion.topology import from_name
from plerion.update.strategies import STRATEGIES
from tests.ovs.network import SCHEMA, Scene, opened

pytestmark = [pytest.mark.ovs, pytest.mark.slow]

SAFE = [name for name, known in STRATEGIES.items() if known.promise.safe]
PUBLISHERS, SUBSCRIBERS = ["h1", "h3", "h5", "h7"], ["h2", "h4", "h6", "h8"]
SECONDS = 0.4  # of steady traffic before and after each change


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("reindex")
    with opened(from_name("fat-tree:4x2"), folder, PUBLISHERS, SUBSCRIBERS) as found:
        yield found


def indexes() -> Iterator[Any]:
    """Two that mean something else by nearly every code, in turn: cut where few events are, and where many are."""
    random = np.random.default_rng(5)
    made = []
    for scale in (20.0, 90.0):
        points = np.floor(np.minimum(255, random.exponential(scale, (2_000, 1))))
        boxes = np.stack((points[:200], points[:200] + 8), axis=-1)
        load = Workload.of_boxes(SCHEMA, points, boxes)
        found = propose(load, summaries(load), Request(bits=8, method="adaptive", select="none"))
        made.append(msgspec.json.decode(to_json(found.index)))
    return cycle(made)


def changes(network: Scene, strategies: list[str]) -> list[dict[str, Any]]:
    """One change after the other while publishers send; what each came to."""
    found = []
    for number, host in enumerate(network.subscribers):
        network.subscribe(host, "some", 30 * number, 100 + 40 * number)
    with network.traffic():
        for strategy, index in zip(strategies, indexes(), strict=False):
            network.steady(SECONDS)
            found.append(network.net.asked("/v1/reindex", {"index": index, "strategy": strategy}))
        network.steady(SECONDS)
    return found


# Over the controller an event may take seconds on a busy machine, longer than a scene waits for any.
IN_TIME = [pytest.param(name, marks=pytest.mark.campaign) if name == "bridge" else name for name in SAFE]


@pytest.mark.parametrize("strategy", IN_TIME)
def test_a_safe_strategy_loses_and_doubles_nothing(strategy: str, network: Scene) -> None:
    done = changes(network, [strategy] * 2)
    assert [one.get("done") for one in done] == [True, True], done
    verdict = network.verdict()
    assert (verdict.lost, verdict.doubled) == ([], []), network.story()
    assert verdict.due > 300, verdict
    network.end()


@pytest.mark.campaign
def test_nothing_is_lost_or_doubled_in_twenty_changes_under_traffic_of_four_publishers(
    network: Scene,
) -> None:
    done = changes(network, list(islice(cycle(SAFE), 20)))
    assert all(one.get("done") for one in done), done
    verdict = network.verdict()
    assert (verdict.lost, verdict.doubled) == ([], []), network.story()
    network.end()


@pytest.mark.campaign
def test_the_witness_sees_what_careless_changes_lose(network: Scene) -> None:
    """The same without care must be caught, or finding nothing would say nothing."""
    changes(network, ["direct"] * 20)
    verdict = network.verdict()
    assert verdict.lost or verdict.doubled, verdict
    network.end()
