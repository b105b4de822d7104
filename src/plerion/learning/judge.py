"""How many deliveries an index makes of a workload: the one number by which candidates are compared.

The wanted pairs do not depend on the index, so they are counted once; then an index costs its covers, its codes and
a binary search for each cell. What is delivered and not wanted is a false positive; what is wanted is always
delivered (law 2), and `matching.evaluate` measures that, too, for the index that is chosen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plerion.index.content_index import ContentIndex
from plerion.index.cover import covers
from plerion.index.encode import encode
from plerion.learning.workload import Workload
from plerion.matching.bitset import match_counts
from plerion.matching.evaluate import runs


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """Rates indexes on one workload; `wanted` is the number of (event, subscription) pairs that match."""

    workload: Workload
    budget: int
    wanted: int

    @classmethod
    def of(cls, workload: Workload, budget: int) -> Judge:
        counts = match_counts(workload.bounds, workload.points)
        return cls(workload, budget, int(counts.sum()))

    def deliveries(self, index: ContentIndex) -> int:
        """(event, subscription) pairs whose code lies in the cover."""
        load = self.workload
        codes = encode(index, load.points).dz
        order = np.lexsort((codes.low, codes.high))
        found = covers(index, load.offsets, load.bounds, self.budget)
        first, last = runs(codes[order], found.dz)
        return int((last - first).sum())

    def rate(self, index: ContentIndex) -> float:
        """The share of what is delivered that nobody asked for."""
        delivered = self.deliveries(index)
        return (delivered - self.wanted) / max(1, delivered)
