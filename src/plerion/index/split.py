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
from plerion.kernel import Int, Word, kernel

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
    used = join(roots, used, sample, nodes)
    if leaves > budget:
        collapse(nodes, used, leaves - budget, heap, workplace.saved)
    high, low, length = leaves_below(nodes, top, min(leaves, budget), heap)
    found = canonical(high, low, length)
    return high[:found], low[:found], length[:found]


@kernel
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


@kernel
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


@kernel
def _settle(forest: Forest, asked: Asked, sample: EventSample, nodes: Nodes, node: Int) -> bool:
    """Follows the only half that meets a range as deep as there is one; whether splitting then can save."""
    root = nodes.root[node]
    c = asked.cluster[root]
    ranges = asked.ranges[asked.first[root] : asked.first[root + 1]]
    rows: Int = forest.first_row[c + 1] - forest.first_row[c]
    depth, high, low = _shrink(
        ranges,
        nodes.start[node],
        forest.order[c, : forest.depth[c]],
        forest.size[c],
        rows,
        forest.length[c],
        nodes.length[node] - forest.length[c],
        nodes.high[node],
        nodes.low[node],
    )
    nodes.length[node], nodes.high[node], nodes.low[node] = forest.length[c] + depth, high, low
    nodes.lower[node] = NO_NODE
    share, inside = _overlap(ranges, nodes.start[node], forest.size[c, depth], rows)
    nodes.asked[node] = share * SHARE[nodes.length[node]]
    nodes.waste[node] = 0.0 if inside else wasted(nodes, node, sample)
    return bool(depth < forest.depth[c] and not inside)


@kernel
def _shrink(
    ranges: Ints,
    start: Ints,
    order: Ints,
    size: Ints,
    rows: Int,
    before: Int,
    depth: Int,
    high: Word,
    low: Word,
) -> tuple[Int, Word, Word]:
    """The smallest cell with all that is asked of this one; `start` follows. Plain arguments: this is hot."""
    alone = len(ranges) == 1  # a single range meets every cell that is looked at
    while depth < len(order):
        row = order[depth]
        middle = start[row] + size[depth + 1, row]
        if alone:
            lower, upper = ranges[0, row, 0] < middle, ranges[0, row, 1] >= middle
        else:
            lower, upper = _halves_met(ranges, start, size[depth], rows, row, middle)
        if lower and upper:
            break
        if upper:
            start[row] = middle
            high, low = with_bit(high, low, before + depth)
        depth += 1
    return depth, high, low


@kernel
def _halves_met(ranges: Ints, start: Ints, size: Ints, rows: Int, row: Int, middle: Int) -> tuple[bool, bool]:
    lower, upper = False, False
    for r in range(len(ranges)):
        meets = True
        for k in range(rows):
            if ranges[r, k, 0] >= start[k] + size[k] or ranges[r, k, 1] < start[k]:
                meets = False
                break
        if meets:
            lower |= ranges[r, row, 0] < middle
            upper |= ranges[r, row, 1] >= middle
    return lower, upper


@kernel
def _overlap(ranges: Ints, start: Ints, size: Ints, rows: Int) -> tuple[float, bool]:
    """The share of the cell that is asked for (adjacent ranges may count twice), and if one asks for all."""
    share, inside = 0.0, False
    for r in range(len(ranges)):
        common, all_of_it = 1.0, True
        for k in range(rows):
            first = max(ranges[r, k, 0], start[k])
            last = min(ranges[r, k, 1], start[k] + size[k] - 1)
            if first > last:
                common, all_of_it = 0.0, False
                break
            common *= (last - first + 1) / size[k]
            all_of_it &= last - first + 1 == size[k]
        share += common
        inside |= all_of_it
    return min(share, 1.0), inside
