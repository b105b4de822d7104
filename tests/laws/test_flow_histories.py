"""Style law 5 for the trie: any sequence of changes gives the tables of a fresh start, each by the least diff."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from plerion.flow.compile import compiled
from plerion.flow.diff import Diff, apply, coalesced, diff
from plerion.flow.entry import no_tables
from plerion.flow.fabric import fabric
from plerion.flow.table import NetworkTable
from plerion.flow.trie import FREE_NODE, FREE_RECORD, FREED, NODES, NONE, RECORDS, Trie
from plerion.index.dz import WHOLE, Dz
from plerion.index.dzset import DzColumns, DzSet
from plerion.routing.demand import demands
from plerion.routing.interest import Advertisement, Subscription, SubscriptionId
from plerion.routing.tree import Spanning, forest, sources, spanning
from plerion.topology import SwitchId, Topology
from tests.laws.networks import advertisements, bases, networks, subscriptions, surviving


def chain(first: int, following: list[int]) -> list[int]:
    """A linked list of free places, followed to its end."""
    listed: list[int] = []
    while first != NONE:
        assert first not in listed, "a place is free twice"
        listed.append(first)
        first = following[first]
    return listed


def used_nodes(trie: Trie) -> set[int]:
    """Nodes that hang under the root, with every rule of the trie checked on the way."""
    found, waiting = set[int](), [0]
    while waiting:
        n = waiting.pop()
        found.add(n)
        children = [int(child) for child in trie.child[n] if child != NONE]
        marked = trie.label[n] != NONE or trie.record[n] != NONE
        assert n == 0 or marked or len(children) == 2, "a node without marks has two children"
        assert (trie.record[n] != NONE) == trie.wants[n].any()
        mine = Dz.from_key(int(trie.high[n]), int(trie.low[n]), int(trie.length[n]))
        for side, child in enumerate(trie.child[n].tolist()):
            if child != NONE:
                below = Dz.from_key(int(trie.high[child]), int(trie.low[child]), int(trie.length[child]))
                assert trie.parent[child] == n
                assert mine.child(side).covers(below)
        waiting += children
    return found


class Histories(RuleBasedStateMachine):
    """Subscriptions, advertisements and failures come and go; after each the tables are the defined ones."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Advertisement] = []
        self.asked: list[Subscription] = []
        self.since_start: list[Diff] = []
        self.base = WHOLE

    @initialize(topology=networks(), base=bases, max_trees=st.sampled_from((64, 2, 1)), data=st.data())
    def start(self, topology: Topology, base: Dz, max_trees: int, data: st.DataObject) -> None:
        self.topology, self.alive, self.base, self.max_trees = topology, topology, base, max_trees
        self.fabric = fabric(topology)
        self.table = NetworkTable(self.fabric)
        self.shown = self.empty = no_tables(self.fabric)
        for _ in range(data.draw(st.integers(0, 2))):
            self.advertise(data)
            self.subscribe(data)

    @rule(data=st.data())
    def subscribe(self, data: st.DataObject) -> None:
        self.asked.append(data.draw(subscriptions(self.topology, self.base, len(self.asked))))
        self._check(self.table.subscribe(DzColumns.of(self.asked[-1].dz), self.asked[-1].host))

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def want_what_another_wants_or_more(self, data: st.DataObject) -> None:
        """Cells that meet those of others are where entries depend on each other."""
        cell = data.draw(st.sampled_from(data.draw(st.sampled_from(self.asked)).dz.cells))
        length = data.draw(st.integers(self.base.length, cell.length))
        around = DzSet.of([Dz(cell.bits >> (cell.length - length), length)])
        host = data.draw(st.sampled_from(self.topology.hosts))
        self.asked.append(Subscription(SubscriptionId("near"), host, around))
        self._check(self.table.subscribe(DzColumns.of(around), host))

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def unsubscribe(self, data: st.DataObject) -> None:
        gone = self.asked.pop(data.draw(st.integers(0, len(self.asked) - 1)))
        self._check(self.table.unsubscribe(DzColumns.of(gone.dz), gone.host))

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def subscribe_to_the_same_again(self, data: st.DataObject) -> None:
        self.asked.append(data.draw(st.sampled_from(self.asked)))
        change = self.table.subscribe(DzColumns.of(self.asked[-1].dz), self.asked[-1].host)
        assert len(change) == 0
        self._check(change)

    @rule(data=st.data())
    def advertise(self, data: st.DataObject) -> None:
        self.sent.append(data.draw(advertisements(self.topology, self.base, len(self.sent))))
        self._reroute()

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def unadvertise(self, data: st.DataObject) -> None:
        self.sent.pop(data.draw(st.integers(0, len(self.sent) - 1)))
        self._reroute()

    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        self.alive = data.draw(surviving(self.topology))
        self._reroute()

    @rule()
    def recover(self) -> None:
        self.alive = self.topology
        self._reroute()

    @invariant()
    def the_trie_keeps_its_rules(self) -> None:
        trie = self.table._trie
        nodes, records = int(trie.state[NODES]), int(trie.state[RECORDS])
        used, free = used_nodes(trie), chain(int(trie.state[FREE_NODE]), trie.child[:, 0].tolist())
        assert used.isdisjoint(free)
        assert used | set(free) == set(range(nodes))
        assert all(trie.parent[n] == FREED for n in free)
        in_records = [r for n in used for r in chain(int(trie.record[n]), trie.records[:, 2].tolist())]
        free_records = chain(int(trie.state[FREE_RECORD]), trie.records[:, 2].tolist())
        assert sorted(in_records + free_records) == list(range(records))

    def teardown(self) -> None:
        if not hasattr(self, "table"):
            return
        for gone in self.asked:
            self.table.unsubscribe(DzColumns.of(gone.dz), gone.host)
        self.sent, self.asked = [], []
        self.table.route([], self._spanning, "nothing")
        assert self.table.tables() == self.empty
        assert not self.table.sizes.any()
        assert used_nodes(self.table._trie) == {0}
        self.the_trie_keeps_its_rules()

    def _spanning(self, root: SwitchId) -> Spanning:
        return spanning(self.alive, root, self.fabric.host_number)

    def _reroute(self) -> None:
        grown = forest(self.alive, self.sent, self.max_trees)
        self._check(self.table.route(sources(grown, self.alive), self._spanning, self.alive))

    def _check(self, change: Diff) -> None:
        grown = forest(self.alive, self.sent, self.max_trees)
        after = self.table.tables()
        assert after == compiled(self.fabric, demands(self.alive, grown, self.asked))
        assert apply(change, self.shown) == after
        assert len(change) == len(diff(self.shown, after)), "a change says no more than what changes"
        assert self.table.sizes.tolist() == np.diff(after.first).tolist()
        self.shown = after
        self.since_start.append(change)
        assert apply(coalesced(self.since_start), self.empty) == after


Histories.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestHistories = Histories.TestCase
