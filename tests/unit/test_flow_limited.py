"""Limits on switches whose ports fill whole words."""

import pytest

from plerion.content.schema import Number, Schema
from plerion.controller.inputs import Advertise, Input, Subscribe
from plerion.controller.state import Settings, initial
from plerion.controller.step import Admit, Install, step
from plerion.flow.diff import apply
from plerion.flow.entry import no_tables
from plerion.index.propose import regular
from plerion.topology.generate import star
from plerion.topology.graph import SwitchId

SPACE = Schema((Number("x", 0, 255, integer=True),))


@pytest.mark.parametrize("leaves", [62, 63, 64, 127, 128])
def test_a_switch_that_fills_up_is_told_all_that_changed(leaves: int) -> None:
    """The last host's subscription both completes a set of 64 or 128 ports and takes the table over its limit."""
    network = star(leaves)
    state = initial(Settings(network, regular(SPACE, 8), tcam={SwitchId("s1"): 2}))
    shown = no_tables(state.fabric)
    wide = [Subscribe(f"q-{host}", host, "x < 128") for host in network.hosts[:-1]]
    last = Subscribe("last", network.hosts[-1], "x < 128 OR x = 130 OR x = 140 OR x = 150")
    inputs: list[Input] = [
        Advertise("a", network.hosts[1], "TRUE"),
        Advertise("b", network.hosts[2], "TRUE"),
        *wide,
        last,
    ]
    for received in inputs:
        state, effects = step(state, received)
        for effect in effects:
            if isinstance(effect, Admit):
                continue
            assert isinstance(effect, Install)
            shown = apply(effect.change, shown)
    assert shown == state.table.tables()
    assert shown.sizes()[SwitchId("s1")] <= 2
