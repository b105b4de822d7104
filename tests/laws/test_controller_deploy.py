"""A whole deployment at once is what stepping through its inputs gives, with limits and failures too."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from plerion.content.parse import parse
from plerion.content.read import Interests
from plerion.controller.deploy import deploy
from plerion.controller.inputs import Advertise, Input, LinkDown, Subscribe, SwitchDown
from plerion.controller.state import Settings, initial
from plerion.controller.step import step
from tests.laws.test_controller_histories import SCHEMA, deployment_settings, texts

Rows = Sequence[tuple[str, str, str]]


def interests(rows: Rows) -> Interests:
    return Interests.of(((name, host, parse(text, SCHEMA)) for name, host, text in rows), SCHEMA)


@settings(max_examples=80, deadline=None)
@given(deployment_settings(), st.data())
def test_deploying_at_once_equals_stepping(chosen: Settings, data: st.DataObject) -> None:
    hosts = st.sampled_from(chosen.topology.hosts)
    sent, asked = (
        [(f"{kind}{i}", data.draw(hosts), data.draw(texts)) for i in range(data.draw(st.integers(0, most)))]
        for kind, most in (("a", 3), ("q", 5))
    )
    switches, links = st.sampled_from(chosen.topology.switches), st.sampled_from(chosen.topology.links)
    down = [SwitchDown(name) for name in data.draw(st.lists(switches, max_size=1, unique=True))]
    cut = [LinkDown(str(link.ends[0])) for link in data.draw(st.lists(links, max_size=1))]
    deployed = deploy(chosen, interests(asked), interests(sent), failures=[*down, *cut])
    state = initial(chosen)
    every: list[Input] = [
        *down,
        *cut,
        *(Advertise(*row) for row in sent),
        *(Subscribe(*row) for row in asked),
    ]
    for received in every:
        state, _ = step(state, received)
    assert deployed.tables == state.table.tables()
    assert deployed.state.forest == state.forest
    assert [list(cells) for cells in deployed.covers.sets()] == [list(c) for c in state.covers.values()]
    assert deployed.proof()
