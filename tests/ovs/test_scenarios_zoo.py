"""Scenarios on a network of the Topology Zoo: Abilene, eleven cities."""

from collections.abc import Callable, Iterator

import pytest

from plerion.topology.read import load
from tests.architecture.repository import ROOT
from tests.ovs.network import Scene, scene
from tests.ovs.scenes import LAWS

pytestmark = [pytest.mark.ovs, pytest.mark.campaign]

TOPOLOGIES = ROOT.parent / "shared" / "data" / "topologies"


@pytest.fixture(scope="module")
def abilene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("abilene")
    with scene(load(TOPOLOGIES / "zoo_Abilene.graphml"), folder, ["h1", "h4"], ["h9", "h6"]) as found:
        yield found


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_on_abilene(law: Callable[[Scene], None], abilene: Scene) -> None:
    try:
        law(abilene)
    finally:
        abilene.close()
