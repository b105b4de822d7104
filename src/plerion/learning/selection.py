"""Which attributes an index spends its bits on, decided from small summaries (seed 004 §IV, seed 000 §5).

EVS, EMCS, CS and PCA rank the attributes by a factor and leave open, but for PCA, how many to take: `Selection.first`
takes a wanted number, `Selection.best_prefix` the number that filters best. Greedy and brute force find the number,
too: they try out combinations with a rate, the share of deliveries that nobody asked for.

Rules that make every answer a defined one:

* of equal factors the attribute that comes first in the schema ranks first, and coefficients of an eigenvector that
  agree in twelve digits are equal;
* of equal rates the combination of fewest attributes wins, then the one tried first;
* a combination is in schema order, whatever the ranking, because the order decides who gets the odd bit;
* without events or subscriptions nothing matches: every variance and covariance is 0, every EMCS factor and every entry
  of the matrix of CS is 1, so the ranking is the schema's order;
* where several eigenvectors share the largest eigenvalue, an attribute counts with its part in the space that they
  span, which does not depend on the vectors chosen to span it. For a matrix of zeros (no event tells the
  attributes apart) that is 1 for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import isnan
from typing import TypeAlias

import numpy as np

from plerion.learning.projection import Floats, Ints
from plerion.learning.summaries import AttributeMoments, WMoments

Rate: TypeAlias = Callable[[tuple[int, ...]], float]
"""The false-positive rate of an index on these attributes, which are in schema order."""

Over: TypeAlias = Callable[[Rate, Iterable[tuple[int, ...]]], Iterable[float]]
"""`map`, or what gives the same: a pool's `map` finds the rates that do not depend on each other at once."""

DEFAULT_THRESHOLD = 0.9
MAX_BRUTE = 16  # attributes: 65,535 combinations
_DIGITS = 12
_ALIKE = 1e-9  # eigenvalues that differ by no more than this share of the largest are one, and shares of coefficients


class SelectionError(ValueError):
    """A choice of attributes that cannot be made, with the bound and what would be right."""


@dataclass(frozen=True, slots=True)
class Step:
    """Attributes that were tried, and the rate that they gave."""

    attributes: tuple[int, ...]
    rate: float


@dataclass(frozen=True, slots=True)
class Selection:
    """The attributes chosen, in schema order, and why.

    `ranking` has all attributes, the most useful first; `factors` are by attribute, and none where the method has none;
    `trail` is what was tried, in order.
    """

    method: str
    ranking: tuple[int, ...]
    factors: tuple[float, ...]
    chosen: tuple[int, ...]
    trail: tuple[Step, ...] = ()

    def first(self, wanted: int) -> Selection:
        """The given number of attributes from the top of the ranking."""
        if not 1 <= wanted <= len(self.ranking):
            raise SelectionError(f"1 to {len(self.ranking)} attributes can be selected, not {wanted}")
        return replace(self, chosen=tuple(sorted(self.ranking[:wanted])), trail=())

    def best_prefix(self, rate: Rate, over: Over = map) -> Selection:
        """As many from the top of the ranking as give the least rate."""
        trail = prefix_trail(self.ranking, rate, over)
        return replace(self, chosen=best(trail).attributes, trail=trail)


def evs(moments: AttributeMoments) -> Selection:
    """By the variance of events (Algorithm 1): of axis positions as they are, events without a value left out."""
    return _ranked("evs", moments.variance)


def emcs(totals: Ints, events: int, subscriptions: int) -> Selection:
    """By the share of (event, subscription) pairs that the attribute alone tells apart (Algorithm 2)."""
    return _ranked("emcs", _missed(totals, events, subscriptions))


def cs(similarity: Ints, events: int, subscriptions: int) -> Selection:
    """By the first principal component of the matrix of dissimilarities (Algorithm 3)."""
    return _ranked("cs", principal(_missed(similarity, events, subscriptions)))


def pca(moments: WMoments, threshold: float = DEFAULT_THRESHOLD) -> Selection:
    """By the first principal component of the covariance of W (seed 000 §5), as many as hold a share of it.

    That is the least number whose coefficients reach the threshold's share of the sum of all, by magnitude.
    """
    if not 0 < threshold <= 1:
        raise SelectionError(f"the threshold is a share above 0 and at most 1, not {threshold}")
    ranked = _ranked("pca", principal(moments.covariance()))
    held = np.cumsum([ranked.factors[a] for a in ranked.ranking])
    reached = (threshold - _ALIKE) * held[-1]
    return ranked.first(int(np.searchsorted(held, reached)) + 1)


def greedy(attributes: int, rate: Rate, over: Over = map) -> Selection:
    """Drops one attribute a round, the one without which the rate is least, and keeps the best of all (Algorithm 4).

    Of two that would leave the same rate the first in the schema is dropped. The ranking has those last that were
    dropped first. Takes n(n + 1)/2 rates, those of a round at once.
    """
    kept = _all(attributes)
    trail, dropped = _tried([kept], rate, over), list[int]()
    while len(kept) > 1:
        tried = _tried([kept[:i] + kept[i + 1 :] for i in range(len(kept))], rate, over)
        left = best(tried).attributes
        dropped += set(kept) - set(left)
        trail += tried
        kept = left
    return Selection("greedy", (*kept, *reversed(dropped)), (), best(trail).attributes, tuple(trail))


def brute(attributes: int, rate: Rate, over: Over = map) -> Selection:
    """Tries every combination; refuses more than 16 attributes. The ranking has the chosen ones first."""
    every = _all(attributes)
    if attributes > MAX_BRUTE:
        raise SelectionError(
            f"brute force tries all combinations of at most {MAX_BRUTE} attributes, not of {attributes}: use greedy"
        )
    sizes = range(1, attributes + 1)
    trail = _tried([some for size in sizes for some in combinations(every, size)], rate, over)
    chosen = best(trail).attributes
    return Selection("brute", (*chosen, *(a for a in every if a not in chosen)), (), chosen, tuple(trail))


def prefix_trail(ranking: Sequence[int], rate: Rate, over: Over = map) -> tuple[Step, ...]:
    """The rates of the first attribute of the ranking, the first two, and so on to all."""
    prefixes = [tuple(sorted(ranking[:n])) for n in range(1, len(ranking) + 1)]
    return tuple(_tried(prefixes, rate, over))


def best(trail: Iterable[Step]) -> Step:
    """The least rate, then the fewest attributes, then the one tried first."""
    return min(trail, key=lambda step: (step.rate, len(step.attributes)))


def principal(matrix: Floats) -> Floats:
    """How much each attribute is part of the eigenvectors of the largest eigenvalue of a symmetric matrix.

    With one such vector these are the magnitudes of its coefficients.
    """
    values, vectors = np.linalg.eigh(matrix)
    top = vectors[:, values >= values[-1] - _ALIKE * abs(values[-1])]
    parts: Floats = np.sqrt((top**2).sum(axis=1))
    return parts.round(_DIGITS)


def _missed(pairs: Ints, events: int, subscriptions: int) -> Floats:
    """The share of all (event, subscription) pairs that is not among these; all of it where there is no pair."""
    every = max(1, events * subscriptions)
    return 1.0 - np.asarray(pairs, np.float64) / every


def _ranked(method: str, factors: Floats) -> Selection:
    ranking = tuple(np.argsort(-factors, kind="stable").tolist())
    return Selection(method, ranking, tuple(factors.tolist()), _all(len(ranking)))


def _all(attributes: int) -> tuple[int, ...]:
    if attributes < 1:
        raise SelectionError(f"a selection needs at least one attribute, not {attributes}")
    return tuple(range(attributes))


def _tried(some: list[tuple[int, ...]], rate: Rate, over: Over) -> list[Step]:
    steps = [Step(attributes, found) for attributes, found in zip(some, over(rate, some), strict=True)]
    for step in steps:
        if isnan(step.rate):
            raise SelectionError(f"the rate of {step.attributes} is not a number: give a share from 0 to 1")
    return steps
