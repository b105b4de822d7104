"""Sets of positions on one axis as sorted, disjoint half-open intervals that never touch.

`Intervals` is canonical: two equal sets are equal tuples. All operations are one sweep over both arguments.
`where` is the set of positions on which a leaf of an expression is true.
"""

import math
from collections.abc import Callable, Iterable
from typing import TypeAlias

from plerion.content.filter import Between, Comparison, Leaf, Membership, Operator, Pattern
from plerion.content.like import matcher
from plerion.content.schema import Attribute, Enumeration, Number

Interval: TypeAlias = tuple[float, float]
Intervals: TypeAlias = tuple[Interval, ...]


def union(intervals: Iterable[Interval]) -> Intervals:
    """The canonical set of the positions in any of the intervals; empty ones and overlaps are welcome."""
    merged: list[Interval] = []
    for low, high in sorted(intervals):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        elif low < high:
            merged.append((low, high))
    return tuple(merged)


def intersection(left: Intervals, right: Intervals) -> Intervals:
    """The positions in both."""
    shared: list[Interval] = []
    i = j = 0
    while i < len(left) and j < len(right):
        low, high = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if low < high:
            shared.append((low, high))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return tuple(shared)


def difference(left: Intervals, right: Intervals) -> Intervals:
    """The positions in the left one only."""
    if not left:
        return ()
    cuts = [low for low, _ in right] + [left[-1][1]]
    starts = [-math.inf] + [high for _, high in right]
    gaps = tuple((low, high) for low, high in zip(starts, cuts, strict=True) if low < high)
    return intersection(left, gaps)


def at(attribute: Number, value: float) -> float:
    """The first position of the axis that is not below the value, within [start, end]."""
    first = float(math.ceil(value)) if attribute.integer and math.isfinite(value) else value
    return min(max(first, attribute.start), attribute.end)


def after(attribute: Number, value: float) -> float:
    """The first position of the axis that is above the value, within [start, end]."""
    if attribute.integer and math.isfinite(value):
        first = float(math.floor(value) + 1)
    else:
        first = math.nextafter(value, math.inf)
    return min(max(first, attribute.start), attribute.end)


def where(leaf: Leaf, attribute: Attribute) -> Intervals:
    """The positions in [start, end) on which the leaf is true; on the rest of [start, end) it is false."""
    if isinstance(attribute, Enumeration):
        return _ranks(leaf, attribute)
    match leaf:
        case Comparison(_, operator, float(value)):
            return _number(attribute, operator, value)
        case Between(_, low, high):
            return union([(at(attribute, low), after(attribute, high))])
        case Membership(_, values):
            numbers = (float(value) for value in values)
            return union((at(attribute, value), after(attribute, value)) for value in numbers)
    raise TypeError(f"{leaf} does not apply to a number")


def _number(attribute: Number, operator: Operator, value: float) -> Intervals:
    start, end = attribute.start, attribute.end
    match operator:
        case "<":
            return union([(start, at(attribute, value))])
        case "<=":
            return union([(start, after(attribute, value))])
        case ">":
            return union([(after(attribute, value), end)])
        case ">=":
            return union([(at(attribute, value), end)])
        case "=":
            return union([(at(attribute, value), after(attribute, value))])
        case "!=":
            return union([(start, at(attribute, value)), (after(attribute, value), end)])


def _ranks(leaf: Leaf, attribute: Enumeration) -> Intervals:
    match leaf:
        case Comparison(_, "=", str(value)):
            return _at_ranks([attribute.rank(value)])
        case Comparison(_, "!=", str(value)):
            return difference(((attribute.start, attribute.end),), _at_ranks([attribute.rank(value)]))
        case Membership(_, values):
            return _at_ranks([attribute.rank(str(value)) for value in values])
        case Pattern(_, pattern):
            accepts: Callable[[str], bool] = matcher(pattern)
            return _at_ranks([rank for rank, value in enumerate(attribute.values) if accepts(value)])
    raise TypeError(f"{leaf} does not apply to text")


def _at_ranks(ranks: Iterable[int | None]) -> Intervals:
    runs: list[Interval] = []
    low = high = -1
    for rank in sorted(rank for rank in ranks if rank is not None):
        if rank > high:
            runs.append((float(low), float(high)))
            low = rank
        high = rank + 1
    return (*runs[1:], (float(low), float(high))) if runs else ()
