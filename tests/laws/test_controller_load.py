"""A journal loaded at once is what stepping through it gives; an interest relies on the switches of its paths."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from plerion.controller.inputs import (
    Advertise,
    Input,
    LinkDown,
    LinkUp,
    Subscribe,
    SwitchDown,
    SwitchUp,
    Unadvertise,
    Unsubscribe,
)
from plerion.controller.load import live, loaded
from plerion.controller.outcome import taken
from plerion.controller.reliance import Reliance
from plerion.controller.state import Settings, State, initial
from plerion.controller.step import step, text_regions
from plerion.index.dzset import DzSet
from plerion.routing.demand import demands
from plerion.routing.interest import Subscription, SubscriptionId
from plerion.topology import HostId
from tests.laws.test_controller_histories import SCHEMA, deployment_settings, filters, texts


@st.composite
def histories(draw: st.DrawFn, chosen: Settings) -> list[Input]:
    """Inputs of every kind, few enough names that they meet; some will be refused."""
    topology = chosen.topology
    hosts, names = st.sampled_from(topology.hosts), st.sampled_from(("one", "two", "three"))
    ports = st.sampled_from([str(end) for link in topology.links for end in link.ends])
    switches = st.sampled_from(topology.switches)
    some = st.one_of(
        st.builds(Advertise, names, hosts, filters),
        st.builds(Subscribe, names, hosts, filters),
        st.builds(Subscribe, names, hosts, filters),
        st.builds(Unadvertise, names),
        st.builds(Unsubscribe, names),
        st.builds(LinkDown, ports) | st.builds(LinkUp, ports),
        st.builds(SwitchDown, switches) | st.builds(SwitchUp, switches),
    )
    return draw(st.lists(some, max_size=14))


def accepted(state: State, inputs: list[Input]) -> tuple[State, list[Input]]:
    kept = []
    for received in inputs:
        state, outcome = taken(state, received)
        if outcome.reason is None:
            kept.append(received)
    return state, kept


@settings(max_examples=120, deadline=None)
@given(deployment_settings(), st.data(), st.booleans())
def test_loading_a_journal_equals_stepping_through_it(
    chosen: Settings, data: st.DataObject, kept_boxes: bool
) -> None:
    state, journal = accepted(initial(chosen), data.draw(histories(chosen)))
    kept = {one.filter for one in journal if isinstance(one, Advertise | Subscribe)} if kept_boxes else set()
    found, lost = loaded(
        chosen, live(journal), lambda text: text_regions(text, SCHEMA) if text in kept else None
    )
    assert lost == {}
    assert list(found.live()) == list(state.live())
    assert found.table.tables() == state.table.tables()
    assert found.forest == state.forest
    assert found.admitted == state.admitted
    assert found.merged == state.merged


@settings(max_examples=120, deadline=None)
@given(deployment_settings(), st.data(), texts)
def test_what_was_loaded_goes_on_like_what_was_stepped(
    chosen: Settings, data: st.DataObject, text: str
) -> None:
    state, journal = accepted(initial(chosen), data.draw(histories(chosen)))
    found, _ = loaded(chosen, live(journal))
    more = Subscribe("more", data.draw(st.sampled_from(chosen.topology.hosts)), text)
    state, _ = step(state, more)
    found, _ = step(found, more)
    assert found.table.tables() == state.table.tables()


@settings(max_examples=120, deadline=None)
@given(deployment_settings(), st.data())
def test_what_an_input_did_its_undoing_takes_back(chosen: Settings, data: st.DataObject) -> None:
    state, _ = accepted(initial(chosen), data.draw(histories(chosen)))
    before, admitted = state.table.tables(), state.admitted
    kinds: tuple[type[Subscribe] | type[Advertise], ...] = (Subscribe, Advertise)
    last = data.draw(st.sampled_from(kinds))("last", chosen.topology.hosts[0], "TRUE")
    state, outcome = taken(state, last)
    assert outcome.undo is not None
    state, back = taken(state, outcome.undo)
    assert back.reason is None
    assert (state.table.tables(), state.admitted) == (before, admitted)


@settings(max_examples=150, deadline=None)
@given(deployment_settings(), st.data())
def test_a_subscription_relies_on_exactly_the_switches_that_its_events_cross(
    chosen: Settings, data: st.DataObject
) -> None:
    state, _ = accepted(initial(chosen), data.draw(histories(chosen)))
    every = frozenset(chosen.topology.switches)
    for asked in state.subscriptions.values():
        cells = DzSet.of(state.covers[asked.id])
        one = Subscription(SubscriptionId(asked.id), HostId(asked.host), cells)
        crossed = {demand.switch for demand in demands(state.surviving, state.forest, [one])}
        assert Reliance(state).of(asked, every) == crossed
        assert Reliance(state).of(asked, every - crossed) == frozenset()
