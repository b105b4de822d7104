"""Scenarios on a fat tree of ten switches."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from plerion.topology import from_name
from tests.ovs.network import Scene, Stage
from tests.ovs.scenes import LAWS

pytestmark = pytest.mark.ovs


@pytest.fixture(scope="module")
def fat_tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("fat-tree")
    with closing(Stage(from_name("fat-tree:4x2"), folder, ["h1", "h5"], ["h4", "h8", "h2"])) as stage:
        yield stage


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_on_a_fat_tree(law: Callable[[Scene], None], fat_tree: Stage) -> None:
    fat_tree.carry_out(law)
