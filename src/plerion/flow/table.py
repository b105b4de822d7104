"""The tables of a whole network, kept up to date as interests come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from plerion.flow import delta
from plerion.flow.delta import Labels, Log, log_with_room
from plerion.flow.diff import Diff, no_change
from plerion.flow.entry import Tables
from plerion.flow.fabric import Fabric
from plerion.flow.trie import (
    NODES,
    NONE,
    Trie,
    count_down,
    count_up,
    empty_trie,
    find,
    insert,
    prune,
    with_room,
)
from plerion.index.cover import Covers
from plerion.index.dzset import DzColumns, Lengths, Words
from plerion.kernel import Int, kernel, lean
from plerion.routing.tree import Source, Spanning
from plerion.topology.graph import HostId, NodeId, SwitchId

Ints = npt.NDArray[np.int64]


class UnknownInterest(KeyError):  # noqa: N818 - reads as what it is
    """Asked to take away a subscription that was never put in."""


class NetworkTable:
    """All tables of a network as one trie (see `trie`); every change answers with the diff that it makes.

    A subscription costs what it changes: cells that its host asks for already cost a look-up each. Changes of
    publishers or of the topology cost one pass over the trie. The tables themselves are made on request.
    """

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.sizes = np.zeros(fabric.switches, np.int64)
        self._trie = empty_trie(fabric.host_words)
        self._labels = Labels(np.zeros((4, len(fabric.port), fabric.host_words), np.uint64), fabric.first)
        self._label_of: dict[tuple[object, ...], int] = {}
        self._log = log_with_room(1024, fabric.port_words)

    def subscribe(self, dz: DzColumns, host: HostId) -> Diff:
        """The host wants one subscription's cells, which are disjoint."""
        number = self.fabric.host_number[host]
        self._trie = with_room(self._trie, len(dz))
        first = _enter(self._trie, dz.high, dz.low, dz.length, number)
        if not len(first):
            return no_change(self.fabric)
        change = self._logged(lambda log: delta.flip_all(self._trie, self._labels, log, first, number))
        _set_wants(self._trie, first, number)
        return change

    def unsubscribe(self, dz: DzColumns, host: HostId) -> Diff:
        """The same cells no more; they must have been put in for this host."""
        number = self.fabric.host_number[host]
        nodes = _find_all(self._trie, dz.high, dz.low, dz.length, number)
        if len(nodes) and nodes.min() == NONE:
            raise UnknownInterest(
                f"{host} has no subscription to {str(dz.dz(int(nodes.argmin()))) or 'the whole space'}"
            )
        last = _leave(self._trie, nodes, number)
        change = self._logged(lambda log: delta.flip_all(self._trie, self._labels, log, last, number))
        _clear_wants(self._trie, last, number)
        return change

    def load(self, covers: Covers, hosts: Iterable[HostId]) -> None:
        """Many subscriptions at once, when nobody waits for the diff."""
        numbers = np.fromiter((self.fabric.host_number[host] for host in hosts), np.int64, len(covers))
        self._trie = with_room(self._trie, len(covers.dz))
        _enter_many(self._trie, covers.offsets, covers.dz.high, covers.dz.low, covers.dz.length, numbers)
        self.sizes = np.diff(self.tables().first)

    def route(
        self, sources: Iterable[Source], spanning: Callable[[SwitchId], Spanning], version: object
    ) -> Diff:
        """Publishers and trees are now these; `version` names the surviving topology that `spanning` speaks of."""
        listed = list(sources)
        ids = self._label_ids(listed, spanning, version)
        columns = DzColumns.of(source.dz for source in listed)
        self._trie = with_room(self._trie, len(columns))
        fresh = np.full(len(self._trie.high), NONE, np.int32)
        _place(self._trie, columns.high, columns.low, columns.length, ids, fresh)
        change = self._logged(lambda log: delta.relabel(self._trie, self._labels, log, fresh))
        _set_labels(self._trie, fresh)
        return change

    def tables(self) -> Tables:
        """All entries of all switches now. Linear in the trie."""
        log = self._filled(lambda log: delta.list_entries(self._trie, self._labels, log))
        rows = int(log.rows[0])
        order = np.argsort(log.switch[:rows], kind="stable")
        first = np.searchsorted(log.switch[:rows][order], np.arange(self.fabric.switches + 1))
        dz = DzColumns(log.high[order], log.low[order], log.length[order])
        return Tables(self.fabric, first.astype(np.int64), dz, log.ports[order])

    @property
    def nodes(self) -> int:
        """Nodes of the trie ever in use at once; what memory grows with."""
        return int(self._trie.state[0])

    def _filled(self, work: Callable[[Log], None]) -> Log:
        """Runs `work`, again with more room as long as it finds more changes than the log holds."""
        while True:
            self._log.rows[0] = 0
            work(self._log)
            if self._log.rows[0] <= len(self._log.kind):
                return self._log
            self._log = log_with_room(2 * int(self._log.rows[0]), self.fabric.port_words)

    def _logged(self, work: Callable[[Log], None]) -> Diff:
        log = self._filled(work)
        rows = int(log.rows[0])
        if rows == 0:
            return no_change(self.fabric)
        kind, switch = log.kind[:rows].copy(), log.switch[:rows].copy()
        np.add.at(self.sizes, switch, _GROWTH[kind])
        dz = DzColumns(log.high[:rows].copy(), log.low[:rows].copy(), log.length[:rows].copy())
        return Diff(self.fabric, switch, dz, kind, log.ports[:rows].copy())

    def _label_ids(
        self, sources: list[Source], spanning: Callable[[SwitchId], Spanning], version: object
    ) -> npt.NDArray[np.int32]:
        """The label of each source. Ids that neither the old nor the new sources use are given out again."""
        keys = [(source.root, source.publishers, version) for source in sources]
        in_use = set(np.unique(self._trie.label[: self.nodes]).tolist())
        wanted = set(keys)
        kept = {key: i for key, i in self._label_of.items() if i in in_use or key in wanted}
        taken = set(kept.values())
        free = iter(i for i in range(len(kept) + len(keys)) if i not in taken)
        for key, source in zip(keys, sources, strict=True):
            if key not in kept:
                kept[key] = next(free)
                self._write_label(kept[key], source, spanning(source.root))
        self._label_of = kept
        return np.array([kept[key] for key in keys], np.int32)

    def _write_label(self, label: int, source: Source, behind: Spanning) -> None:
        publishers = sum(1 << self.fabric.host_number[host] for host in source.publishers)
        if label >= len(self._labels.behind):
            more = np.zeros((2 * label, *self._labels.behind.shape[1:]), np.uint64)
            more[: len(self._labels.behind)] = self._labels.behind
            self._labels = self._labels._replace(behind=more)
        words = np.zeros((len(self.fabric.port), self.fabric.host_words), np.uint64)
        # All ports of a switch together lead to the hosts of its part of the network.
        reached: dict[NodeId, int] = {}
        for port, mask in behind.items():
            reached[port.node] = reached.get(port.node, 0) | mask
        for port, mask in behind.items():
            if publishers & reached[port.node] & ~mask:  # someone on the near side sends through this port
                words[self.fabric.slot(port)] = np.frombuffer(
                    mask.to_bytes(8 * words.shape[1], "little"), "<u8"
                )
        self._labels.behind[label] = words


_GROWTH = np.array([0, 1, 0, -1])  # by Kind


@kernel
def _enter(trie: Trie, high: Words, low: Words, length: Lengths, host: Int) -> Ints:
    """Nodes where the host's first subscription arrives."""
    first = np.empty(len(high), np.int64)
    found = 0
    for i in range(len(high)):
        n = insert(trie, high[i], low[i], np.int64(length[i]))
        if count_up(trie, n, host):
            first[found] = n
            found += 1
    return first[:found]


@kernel
def _enter_many(trie: Trie, offsets: Ints, high: Words, low: Words, length: Lengths, hosts: Ints) -> None:
    for i in range(len(hosts)):
        begin, end = offsets[i], offsets[i + 1]
        _set_wants(trie, _enter(trie, high[begin:end], low[begin:end], length[begin:end], hosts[i]), hosts[i])


@kernel
def _find_all(trie: Trie, high: Words, low: Words, length: Lengths, host: Int) -> Ints:
    """The nodes of the cells; NONE where the host wants no such cell."""
    nodes = np.empty(len(high), np.int64)
    word, bit = host >> 6, np.uint64(1) << np.uint64(host & 63)
    for i in range(len(high)):
        nodes[i] = find(trie, high[i], low[i], np.int64(length[i]))
        if nodes[i] != NONE and trie.wants[nodes[i], word] & bit == 0:
            nodes[i] = NONE
    return nodes


@kernel
def _leave(trie: Trie, nodes: Ints, host: Int) -> Ints:
    """Nodes that the host's last subscription leaves."""
    last = np.empty(len(nodes), np.int64)
    found = 0
    for n in nodes:
        if count_down(trie, n, host):
            last[found] = n
            found += 1
    return last[:found]


@lean
def _set_wants(trie: Trie, nodes: Ints, host: Int) -> None:
    for n in nodes:
        trie.wants[n, host >> 6] |= np.uint64(1) << np.uint64(host & 63)


@lean
def _clear_wants(trie: Trie, nodes: Ints, host: Int) -> None:
    for n in nodes:
        trie.wants[n, host >> 6] &= ~(np.uint64(1) << np.uint64(host & 63))
        prune(trie, n)


@lean
def _place(
    trie: Trie,
    high: Words,
    low: Words,
    length: Lengths,
    ids: npt.NDArray[np.int32],
    fresh: npt.NDArray[np.int32],
) -> None:
    for i in range(len(high)):
        fresh[insert(trie, high[i], low[i], np.int64(length[i]))] = ids[i]


@kernel
def _set_labels(trie: Trie, fresh: npt.NDArray[np.int32]) -> None:
    """Takes the new labels over; nodes that lose their only mark go. Past the nodes in use arrays hold anything."""
    used = trie.state[NODES]
    stale = np.flatnonzero((trie.label[:used] != NONE) & (fresh[:used] == NONE))
    trie.label[:] = fresh
    for n in stale:
        prune(trie, n)
