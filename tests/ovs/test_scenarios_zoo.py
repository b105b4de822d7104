"""Scenarios on a network of the Topology Zoo: Abilene, eleven cities."""

from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import pytest

from plerion.topology.read import load
from tests.ovs.network import Scene, Stage
from tests.ovs.scenes import LAWS

pytestmark = pytest.mark.ovs

ABILENE = Path(str(files("topohub"))) / "data" / "topozoo" / "Abilene.json"


@pytest.fixture(scope="module")
def abilene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("abilene")
    with closing(Stage(load(ABILENE), folder, ["h1", "h4"], ["h9", "h6"])) as stage:
        yield stage


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_on_abilene(law: Callable[[Scene], None], abilene: Stage) -> None:
    abilene.carry_out(law)
