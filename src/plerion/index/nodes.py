"""The cells that a cover looks at, as arrays for kernels, and what each of them wastes (`cover` has the theory)."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plerion.index.dzset import Words
from plerion.index.words import after
from plerion.kernel import Int, Word, kernel, lean

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

EXPLORED = 2  # leaves looked at, as a multiple of the budget
NO_NODE = -1
SHARE = 0.5 ** np.arange(129)  # of the space, by the length of a dz


class EventSample(NamedTuple):
    """Sorted codes of events that were seen, by which covers weigh waste; empty if none were."""

    high: Words
    low: Words


class Forest(NamedTuple):
    """Clusters as the kernel sees them, in the order of the index."""

    high: Words  # of the id
    low: Words
    length: Ints
    depth: Ints  # bits after the id
    order: Ints  # (cluster, bit): which of the cluster's rows of the cell plan the bit halves
    size: Ints  # (cluster, bits before, row): how many cell numbers a cell spans
    first_row: Ints
    box: Floats  # (cluster, attribute, [low, high))
    density: Floats  # the share of the events over the share of the codes; 1 where nothing is known of events
    ids: EventSample  # sorted
    below: Floats  # by rank of an id: the share of all clusters before it


class Asked(NamedTuple):
    """What one interest asks of each cluster that it is covered in: ranges of cell numbers."""

    cluster: Ints
    first: Ints  # one more than clusters: where the ranges of each begin
    ranges: Ints  # (range, row, [first, last])


class Nodes(NamedTuple):
    root: Ints  # which of the interest's clusters; NO_NODE for a cell with several in it
    start: Ints  # (node, row): first cell numbers
    high: Words
    low: Words
    length: Ints
    asked: Floats  # how much of the cell is asked for, as a share of the whole space
    waste: Floats
    lower: Ints
    upper: Ints
    parent: Ints


class Workplace(NamedTuple):
    """Room for the nodes that one cover looks at; made once for many covers."""

    nodes: Nodes
    heap: Ints
    saved: Floats


@kernel
def workplace_for(forest: Forest, budget: Int) -> Workplace:
    roots = len(forest.high)
    room = 2 * most_leaves(roots, budget) + roots
    return Workplace(_room(room, forest.size.shape[2]), np.empty(room, np.int64), np.empty(room, np.float64))


@lean
def most_leaves(roots: Int, budget: Int) -> Int:
    """How many leaves are looked at."""
    return max(roots, min(EXPLORED * budget, budget + 4096))


@kernel
def _room(nodes: Int, rows: Int) -> Nodes:
    return Nodes(
        np.empty(nodes, np.int64),
        np.empty((nodes, rows), np.int64),
        np.empty(nodes, np.uint64),
        np.empty(nodes, np.uint64),
        np.empty(nodes, np.int64),
        np.empty(nodes, np.float64),
        np.empty(nodes, np.float64),
        np.empty(nodes, np.int64),
        np.empty(nodes, np.int64),
        np.empty(nodes, np.int64),
    )


@lean
def wasted(forest: Forest, asked: Asked, nodes: Nodes, node: Int, sample: EventSample) -> float:
    """What nobody asks for of the cell's events or, unless they are known, of its share of the space."""
    root = nodes.root[node]
    if root == NO_NODE:
        first, last = _ranks(forest.ids, nodes, node)
        space = forest.below[last] - forest.below[first]
    else:
        space = SHARE[nodes.length[node]] * forest.density[asked.cluster[root]]
    share: Int = max(1.0 - nodes.asked[node] / space, 1e-9)
    if len(sample.high) == 0:
        return float(share * space)
    first, last = _ranks(sample, nodes, node)
    return float(share * (last - first + space))


@lean
def _ranks(sample: EventSample, nodes: Nodes, node: Int) -> tuple[Int, Int]:
    """Which of the sorted keys lie in the cell: from the first to before the second."""
    high, low = after(nodes.high[node], nodes.low[node], nodes.length[node])
    last = len(sample.high) if high == 0 and low == 0 else _rank(sample, high, low)
    return _rank(sample, nodes.high[node], nodes.low[node]), last


@lean
def _rank(sample: EventSample, high: Word, low: Word) -> Int:
    first, last = 0, len(sample.high)
    while first < last:
        middle = (first + last) >> 1
        if sample.high[middle] < high or (sample.high[middle] == high and sample.low[middle] < low):
            first = middle + 1
        else:
            last = middle
    return first
