"""Best-first splitting of cells on whole numbers: the kernel behind `cover`, which holds the theory.

The cells that are looked at form a binary forest, a root a cluster. `_explore` grows it, `join` puts the roots
under the cells that have several clusters in them, and `collapse` takes leaves back to their parents until the
budget suffices. A node is a number; its facts stand in the arrays of `Nodes`.
"""

import numpy as np
import numpy.typing as npt

from plerion.index.collapse import collapse, join, leaves_below
from plerion.index.dzset import Lengths, Words
from plerion.index.nodes import (
    NO_NODE,
    SHARE,
    Asked,
    EventSample,
    Forest,
    Nodes,
    Workplace,
    most_leaves,
    wasted,
)
from plerion.index.words import canonical, pop, push, with_bit
from plerion.kernel import Int, kernel, lean

Ints = npt.NDArray[np.int64]


@kernel
def cover_one(
    forest: Forest, asked: Asked, budget: Int, sample: EventSample, workplace: Workplace
) -> tuple[Words, Words, Lengths]:
    """At most `budget` disjoint cells, in canonical order."""
    roots, nodes, heap = len(asked.cluster), workplace.nodes, workplace.heap
    most = most_leaves(roots, budget)
    used, leaves = _explore(forest, asked, most, sample, nodes, heap)
    top = 0 if roots == 1 else used
    used = join(forest, asked, used, sample, nodes)
    if leaves > budget:
        collapse(nodes, used, leaves - budget, heap, workplace.saved)
    high, low, length = leaves_below(nodes, top, min(leaves, budget), heap)
    found = canonical(high, low, length)
    return high[:found], low[:found], length[:found]


@lean
def _explore(
    forest: Forest, asked: Asked, most: Int, sample: EventSample, nodes: Nodes, heap: Ints
) -> tuple[Int, Int]:
    """Splits the most wasteful leaf until there are enough or none can be split with profit: (nodes, leaves)."""
    used = waiting = 0
    for root in range(len(asked.cluster)):
        c = asked.cluster[root]
        nodes.root[root], nodes.parent[root], nodes.start[root] = root, NO_NODE, 0
        nodes.high[root], nodes.low[root], nodes.length[root] = (
            forest.high[c],
            forest.low[c],
            forest.length[c],
        )
        if _settle(forest, asked, sample, nodes, root):
            waiting = push(heap, nodes.waste, waiting, root)
        used += 1
    leaves = used
    while waiting > 0 and leaves < most:
        node = pop(heap, nodes.waste, waiting)
        waiting -= 1
        for upper in (False, True):
            _child(forest, asked, nodes, node, used, upper)
            if _settle(forest, asked, sample, nodes, used):
                waiting = push(heap, nodes.waste, waiting, used)
            used += 1
        nodes.lower[node], nodes.upper[node] = used - 2, used - 1
        leaves += 1
    return used, leaves


@lean
def _child(forest: Forest, asked: Asked, nodes: Nodes, node: Int, child: Int, upper: bool) -> None:
    """The lower or the upper half of a node."""
    c = asked.cluster[nodes.root[node]]
    length = nodes.length[node]
    nodes.root[child], nodes.parent[child], nodes.length[child] = nodes.root[node], node, length + 1
    for row in range(nodes.start.shape[1]):  # faster than a slice
        nodes.start[child, row] = nodes.start[node, row]
    nodes.high[child], nodes.low[child] = nodes.high[node], nodes.low[node]
    if upper:
        depth = length - forest.length[c]
        row = forest.order[c, depth]
        nodes.start[child, row] += forest.size[c, depth + 1, row]
        nodes.high[child], nodes.low[child] = with_bit(nodes.high[node], nodes.low[node], length)


@lean
def _settle(forest: Forest, asked: Asked, sample: EventSample, nodes: Nodes, node: Int) -> bool:
    """Follows the only half that meets a range as deep as there is one; whether splitting then can save."""
    c = asked.cluster[nodes.root[node]]
    _shrink(forest, asked, nodes, node)
    nodes.lower[node] = NO_NODE
    nodes.asked[node], inside = _overlap(forest, asked, nodes, node)
    nodes.waste[node] = 0.0 if inside else wasted(forest, asked, nodes, node, sample)
    return bool(nodes.length[node] - forest.length[c] < forest.depth[c] and not inside)


@lean
def _shrink(forest: Forest, asked: Asked, nodes: Nodes, node: Int) -> None:
    """The smallest cell with all that is asked of this one."""
    root = nodes.root[node]
    c, one = asked.cluster[root], asked.first[root]
    alone = asked.first[root + 1] == one + 1  # a single range meets every cell that is looked at
    high, low, before = nodes.high[node], nodes.low[node], forest.length[c]
    depth, last = nodes.length[node] - before, forest.depth[c]
    while depth < last:
        row = forest.order[c, depth]
        middle = nodes.start[node, row] + forest.size[c, depth + 1, row]
        if alone:
            lower, upper = asked.ranges[one, row, 0] < middle, asked.ranges[one, row, 1] >= middle
        else:
            lower, upper = _halves_met(forest, asked, nodes, node, depth, row, middle)
        if lower and upper:
            break
        if upper:
            nodes.start[node, row] = middle
            high, low = with_bit(high, low, before + depth)
        depth += 1
    nodes.length[node], nodes.high[node], nodes.low[node] = before + depth, high, low


@lean
def _halves_met(
    forest: Forest, asked: Asked, nodes: Nodes, node: Int, depth: Int, row: Int, middle: Int
) -> tuple[bool, bool]:
    root = nodes.root[node]
    c = asked.cluster[root]
    lower, upper = False, False
    for r in range(asked.first[root], asked.first[root + 1]):
        meets = True
        for k in range(forest.first_row[c + 1] - forest.first_row[c]):
            start = nodes.start[node, k]
            if asked.ranges[r, k, 0] >= start + forest.size[c, depth, k] or asked.ranges[r, k, 1] < start:
                meets = False
                break
        if meets:
            lower |= asked.ranges[r, row, 0] < middle
            upper |= asked.ranges[r, row, 1] >= middle
    return lower, upper


@lean
def _overlap(forest: Forest, asked: Asked, nodes: Nodes, node: Int) -> tuple[float, bool]:
    """How much of the events is asked for in the cell (adjacent ranges may count twice), and if one asks for all."""
    root = nodes.root[node]
    c = asked.cluster[root]
    depth = nodes.length[node] - forest.length[c]
    share, inside = 0.0, False
    for r in range(asked.first[root], asked.first[root + 1]):
        common, all_of_it = 1.0, True  # in the smallest cells that there are
        for k in range(forest.first_row[c + 1] - forest.first_row[c]):
            start, size = nodes.start[node, k], forest.size[c, depth, k]
            first, last = max(asked.ranges[r, k, 0], start), min(asked.ranges[r, k, 1], start + size - 1)
            if first > last:
                common, all_of_it = 0.0, False
                break
            common *= last - first + 1
            all_of_it &= last - first + 1 == size
        share += common
        inside |= all_of_it
    share = min(share * SHARE[forest.length[c] + forest.depth[c]], SHARE[nodes.length[node]])
    return share * forest.density[c], inside
