"""The step: refusals say why and change nothing, repetitions are accepted and change nothing."""

from __future__ import annotations

from math import inf, nan

import pytest

from plerion.content.box import Box
from plerion.content.schema import Number, Schema
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
from plerion.controller.state import Settings, State, initial
from plerion.controller.step import Admit, Install, Refuse, step
from plerion.flow.diff import apply
from plerion.flow.entry import Tables, no_tables
from plerion.index.content_index import Cluster, ContentIndex
from plerion.index.cuts import equal_cuts
from plerion.index.dz import Dz
from plerion.index.propose import regular
from plerion.topology import SwitchId, line, ring

SCHEMA = Schema((Number("x", 0, 15, integer=True), Number("y", 0, 1)))
SETTINGS = Settings(ring(3), regular(SCHEMA, 8))
DEPLOYED: list[Input] = [
    Advertise("a1", "h1", "TRUE"),
    Subscribe("q2", "h2", "x < 8"),
    Subscribe("q3", "h3", "x < 4 AND y > 0.5"),
]


def stepped(inputs: list[Input], settings: Settings = SETTINGS) -> State:
    state = initial(settings)
    for received in inputs:
        state, effects = step(state, received)
        assert not any(isinstance(effect, Refuse) for effect in effects), effects
    return state


def picture(state: State) -> tuple[object, ...]:
    """All that an input could have changed."""
    return (
        [*state.table.tables().dz],
        state.table.tables().ports.tolist(),
        state.table.exact.nodes,
        state.forest,
        list(state.live()),
        dict(state.announced),
        list(state.covers),
        state.surviving,
    )


REFUSED: list[tuple[Input, str]] = [
    (Subscribe("n", "h9", "TRUE"), "there is no host 'h9' in this network"),
    (Subscribe("n", "s1", "TRUE"), "there is no host 's1' in this network"),
    (Advertise("n", "", "TRUE"), "there is no host '' in this network"),
    (Subscribe("q2", "h2", "x < 9"), "the id 'q2' is taken by another one"),
    (Subscribe("q2", "h3", "x < 8"), "the id 'q2' is taken by another one"),
    (Advertise("a1", "h1", "FALSE"), "the id 'a1' is taken by another one"),
    (Subscribe("n", "h1", "x <"), "x <"),
    (Subscribe("n", "h1", "z < 3"), "z"),
    (Advertise("n", "h1", ""), "filter"),
    (Unsubscribe("q9"), "there is no subscription 'q9'"),
    (Unsubscribe("a1"), "there is no subscription 'a1'"),
    (Unadvertise("q2"), "there is no advertisement 'q2'"),
    (LinkDown("s1"), "s1"),
    (LinkDown("s9:1"), "s9"),
    (LinkDown("s1:77"), "there is no link at 's1:77'"),
    (LinkUp("s1:-1"), "s1:-1"),
    (SwitchDown("h1"), "there is no switch 'h1'"),
    (SwitchUp("s9"), "there is no switch 's9'"),
    (Subscribe("n", "h1", (((0.0, 1.0),),)), "each box needs 2 pairs low < high"),
    (Subscribe("n", "h1", (((0.0, 1.0),) * 3,)), "each box needs 2 pairs low < high"),
    (Subscribe("n", "h1", (((0.0, 1.0), (0.5, 0.5)),)), "each box needs 2 pairs low < high"),
    (Subscribe("n", "h1", (((0.0, 1.0), (0.5, nan)),)), "each box needs 2 pairs low < high"),
    (Subscribe("n", "h1", (((0.0, 1.0), (0.5, 0.6)), ((0.0, 1.0),))), "inhomogeneous"),
]


@pytest.mark.parametrize(("received", "reason"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_what_cannot_be_is_refused_with_a_reason_and_changes_nothing(received: Input, reason: str) -> None:
    state = stepped(DEPLOYED)
    before = picture(state)
    state, effects = step(state, received)
    (refusal,) = effects
    assert isinstance(refusal, Refuse)
    assert reason in refusal.reason
    assert picture(state) == before


def test_the_picture_shows_what_an_accepted_input_changes() -> None:
    state = stepped(DEPLOYED)
    for received in (
        Subscribe("n", "h1", "TRUE"),
        Advertise("n", "h1", "TRUE"),
        LinkDown("s1:1"),
        Unsubscribe("n"),
        SwitchDown("s3"),
    ):
        before = picture(state)
        state, _ = step(state, received)
        assert picture(state) != before


def test_what_already_holds_is_accepted_and_changes_nothing() -> None:
    failures: list[Input] = [LinkDown("s1:1"), SwitchDown("s3")]
    state = stepped([*DEPLOYED, *failures])
    before = picture(state)
    for received in (*DEPLOYED, *failures, LinkUp("s2:2"), SwitchUp("s1")):
        state, effects = step(state, received)
        assert effects == ()
        assert picture(state) == before


def test_a_link_is_the_same_by_either_of_its_ends() -> None:
    state = stepped([*DEPLOYED, LinkDown("s1:1")])
    peer = SETTINGS.topology.peer("s1", 1)
    before = picture(state)
    state, effects = step(state, LinkDown(str(peer)))
    assert effects == ()
    assert picture(state) == before
    state, _ = step(state, LinkUp(str(peer)))
    assert state.surviving == SETTINGS.topology


def clustered() -> ContentIndex:
    """An index that knows only two boxes of the space, which overlap where 4 <= x < 8."""
    x, y = SCHEMA.attributes
    clusters = [
        Cluster(
            Dz.parse(name),
            Box((low, 0.0), (high, 1.0)),
            (0, 0, 1),
            (equal_cuts(x, 2, low, high), equal_cuts(y, 1)),
        )
        for name, low, high in (("0", 0.0, 8.0), ("1", 4.0, 12.0))
    ]
    return ContentIndex(SCHEMA, tuple(clusters))


def test_a_filter_outside_every_cluster_is_refused_and_one_inside_is_taken() -> None:
    settings = Settings(line(2), clustered())
    state = stepped([Advertise("a", "h1", "TRUE")], settings)
    before = picture(state)
    state, (refusal,) = step(state, Subscribe("q", "h2", "x < 12 AND y < 0.5"))
    assert isinstance(refusal, Refuse)
    assert "outside every cluster" in refusal.reason
    assert picture(state) == before
    state, (install,) = step(state, Subscribe("q", "h2", "x >= 8 AND x < 12 AND y >= 0 AND y < 1"))
    assert isinstance(install, Install)
    assert [str(dz) for dz in state.covers["q"]] == ["11"]


def test_filters_that_match_nothing_or_everything_are_taken() -> None:
    state = stepped([Advertise("a", "h1", "FALSE"), Subscribe("q", "h2", "FALSE")])
    assert len(state.table.tables()) == 0
    assert state.forest.trees == ()
    everything = (((-inf, inf), (-inf, inf)),)
    state = stepped([Advertise("a", "h1", everything), Subscribe("q", "h2", everything)])
    assert [str(dz) for dz in state.table.tables().dz] == ["", ""]
    nothing: list[Input] = [Subscribe("n", "h2", ()), Unsubscribe("n")]
    for received in nothing:
        state, effects = step(state, received)
        assert effects == ()


def test_boxes_written_out_mean_what_the_text_means() -> None:
    text = stepped([Advertise("a", "h1", "TRUE"), Subscribe("q", "h2", "x >= 4 AND x < 8 AND y >= 0.5")])
    boxes = (((4.0, 8.0), (0.5, SCHEMA.ends[1])),)
    written_out = stepped([Advertise("a", "h1", "TRUE"), Subscribe("q", "h2", boxes)])
    assert written_out.table.tables() == text.table.tables()


def test_stored_subscriptions_get_their_paths_when_a_tree_appears_or_widens() -> None:
    state = stepped([Subscribe("q", "h3", "TRUE")])
    assert len(state.table.tables()) == 0
    shown = no_tables(state.fabric)
    found = []
    for received in (Advertise("low", "h1", "x < 8"), Advertise("all", "h2", "TRUE")):
        state, (install, admit) = step(state, received)
        assert isinstance(admit, Admit)
        assert isinstance(install, Install)
        shown = apply(install.change, shown)
        found.append(dz_by_switch(shown))
    assert found[0] == {"s1": ["0"], "s2": [], "s3": ["0"]}
    assert found[1] == {"s1": ["0"], "s2": ["0", "1"], "s3": ["0", "1"]}


def dz_by_switch(tables: Tables) -> dict[str, list[str]]:
    return {s: [str(e.dz) for e in tables.entries(s)] for s in tables.fabric.topology.switches}


def test_unadvertising_takes_the_paths_away_and_leaves_those_of_others() -> None:
    both: list[Input] = [Advertise("b", "h2", "x < 8"), Subscribe("q", "h3", "TRUE")]
    state = stepped([Advertise("a", "h1", "TRUE"), *both])
    state, (install, admit) = step(state, Unadvertise("a"))
    assert isinstance(admit, Admit)
    assert not admit.change.added
    assert isinstance(install, Install)
    assert state.table.tables() == stepped(both).table.tables()
    state, _ = step(state, Unadvertise("b"))
    assert len(state.table.tables()) == 0


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"tcam": {SwitchId("s9"): 3}}, "s9"),
        ({"tcam": {SwitchId("s1"): 0}}, "at least 1 entry"),
        ({"max_trees": 0}, "at least 1 tree"),
        ({"budget": 0}, "1 to 65536"),
    ],
)
def test_settings_that_no_network_can_keep_are_refused(wrong: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Settings(SETTINGS.topology, SETTINGS.index, **wrong)  # type: ignore[arg-type]  # wrong on purpose


def test_limits_that_need_fewer_trees_merge_them_and_give_them_back() -> None:
    """Two trees cross every switch of the ring; a table of one entry has room for one tree only."""
    settings = Settings(ring(4), SETTINGS.index, tcam=dict.fromkeys(ring(4).switches, 1))
    inputs: list[Input] = [Advertise("a1", "h1", "x < 8"), Advertise("a3", "h3", "x >= 8")]
    state = stepped(inputs, settings)
    assert (len(state.forest.trees), state.merged) == (2, False)
    for i in range(1, 5):
        state, _ = step(state, Subscribe(f"q{i}", f"h{i}", "TRUE"))
    assert (len(state.forest.trees), state.merged) == (1, True)
    assert max(state.table.tables().sizes().values()) == 1
    for i in range(1, 5):
        state, _ = step(state, Unsubscribe(f"q{i}"))
    assert (len(state.forest.trees), state.merged) == (2, False)
