"""Compiles what a client runs on, before anybody waits for it.

Kernels are compiled when they are first called and kept on disk. The first start after an installation takes that time
before the session joins, and not in its first event, where the controller would think the host dead.
"""

from __future__ import annotations

import numpy as np

from plerion.content.schema import Number, Schema
from plerion.index.content_index import ContentIndex
from plerion.index.encode import encode
from plerion.index.propose import regular
from plerion.matching.bitset import BitsetMatcher


def rehearse(index: ContentIndex | None = None) -> None:
    """One event through all that touches events; by the index in force, once it is known."""
    index = index or regular(Schema((Number("x", 0, 1),)), 8)
    point = np.array([index.schema.starts])
    encode(index, point)
    everywhere = np.broadcast_to([-np.inf, np.inf], (1, len(index.schema.attributes), 2))
    BitsetMatcher.of(np.array([0, 1]), everywhere).matches(point)
