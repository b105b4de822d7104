"""The trie by itself: growth, counting, and what must not be left behind."""

from __future__ import annotations

import numpy as np
import pytest

from plerion.flow.diff import apply
from plerion.flow.entry import FlowEntry, no_tables, tables_of
from plerion.flow.fabric import fabric
from plerion.flow.table import NetworkTable, UnknownInterest
from plerion.flow.trie import (
    FREE_NODE,
    NODES,
    NONE,
    RECORDS,
    count_down,
    count_up,
    empty_trie,
    find,
    insert,
    prune,
    with_room,
)
from plerion.index.dz import MAX_LENGTH, Dz
from plerion.index.dzset import EVERYTHING, DzColumns, DzSet
from plerion.routing.tree import Source, spanning
from plerion.topology import HostId, SwitchId, Topology, line, ring, star

LINE = line(3)
H1, H2, H3 = LINE.hosts


def routed(topology: Topology, *publishers: HostId) -> NetworkTable:
    table = NetworkTable(fabric(topology))
    route(table, Source(Dz(0, 0), topology.switches[0], frozenset(publishers)))
    return table


def route(table: NetworkTable, *sources: Source) -> None:
    topology, numbers = table.fabric.topology, table.fabric.host_number
    table.route(sources, lambda root: spanning(topology, root, numbers), "whole")


def columns(*texts: str) -> DzColumns:
    return DzColumns.of(DzSet.parse(*texts))


def poison(table: NetworkTable) -> None:
    """What `np.empty` may leave in the room that arrays grow into: the worst that a past use could."""
    trie, used = table._trie, int(table._trie.state[NODES])
    trie.label[used:], trie.record[used:], trie.parent[used:], trie.child[used:] = 3, NONE, 0, NONE
    trie.high[used:], trie.wants[used:] = 1 << 63, 1


def test_room_that_arrays_grew_into_is_never_taken_for_nodes() -> None:
    table = routed(LINE, H1)
    table.subscribe(columns("0", "11"), H3)
    before = table.tables()
    poison(table)
    route(table, Source(Dz(0, 0), LINE.switches[0], frozenset({H1})))
    assert table.tables() == before
    assert table._trie.state[FREE_NODE] == NONE
    poison(table)
    table.subscribe(columns("101"), H2)
    table.unsubscribe(columns("101"), H2)
    assert table.tables() == before


def test_thousands_of_cells_are_entered_found_and_left_without_a_trace() -> None:
    table = routed(LINE, H1)
    shown = table.tables()
    cells = DzColumns.of(Dz(2 * i, 14) for i in range(5000))
    for host in (H3, H2, H3):
        shown = apply(table.subscribe(cells, host), shown)
    assert shown == table.tables()
    assert table.sizes.tolist() == [5000, 5000, 5000]
    high_water = table.nodes
    for host in (H3, H3, H2):
        shown = apply(table.unsubscribe(cells, host), shown)
    assert shown == table.tables() == no_tables(table.fabric)
    table.subscribe(cells, H3)
    assert table.nodes == high_water, "nodes that were given back are used again"


def test_nodes_given_back_are_used_again_round_after_round() -> None:
    table = routed(LINE, H1)
    sizes = []
    for turn in range(5):
        cells = columns(*(f"{i:06b}" for i in range(turn, 64, 5)))
        table.subscribe(cells, H3)
        route(table, *(Source(Dz(i, 3), LINE.switches[0], frozenset({H1})) for i in range(turn, 8, 2)))
        table.unsubscribe(cells, H3)
        sizes.append(table.nodes)
    route(table)
    assert max(sizes) <= 2 * (13 + 4) + 1
    assert int(table._trie.state[RECORDS]) <= 13


def test_a_subscription_that_was_never_made_cannot_be_taken_away_not_even_in_part() -> None:
    table = routed(LINE, H1)
    table.subscribe(columns("0", "10"), H3)
    before = table.tables()
    for cells, host in ((columns("0"), H2), (columns("0", "11"), H3), (columns("00"), H3), (columns(""), H3)):
        with pytest.raises(UnknownInterest, match=f"{host} has no subscription to"):
            table.unsubscribe(cells, host)
        assert table.tables() == before
    table.unsubscribe(columns("0", "10"), H3)
    assert len(table.tables()) == 0
    with pytest.raises(UnknownInterest):
        table.unsubscribe(columns("0", "10"), H3)


def test_the_last_of_several_subscriptions_takes_the_entries_with_it() -> None:
    table = routed(LINE, H1)
    assert len(table.subscribe(columns("01"), H3)) == 3
    for _ in range(3):
        assert len(table.subscribe(columns("01"), H3)) == 0
    for _ in range(3):
        assert len(table.unsubscribe(columns("01"), H3)) == 0
    assert len(table.unsubscribe(columns("01"), H3)) == 3


def test_a_cell_inside_what_the_host_wants_already_changes_nothing_until_the_outer_one_goes() -> None:
    table = routed(LINE, H1)
    table.subscribe(columns("1"), H3)
    assert len(table.subscribe(columns("101"), H3)) == 0
    kinds = [(change.kind.name, str(change.entry.dz)) for change in table.unsubscribe(columns("1"), H3)]
    assert sorted(kinds) == sorted([("DELETE", "1"), ("ADD", "101")] * 3)


def test_what_stays_as_it_was_between_two_changes_is_not_told_again() -> None:
    """h3 wants more around a cell that it and h2 want already: the cell's own entry says the same as before."""
    table = routed(LINE, H1)
    for host in (H2, H3):
        table.subscribe(columns("10"), host)
    (_, middle, _) = LINE.switches
    kinds = {(c.kind.name, str(c.entry.dz)) for c in table.subscribe(columns("1"), H3) if c.switch == middle}
    assert kinds == {("ADD", "1")}


def test_a_wish_above_two_trees_follows_each_along_its_own_way() -> None:
    """On a ring h3 is to be reached clockwise on one tree and the other way round on the other."""
    network = ring(5)
    table = NetworkTable(fabric(network))
    publisher = frozenset({network.hosts[0]})
    route(table, Source(Dz(0, 1), SwitchId("s2"), publisher), Source(Dz(1, 1), SwitchId("s5"), publisher))
    shown = table.tables()
    for text, host in (("00", "h4"), ("10", "h4"), ("01", "h2"), ("11", "h5"), ("", "h3")):
        shown = apply(table.subscribe(columns(text), HostId(host)), shown)
        assert shown == table.tables()
    for text, host in (("", "h3"), ("10", "h4"), ("00", "h4")):
        shown = apply(table.unsubscribe(columns(text), HostId(host)), shown)
        assert shown == table.tables()


def test_of_the_publishers_named_above_a_cell_the_nearest_count() -> None:
    """h1 may send everything, h3 only what lies in 1: what h2 wants of 11 comes from both."""
    table = NetworkTable(fabric(LINE))
    one, both = frozenset({H1}), frozenset({H1, H3})
    route(table, Source(Dz(0, 0), SwitchId("s1"), one), Source(Dz(1, 1), SwitchId("s1"), both))
    change = table.subscribe(columns("11"), H2)
    assert sorted(one.switch for one in change) == ["s1", "s2", "s3"]
    assert apply(change, no_tables(table.fabric)) == table.tables()
    inner = table.subscribe(columns("111"), H2)
    assert len(inner) == 0


def test_cells_at_both_ends_of_a_word_and_of_the_space_are_told_apart() -> None:
    trie = with_room(empty_trie(1), 400)
    cells = [
        Dz(bits, length) for length in (1, 63, 64, 65, 111, MAX_LENGTH) for bits in (0, 1, 2**length - 1)
    ]
    nodes = {}
    for dz in cells:
        high, low = dz.key()
        nodes[dz] = insert(trie, np.uint64(high), np.uint64(low), dz.length)
    assert len(set(nodes.values())) == len(nodes)
    for dz, node in nodes.items():
        high, low = dz.key()
        assert find(trie, np.uint64(high), np.uint64(low), dz.length) == node
        assert insert(trie, np.uint64(high), np.uint64(low), dz.length) == node
    assert find(trie, np.uint64(1 << 62), np.uint64(0), 3) == NONE


def test_pruning_a_node_twice_frees_it_once() -> None:
    trie = with_room(empty_trie(1), 8)
    node = insert(trie, np.uint64(1 << 63), np.uint64(0), 4)
    prune(trie, node)
    prune(trie, node)
    prune(trie, 0)
    assert trie.state[FREE_NODE] == node
    assert trie.child[node, 0] == NONE, "the list of free nodes ends here and is no circle"
    assert trie.child[0].tolist() == [NONE, NONE]


def test_counts_are_kept_host_by_host_and_records_are_used_again() -> None:
    trie = with_room(empty_trie(1), 8)
    node = insert(trie, np.uint64(0), np.uint64(0), 2)
    assert [bool(count_up(trie, node, host)) for host in (5, 6, 7, 6)] == [True, True, True, False]
    assert [bool(count_down(trie, node, host)) for host in (6, 6, 5)] == [False, True, True]
    assert [bool(count_up(trie, node, host)) for host in (1, 2)] == [True, True]
    assert trie.state[RECORDS] == 3
    assert [bool(count_down(trie, node, host)) for host in (7, 2, 1)] == [True, True, True]
    assert trie.record[node] == NONE


def test_publishers_may_change_a_hundred_times_without_labels_piling_up() -> None:
    network = star(6)
    table = routed(network, network.hosts[0])
    table.subscribe(DzColumns.of(EVERYTHING), network.hosts[-1])
    for turn in range(100):
        sources = [
            Source(Dz(i, 2), network.switches[(turn + i) % 7], frozenset({network.hosts[(turn * i) % 6]}))
            for i in range(4)
        ]
        route(table, *sources)
    assert len(table._label_of) <= 8
    assert len(table._labels.behind) <= 16


def test_an_entry_with_a_port_that_its_switch_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match=r"s1 does not have all ports of \[1, 9\]"):
        tables_of(fabric(LINE), {SwitchId("s1"): [FlowEntry(Dz(0, 0), frozenset({1, 9}))]})
