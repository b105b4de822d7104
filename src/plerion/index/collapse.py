"""Cells of several clusters under common ones, and pairs of cells back into the one that they came from."""

import numpy as np
import numpy.typing as npt

from plerion.index.dzset import Lengths, Words
from plerion.index.nodes import NO_NODE, Asked, EventSample, Forest, Nodes, wasted
from plerion.index.words import common_length, has_bit, masked, pop, push
from plerion.kernel import Int, kernel, lean

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@kernel
def join(forest: Forest, asked: Asked, used: Int, sample: EventSample, nodes: Nodes) -> Int:
    """Puts the roots, which are in the order of their keys, under the smallest cells around several of them."""
    roots = len(asked.cluster)
    if roots == 1:
        return used
    first, last = np.zeros(roots, np.int64), np.zeros(roots, np.int64)  # of the roots below each new node
    last[0] = roots - 1
    nodes.parent[used], made, done = NO_NODE, 1, 0
    while done < made:
        node, begin, end = used + done, first[done], last[done]
        done += 1
        length = common_length(nodes.high[begin], nodes.low[begin], nodes.high[end], nodes.low[end])
        nodes.high[node], nodes.low[node] = masked(nodes.high[begin], nodes.low[begin], length)
        nodes.length[node], nodes.root[node] = length, NO_NODE
        middle = begin + 1
        while not has_bit(nodes.high[middle], nodes.low[middle], length):
            middle += 1
        children = nodes.lower, nodes.upper
        for side in range(2):
            one, other = (begin, middle - 1) if side == 0 else (middle, end)
            child = one
            if one < other:
                child, first[made], last[made] = used + made, one, other
                made += 1
            children[side][node] = child
            nodes.parent[child] = node
    for node in range(used + made - 1, used - 1, -1):
        nodes.asked[node] = nodes.asked[nodes.lower[node]] + nodes.asked[nodes.upper[node]]
        nodes.waste[node] = wasted(forest, asked, nodes, node, sample)
    return used + made


@lean
def collapse(nodes: Nodes, used: Int, surplus: Int, heap: Ints, saved: Floats) -> None:
    """Takes `surplus` pairs of leaves back to their parents, those first whose parents waste least more."""
    waiting = 0
    for node in range(used):
        if _has_two_leaves(nodes, node):
            saved[node] = _saved(nodes, node)
            waiting = push(heap, saved, waiting, node)
    while surplus > 0:
        node = pop(heap, saved, waiting)
        waiting -= 1
        surplus -= 1
        nodes.lower[node] = NO_NODE
        above = nodes.parent[node]
        if above != NO_NODE and _has_two_leaves(nodes, above):
            saved[above] = _saved(nodes, above)
            waiting = push(heap, saved, waiting, above)


@lean
def _has_two_leaves(nodes: Nodes, node: Int) -> bool:
    lower = nodes.lower[node]
    if lower == NO_NODE:
        return False
    return bool(nodes.lower[lower] == NO_NODE and nodes.lower[nodes.upper[node]] == NO_NODE)


@lean
def _saved(nodes: Nodes, node: Int) -> float:
    """What the two leaves below waste less than the node; negated, since heaps give the greatest."""
    return float(nodes.waste[nodes.lower[node]] + nodes.waste[nodes.upper[node]] - nodes.waste[node])


@kernel
def leaves_below(nodes: Nodes, top: Int, count: Int, stack: Ints) -> tuple[Words, Words, Lengths]:
    high, low, length = np.empty(count, np.uint64), np.empty(count, np.uint64), np.empty(count, np.uint8)
    found, waiting = 0, 1
    stack[0] = top
    while waiting > 0:
        waiting -= 1
        node = stack[waiting]
        if nodes.lower[node] == NO_NODE:
            high[found], low[found], length[found] = nodes.high[node], nodes.low[node], nodes.length[node]
            found += 1
        else:
            stack[waiting], stack[waiting + 1] = nodes.upper[node], nodes.lower[node]
            waiting += 2
    return high, low, length
