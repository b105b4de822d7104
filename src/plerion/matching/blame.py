"""Which attributes let the false positives through.

A false positive *misses* on an attribute when the event lies in none of the intervals that the interest's boxes have
there. A bit spent on such an attribute could have kept it out. A pair that is wanted misses on none, so it is enough
to look at all deliveries: no match is needed. With several boxes a false positive may miss on no single attribute.
"""

from __future__ import annotations

import numpy as np

from plerion.index.cover import Covers
from plerion.index.encode import Codes
from plerion.kernel import kernel
from plerion.matching.evaluate import runs
from plerion.matching.matcher import Floats, Ints


def misses(points: Floats, codes: Codes, covers: Covers, offsets: Ints, bounds: Floats) -> Ints:
    """By attribute, how many deliveries miss on it; interest i has the boxes `bounds[offsets[i]:offsets[i + 1]]`."""
    order = np.lexsort((codes.dz.low, codes.dz.high))
    first, last = runs(codes.dz[order], covers.dz)
    columns = np.ascontiguousarray(points[codes.event[order]].T)
    return _misses(columns, first, last, covers.offsets, offsets, np.ascontiguousarray(bounds))


@kernel
def _misses(columns: Floats, first: Ints, last: Ints, cells: Ints, offsets: Ints, bounds: Floats) -> Ints:
    found = np.zeros(len(columns), np.int64)
    for i in range(len(offsets) - 1):
        for c in range(cells[i], cells[i + 1]):
            for a in range(len(columns)):
                for event in range(first[c], last[c]):
                    inside = False
                    for b in range(offsets[i], offsets[i + 1]):
                        inside |= bounds[b, a, 0] <= columns[a, event] < bounds[b, a, 1]
                    found[a] += not inside
    return found
