"""Content indexes made from a schema alone: regular indexing and attribute selection (seed 000 §2, §5)."""

from __future__ import annotations

from collections.abc import Sequence

from plerion.content.schema import Schema
from plerion.index.content_index import Cluster, ContentIndex, everywhere
from plerion.index.cuts import MAX_EQUAL_BITS, ContentIndexError, equal_cuts, useful_bits
from plerion.index.dz import MAX_LENGTH, WHOLE


def round_robin(
    schema: Schema, attributes: Sequence[int], bits: int, most: int = MAX_EQUAL_BITS
) -> tuple[int, ...]:
    """A bit order that takes the attributes in turn and passes over those that no bit can part further.

    No attribute gets more than `most` bits.
    """
    left = {attribute: min(useful_bits(schema.attributes[attribute]), most) for attribute in attributes}
    order: list[int] = []
    while len(order) < bits and any(left.values()):
        for attribute in attributes:
            if left[attribute] and len(order) < bits:
                left[attribute] -= 1
                order.append(attribute)
    return tuple(order)


def regular(
    schema: Schema, bits: int, attributes: Sequence[int] | None = None, epoch: int = 0
) -> ContentIndex:
    """Equal halves, round robin over the attributes (all of them unless told), one cluster.

    Codes are shorter than `bits` when fewer already tell all values apart.
    """
    if not 0 <= bits <= MAX_LENGTH:
        raise ContentIndexError(f"an index takes 0 to {MAX_LENGTH} bits, not {bits}")
    chosen = range(len(schema.attributes)) if attributes is None else attributes
    order = round_robin(schema, chosen, bits)
    cuts = tuple(equal_cuts(a, order.count(position)) for position, a in enumerate(schema.attributes))
    return ContentIndex(schema, (Cluster(WHOLE, everywhere(schema), order, cuts),), epoch)
