"""Scenarios on a ring of six switches, where two ways lead everywhere."""

from collections.abc import Callable, Iterator

import pytest

from plerion.topology import from_name
from tests.ovs.network import Scene, scene
from tests.ovs.scenes import LAWS

pytestmark = pytest.mark.ovs


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("ring")
    with scene(from_name("ring:6"), folder, ["h1", "h4"], ["h2", "h6"]) as found:
        yield found


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_on_a_ring(law: Callable[[Scene], None], ring: Scene) -> None:
    try:
        law(ring)
    finally:
        ring.close()
