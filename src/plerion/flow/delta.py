"""What a change of marks in the trie does to tables: reads the trie, writes changes, alters nothing.

Every function compares two readings of the same nodes, *old* and *new*, that differ in who wants or in the labels.
A node is an entry of switch x in a reading when its ports there differ from its parent's (see `trie`). So a change
is found by looking at the nodes whose own or whose parent's ports can differ, and those lie below the mark that
changed and above the next mark of the same host. The rest of the trie is never visited.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plerion.flow.trie import NONE, Ints, Links, Masks, Trie
from plerion.index.dzset import Lengths, Words
from plerion.kernel import Int, kernel, lean

LEVELS = 128  # more than the bits of a dz, and so than the nodes on any path
ADD, MODIFY, DELETE = 1, 2, 3


class Log(NamedTuple):
    """Changes as they are found. `rows` may exceed the room: then nothing is lost but the tail, grow and repeat."""

    rows: Ints  # one number: how many changes were found
    switch: Ints
    high: Words
    low: Words
    length: Lengths
    kind: npt.NDArray[np.uint8]
    ports: Masks


class Labels(NamedTuple):
    """Hosts behind each slot that a publisher of the label reaches through it, and the slots of each switch."""

    behind: Masks  # (labels, slots, host words)
    first: Ints


class Memory(NamedTuple):
    """Room for one walk down the trie. By level, both readings: hosts wanted and label; then a stack, and a route."""

    wanted: Masks
    label: Links
    nodes: Ints
    levels: Ints
    route: Ints  # by switch: the slot that leads to the host


def log_with_room(rows: int, port_words: int) -> Log:
    return Log(
        np.zeros(1, np.int64),
        np.empty(rows, np.int64),
        np.empty(rows, np.uint64),
        np.empty(rows, np.uint64),
        np.empty(rows, np.uint8),
        np.empty(rows, np.uint8),
        np.zeros((rows, port_words), np.uint64),
    )


@lean
def meets(one: Masks, other: Masks) -> bool:
    for w in range(len(one)):  # noqa: SIM110 - numba compiles no generators
        if one[w] & other[w] != 0:
            return True
    return False


@lean
def _sends(labels: Labels, label: Int, slot: Int, wanted: Masks) -> bool:
    return label != NONE and meets(labels.behind[label, slot], wanted)


@lean
def differs(labels: Labels, x: Int, label_a: Int, wanted_a: Masks, label_b: Int, wanted_b: Masks) -> bool:
    """Whether switch x sends by different ports under two (label, wanted hosts)."""
    for slot in range(labels.first[x], labels.first[x + 1]):
        if _sends(labels, label_a, slot, wanted_a) != _sends(labels, label_b, slot, wanted_b):
            return True
    return False


@lean
def fill_ports(labels: Labels, x: Int, label: Int, wanted: Masks, out: Masks) -> None:
    """The ports of switch x as a set of its slots."""
    out[:] = 0
    begin = labels.first[x]
    for slot in range(begin, labels.first[x + 1]):
        if _sends(labels, label, slot, wanted):
            out[(slot - begin) >> 6] |= np.uint64(1) << np.uint64((slot - begin) & 63)


@lean
def _write(
    trie: Trie, labels: Labels, log: Log, x: Int, n: Int, kind: Int, label: Int, wanted: Masks
) -> None:
    row = log.rows[0]
    log.rows[0] += 1
    if row >= len(log.kind):
        return
    log.switch[row], log.kind[row] = x, kind
    log.high[row], log.low[row], log.length[row] = trie.high[n], trie.low[n], trie.length[n]
    if kind == DELETE:
        log.ports[row] = 0
    else:
        fill_ports(labels, x, label, wanted, log.ports[row])


@lean
def _compare(trie: Trie, labels: Labels, log: Log, x: Int, n: Int, label: Links, wanted: Masks) -> None:
    """The change of switch x at node n; row 0 holds what is above the node, row 1 the node, each (old, new)."""
    had = differs(labels, x, label[1, 0], wanted[1, 0], label[0, 0], wanted[0, 0])
    has = differs(labels, x, label[1, 1], wanted[1, 1], label[0, 1], wanted[0, 1])
    if had and has:
        if differs(labels, x, label[1, 0], wanted[1, 0], label[1, 1], wanted[1, 1]):
            _write(trie, labels, log, x, n, MODIFY, label[1, 1], wanted[1, 1])
    elif has:
        _write(trie, labels, log, x, n, ADD, label[1, 1], wanted[1, 1])
    elif had:
        _write(trie, labels, log, x, n, DELETE, label[1, 1], wanted[1, 1])


@lean
def _wait_for_children(trie: Trie, v: Int, level: Int, nodes: Ints, levels: Ints, waiting: Int) -> Int:
    """Puts the children on the stack, the upper half first: nodes come off in the order of their dz."""
    for side in (1, 0):
        if trie.child[v, side] != NONE:
            nodes[waiting], levels[waiting] = trie.child[v, side], level + 1
            waiting += 1
    return waiting


@lean
def _read(trie: Trie, v: Int, level: Int, wanted: Masks, label: Links) -> None:
    """What holds at a node, from what holds above it and the node's own marks; the same in both readings."""
    for reading in range(2):
        label[level, reading] = trie.label[v] if trie.label[v] != NONE else label[level - 1, 0]
        for w in range(wanted.shape[2]):
            wanted[level, reading, w] = wanted[level - 1, reading, w] | trie.wants[v, w]


@kernel
def flip_all(trie: Trie, labels: Labels, log: Log, nodes: Ints, host: Int) -> None:
    """Logs what happens to tables when the host's marks at these nodes, disjoint cells, are set or all cleared."""
    memory = Memory(
        np.zeros((LEVELS, 2, trie.wants.shape[1]), np.uint64),
        np.empty((LEVELS, 2), np.int32),
        np.empty(2 * LEVELS, np.int64),
        np.empty(2 * LEVELS, np.int64),
        np.empty(len(labels.first) - 1, np.int64),
    )
    for n in nodes:
        _flip(trie, labels, log, n, host, memory)


@lean
def _flip(trie: Trie, labels: Labels, log: Log, n: Int, host: Int, memory: Memory) -> None:
    """The same for one node: its mark is set if it is clear, cleared if it is set."""
    wanted, label, nodes, levels, route = memory
    word, bit = host >> 6, np.uint64(1) << np.uint64(host & 63)
    _look_up(trie, n, wanted[0], label[0])
    if wanted[0, 0, word] & bit != 0:
        return  # wanted above already: neither reading differs below
    nodes[0], levels[0] = n, 1
    waiting: Int = 1
    route[:] = NONE
    known: Int = np.int32(NONE)
    while waiting > 0:
        waiting -= 1
        v, level = nodes[waiting], levels[waiting]
        _read(trie, v, level, wanted, label)
        if v == n:
            wanted[level, 1, word] ^= bit
        same = label[level, 0] == label[level - 1, 0]
        if same and label[level, 0] != known:
            known = label[level, 0]
            _find_route(labels, known, host, route)
        for x in range(len(route)):
            if not same or (
                route[x] != NONE and _toggles(labels, known, route[x], wanted[level - 1 : level + 1])
            ):
                _compare(trie, labels, log, x, v, label[level - 1 : level + 1], wanted[level - 1 : level + 1])
        if v == n or trie.wants[v, word] & bit == 0:
            waiting = _wait_for_children(trie, v, level, nodes, levels, waiting)


@lean
def _toggles(labels: Labels, label: Int, slot: Int, wanted: Masks) -> bool:
    """Whether the one slot that can change does, at the node or above it."""
    behind = labels.behind[label, slot]
    above = meets(behind, wanted[0, 0]) != meets(behind, wanted[0, 1])
    return above or meets(behind, wanted[1, 0]) != meets(behind, wanted[1, 1])


@lean
def _find_route(labels: Labels, label: Int, host: Int, route: Ints) -> None:
    """For each switch the slot that leads to the host, or NONE."""
    word, bit = host >> 6, np.uint64(1) << np.uint64(host & 63)
    for x in range(len(route)):
        route[x] = NONE
        if label != NONE:
            for slot in range(labels.first[x], labels.first[x + 1]):
                if labels.behind[label, slot, word] & bit != 0:
                    route[x] = slot


@lean
def _look_up(trie: Trie, n: Int, wanted: Masks, label: Links) -> None:
    """Hosts wanted above node n (in both readings) and the label that holds there."""
    wanted[:], label[:] = 0, NONE
    above = trie.parent[n]
    while above != NONE:
        for w in range(wanted.shape[1]):
            wanted[0, w] |= trie.wants[above, w]
            wanted[1, w] |= trie.wants[above, w]
        if label[0] == NONE and trie.label[above] != NONE:
            label[:] = trie.label[above]
        above = trie.parent[above]


@kernel
def relabel(trie: Trie, labels: Labels, log: Log, fresh: Links) -> None:
    """Logs what happens to tables when the labels of all nodes become `fresh` (by node)."""
    words = trie.wants.shape[1]
    wanted = np.zeros((LEVELS, 2, words), np.uint64)
    label = np.full((LEVELS, 2), NONE, np.int32)
    nodes, levels = np.zeros(2 * LEVELS, np.int64), np.ones(2 * LEVELS, np.int64)
    waiting: Int = 1
    while waiting > 0:
        waiting -= 1
        v, level = nodes[waiting], levels[waiting]
        label[level, 0] = trie.label[v] if trie.label[v] != NONE else label[level - 1, 0]
        label[level, 1] = fresh[v] if fresh[v] != NONE else label[level - 1, 1]
        for w in range(words):
            wanted[level, :, w] = wanted[level - 1, 0, w] | trie.wants[v, w]
        if label[level, 0] != label[level, 1] or label[level - 1, 0] != label[level - 1, 1]:
            for x in range(len(labels.first) - 1):
                _compare(trie, labels, log, x, v, label[level - 1 : level + 1], wanted[level - 1 : level + 1])
        waiting = _wait_for_children(trie, v, level, nodes, levels, waiting)


@kernel
def list_entries(trie: Trie, labels: Labels, log: Log) -> None:
    """Logs every entry of every switch as an addition, each switch's in the order of their dz."""
    words = trie.wants.shape[1]
    wanted = np.zeros((LEVELS, words), np.uint64)
    label = np.full(LEVELS, NONE, np.int32)
    nodes, levels = np.zeros(2 * LEVELS, np.int64), np.ones(2 * LEVELS, np.int64)
    waiting: Int = 1
    while waiting > 0:
        waiting -= 1
        v, level = nodes[waiting], levels[waiting]
        label[level] = trie.label[v] if trie.label[v] != NONE else label[level - 1]
        for w in range(words):
            wanted[level, w] = wanted[level - 1, w] | trie.wants[v, w]
        for x in range(len(labels.first) - 1):
            if differs(labels, x, label[level], wanted[level], label[level - 1], wanted[level - 1]):
                _write(trie, labels, log, x, v, ADD, label[level], wanted[level])
        waiting = _wait_for_children(trie, v, level, nodes, levels, waiting)
