"""Style law 5 for the controller: whatever happened, with limits or without, the tables are those of a fresh start."""

from __future__ import annotations

import numpy as np
from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from plerion.content.schema import Number, Schema
from plerion.controller.inputs import (
    Advertise,
    Boxes,
    Input,
    LinkDown,
    LinkUp,
    Subscribe,
    SwitchDown,
    SwitchUp,
    Unadvertise,
    Unsubscribe,
)
from plerion.controller.state import Settings, State, initial
from plerion.controller.step import Admit, Install, Refuse, step
from plerion.flow.admission import Admission
from plerion.flow.compile import compiled
from plerion.flow.diff import apply, diff
from plerion.flow.entry import Tables, no_tables
from plerion.flow.verify import Proof, verify
from plerion.index.cover import Covers
from plerion.index.dzset import DzColumns, DzSet
from plerion.index.propose import regular
from plerion.routing.demand import demands
from plerion.routing.interest import Subscription, SubscriptionId
from plerion.topology import HostId, SwitchId, Topology
from tests.laws.networks import networks

SCHEMA = Schema((Number("x", 0, 15, integer=True), Number("y", 0, 1)))
edges = st.integers(0, 15)
texts = st.one_of(
    st.builds("x BETWEEN {} AND {}".format, edges, edges),
    st.builds("x >= {} AND y < 0.{}".format, edges, edges),
    st.builds("x = {} OR y > 0.{}".format, edges, edges),
    st.builds("NOT (x = {})".format, edges),
    st.sampled_from(("TRUE", "FALSE")),
)
Filter = str | Boxes
written_out: st.SearchStrategy[Filter] = st.builds(
    lambda a, b: (((float(min(a, b)), max(a, b) + 1.0), (0.0, 0.5)),), edges, edges
)
filters: st.SearchStrategy[Filter] = texts | written_out


@st.composite
def deployment_settings(draw: st.DrawFn) -> Settings:
    """Settings with and without limits; a tight limit and many trees force trees to merge."""
    topology = draw(networks())
    limit = draw(st.sampled_from((None, 1, 2, 1, 2)))
    spared = draw(st.frozensets(st.sampled_from(topology.switches), max_size=1))
    limits = {switch: limit for switch in topology.switches if limit and switch not in spared}
    budget, trees = draw(st.sampled_from((8, 3, 1))), draw(st.sampled_from((64, 2, 1)))
    return Settings(topology, regular(SCHEMA, 12), budget, trees, limits)


def fresh(state: State) -> State:
    """A controller that heard only what is live."""
    made = initial(state.settings)
    for received in state.live():
        made, effects = step(made, received)
        assert not any(isinstance(effect, Refuse) for effect in effects)
    return made


def covers_of(state: State) -> tuple[Covers, list[HostId]]:
    cells = list(state.covers.values())
    offsets = np.cumsum([0, *map(len, cells)]).astype(np.int64)
    hosts = [HostId(state.subscriptions[name].host) for name in state.covers]
    return Covers(offsets, DzColumns.of(dz for columns in cells for dz in columns)), hosts


def proven(state: State, tables: Tables) -> Proof:
    sent: dict[HostId, DzSet] = {}
    for announced in state.announced.values():
        sent[announced.host] = sent.get(announced.host, DzSet()) | announced.dz
    return verify(tables, *covers_of(state), sent, state.surviving, state.settings.tcam)


class Histories(RuleBasedStateMachine):
    """Every input there is, in any order; `shown` is what the switches hold, told by diffs alone."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    @initialize(chosen=deployment_settings(), data=st.data(), few=st.integers(1, 4))
    def start(self, chosen: Settings, data: st.DataObject, few: int) -> None:
        self.state = initial(chosen)
        self.topology: Topology = chosen.topology
        self.shown = no_tables(self.state.fabric)
        self.let_in: frozenset[Admission] = frozenset()
        self.received: list[Input] = []
        for _ in range(few):
            self.advertise(data, data.draw(filters))
            self.subscribe(data, data.draw(filters))

    @rule(data=st.data(), text=filters)
    def advertise(self, data: st.DataObject, text: Filter) -> None:
        self._take(Advertise(self._id("a"), data.draw(st.sampled_from(self.topology.hosts)), text))

    @rule(data=st.data(), text=filters)
    def subscribe(self, data: st.DataObject, text: Filter) -> None:
        self._take(Subscribe(self._id("q"), data.draw(st.sampled_from(self.topology.hosts)), text))

    @precondition(lambda self: self.state.advertisements)
    @rule(data=st.data())
    def unadvertise(self, data: st.DataObject) -> None:
        self._take(Unadvertise(data.draw(st.sampled_from(list(self.state.advertisements)))))

    @precondition(lambda self: self.state.subscriptions)
    @rule(data=st.data())
    def unsubscribe(self, data: st.DataObject) -> None:
        self._take(Unsubscribe(data.draw(st.sampled_from(list(self.state.subscriptions)))))

    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        ports = [str(end) for link in self.topology.links for end in link.ends]
        self._take(
            data.draw(
                st.builds(LinkDown, st.sampled_from(ports))
                | st.builds(SwitchDown, st.sampled_from(self.topology.switches))
            )
        )

    @precondition(lambda self: self.state.dead_links or self.state.dead_switches)
    @rule(data=st.data())
    def come_back(self, data: st.DataObject) -> None:
        gone: list[Input] = [LinkUp(str(port)) for port in self.state.dead_links]
        gone += [SwitchUp(switch) for switch in self.state.dead_switches]
        self._take(data.draw(st.sampled_from(gone)))

    @precondition(lambda self: self.received)
    @rule(data=st.data())
    def say_again_what_holds(self, data: st.DataObject) -> None:
        live = list(self.state.live())
        if live:
            before = self.state.table.tables()
            self.state, effects = step(self.state, data.draw(st.sampled_from(live)))
            assert effects == ()
            assert self.state.table.tables() == before

    @invariant()
    def the_state_is_that_of_a_fresh_start(self) -> None:
        again = fresh(self.state)
        assert again.table.tables() == self.shown
        assert again.forest == self.state.forest
        assert again.merged == self.state.merged
        assert list(again.live()) == list(self.state.live())

    @invariant()
    def the_switches_deliver_within_their_limits(self) -> None:
        found = proven(self.state, self.shown)
        assert found, str(found.counter_example)
        assert self.state.table.sizes.tolist() == list(self.shown.sizes().values())
        if not self.state.settings.tcam:
            assert found.unwanted == 0
            assert self.shown == self._definition()

    @invariant()
    def a_port_lets_in_exactly_what_was_advertised_behind_it(self) -> None:
        assert self.let_in == self.state.admitted == fresh(self.state).admitted
        expected: dict[tuple[SwitchId, int], DzSet] = {}
        for announced in self.state.announced.values():
            if self.state.surviving.has_host(announced.host):
                place = self.topology.attachment(announced.host)
                at = (SwitchId(place.node), place.number)
                expected[at] = expected.get(at, DzSet()) | announced.dz
        found: dict[tuple[SwitchId, int], DzSet] = {}
        for one in self.let_in:
            found[one.switch, one.port] = found.get((one.switch, one.port), DzSet()) | DzSet.of([one.dz])
        assert found == {at: dz for at, dz in expected.items() if dz}

    def teardown(self) -> None:
        """The same inputs again give the same effects and the same state: there is no chance and no clock."""
        if hasattr(self, "received"):
            again, shown = initial(self.state.settings), no_tables(self.state.fabric)
            for received in self.received:
                again, effects = step(again, received)
                for effect in effects:
                    if isinstance(effect, Install):
                        shown = apply(effect.change, shown)
            assert shown == self.shown

    def _definition(self) -> Tables:
        asked = [
            Subscription(SubscriptionId(name), HostId(self.state.subscriptions[name].host), DzSet.of(cells))
            for name, cells in self.state.covers.items()
        ]
        return compiled(self.state.fabric, demands(self.state.surviving, self.state.forest, asked))

    def _id(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def _take(self, received: Input) -> None:
        self.received.append(received)
        self.state, effects = step(self.state, received)
        before = self.shown
        for effect in effects:
            if isinstance(effect, Admit):
                assert effect.change.removed <= self.let_in
                assert not effect.change.added & self.let_in
                self.let_in = self.let_in - effect.change.removed | effect.change.added
                continue
            assert isinstance(effect, Install), received
            assert len(effect.change) > 0
            self.shown = apply(effect.change, self.shown)
            if not self.state.settings.tcam:
                assert len(effect.change) == len(diff(before, self.shown))
        assert self.state.table.tables() == self.shown
        if self.state.merged:
            event("limits forced fewer trees")


Histories.TestCase.settings = settings(max_examples=50, stateful_step_count=16, deadline=None)
TestHistories = Histories.TestCase
