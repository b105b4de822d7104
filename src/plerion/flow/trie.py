"""One trie for the whole network, from which every table follows.

The definition (`compile`) makes a table from the demands at its switch. Demands are many: one for each publisher,
subscriber, dz and hop. But they have a form. On a tree, the port by which a switch sends towards a host does not
depend on the subscription, and whether a demand exists at all depends only on who may send and who wants. So one
binary trie over dz carries two marks, and no demand is ever written down:

* *wants*: the hosts that subscribed to exactly this dz, each with the number of its subscriptions;
* *label*: from here down, these publishers may send and this tree carries it (`routing.tree.Source`).

Let W(n) be all hosts wanted at n or above it and L(n) the nearest label at n or above. A label knows, for each
slot (port of a switch), the hosts behind it that some publisher reaches through it; slot q sends at n exactly when
that set meets W(n). Call the ports of switch x so found P(x, n). Then the entries of x are the nodes n with
P(x, n) different from P(x, parent of n): any other node says what its nearest shorter one says.

Rules of this file: a node without marks and with fewer than two children does not exist (but the root does);
adding or removing a node without marks changes no table. Nodes live in arrays that Python grows between calls,
`state` holds the few numbers that change. `delta` computes what a change of marks does to tables.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plerion.index.dzset import Lengths, Words
from plerion.index.words import masked
from plerion.kernel import Int, Word, lean

Ints = npt.NDArray[np.int64]
Links = npt.NDArray[np.int32]
Masks = npt.NDArray[np.uint64]

NODES, FREE_NODE, RECORDS, FREE_RECORD = 0, 1, 2, 3  # places in `state`
NONE = -1
FREED = -2  # the parent of a node that is not in use


class Trie(NamedTuple):
    """The arrays. Node 0 is the whole space; `child` is (nodes, 2); `records` is (host, count, next)."""

    state: Ints
    high: Words
    low: Words
    length: Lengths
    child: Links
    parent: Links
    label: Links
    wants: Masks  # (nodes, host words)
    record: Links  # by node: its first record
    records: Links


def empty_trie(host_words: int, room: int = 1024) -> Trie:
    return Trie(
        np.array([1, NONE, 0, NONE], np.int64),
        np.zeros(room, np.uint64),
        np.zeros(room, np.uint64),
        np.zeros(room, np.uint8),
        np.full((room, 2), NONE, np.int32),
        np.full(room, NONE, np.int32),
        np.full(room, NONE, np.int32),
        np.zeros((room, host_words), np.uint64),
        np.full(room, NONE, np.int32),
        np.full((room, 3), NONE, np.int32),
    )


def with_room(trie: Trie, cells: int) -> Trie:
    """The same trie with room for `cells` more insertions; arrays double, so growth is paid once a node."""
    nodes, records = int(trie.state[NODES]) + 2 * cells, int(trie.state[RECORDS]) + cells
    if nodes <= len(trie.high) and records <= len(trie.records):
        return trie
    by_node = {name: len(trie.high) < nodes for name in Trie._fields[1:-1]} | {
        "records": len(trie.records) < records
    }
    needed = {"records": records}
    grown = {
        name: _doubled(getattr(trie, name), needed.get(name, nodes))
        for name, short in by_node.items()
        if short
    }
    return trie._replace(**grown)


def _doubled(array: npt.NDArray[Any], room: int) -> Any:
    larger = np.empty((max(room, 2 * len(array)), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


@lean
def _bit(high: Word, low: Word, place: Int) -> Int:
    if place < 64:
        return np.int64((high >> np.uint64(63 - place)) & np.uint64(1))
    return np.int64((low >> np.uint64(127 - place)) & np.uint64(1))


@lean
def _common_bits(a_high: Word, a_low: Word, b_high: Word, b_low: Word) -> Int:
    """How many leading bits two keys share."""
    differing, common = a_high ^ b_high, 0
    if differing == 0:
        differing, common = a_low ^ b_low, 64
        if differing == 0:
            return 128
    for step in (32, 16, 8, 4, 2, 1):
        if differing >> np.uint64(64 - step) == 0:
            common += step
            differing <<= np.uint64(step)
    return common


@lean
def _node(trie: Trie, high: Word, low: Word, length: Int, parent: Int) -> Int:
    """A fresh node without marks, hung under `parent`."""
    n: Int = trie.state[FREE_NODE]
    if n == NONE:
        n = trie.state[NODES]
        trie.state[NODES] += 1
    else:
        trie.state[FREE_NODE] = trie.child[n, 0]
    trie.high[n], trie.low[n] = masked(high, low, length)
    trie.length[n] = length
    trie.child[n, 0] = trie.child[n, 1] = NONE
    trie.label[n] = trie.record[n] = NONE
    trie.wants[n] = 0
    trie.parent[n] = parent
    trie.child[parent, _bit(high, low, np.int64(trie.length[parent]))] = n
    return n


@lean
def _hang(trie: Trie, n: Int, parent: Int) -> None:
    trie.parent[n] = parent
    trie.child[parent, _bit(trie.high[n], trie.low[n], np.int64(trie.length[parent]))] = n


@lean
def find(trie: Trie, high: Word, low: Word, length: Int) -> Int:
    """The node of this dz, or NONE."""
    n = 0
    while n != NONE and trie.length[n] < length:
        n = trie.child[n, _bit(high, low, np.int64(trie.length[n]))]
    if n == NONE or trie.length[n] != length or trie.high[n] != high or trie.low[n] != low:
        return NONE
    return n


@lean
def insert(trie: Trie, high: Word, low: Word, length: Int) -> Int:
    """The node of this dz, made if need be; at most two nodes are added."""
    n = 0
    while trie.length[n] < length:
        below = trie.child[n, _bit(high, low, np.int64(trie.length[n]))]
        if below == NONE:
            return _node(trie, high, low, length, n)
        common = min(_common_bits(high, low, trie.high[below], trie.low[below]), length)
        if common >= trie.length[below]:
            n = below
            continue
        between = _node(trie, high, low, common, n)
        _hang(trie, below, between)
        return between if common == length else _node(trie, high, low, length, between)
    return n


@lean
def prune(trie: Trie, n: Int) -> None:
    """Takes the node and, if need be, its parent away where they have neither marks nor two children."""
    while n > 0 and trie.parent[n] != FREED and trie.record[n] == NONE and trie.label[n] == NONE:
        if trie.child[n, 0] != NONE and trie.child[n, 1] != NONE:
            return
        only = max(trie.child[n, 0], trie.child[n, 1])
        parent = trie.parent[n]
        if only == NONE:
            trie.child[parent, _bit(trie.high[n], trie.low[n], np.int64(trie.length[parent]))] = NONE
        else:
            _hang(trie, only, parent)
        trie.child[n, 0] = trie.state[FREE_NODE]
        trie.state[FREE_NODE] = n
        trie.parent[n] = FREED
        n = parent


@lean
def count_up(trie: Trie, n: Int, host: Int) -> bool:
    """One more subscription of the host to this very dz; whether it is the first. Leaves `wants` alone."""
    r = trie.record[n]
    while r != NONE:
        if trie.records[r, 0] == host:
            trie.records[r, 1] += 1
            return False
        r = trie.records[r, 2]
    r = trie.state[FREE_RECORD]
    if r == NONE:
        r = trie.state[RECORDS]
        trie.state[RECORDS] += 1
    else:
        trie.state[FREE_RECORD] = trie.records[r, 2]
    trie.records[r, 0], trie.records[r, 1], trie.records[r, 2] = host, 1, trie.record[n]
    trie.record[n] = r
    return True


@lean
def count_down(trie: Trie, n: Int, host: Int) -> bool:
    """One subscription fewer; whether it was the last. Leaves `wants` alone."""
    before: Int = NONE
    r = trie.record[n]
    while trie.records[r, 0] != host:
        before, r = r, trie.records[r, 2]
    trie.records[r, 1] -= 1
    if trie.records[r, 1] > 0:
        return False
    if before == NONE:
        trie.record[n] = trie.records[r, 2]
    else:
        trie.records[before, 2] = trie.records[r, 2]
    trie.records[r, 2] = trie.state[FREE_RECORD]
    trie.state[FREE_RECORD] = r
    return True
