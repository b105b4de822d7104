"""The one representation of every content index (design §4.1).

An index is a short list of clusters. A cluster has an id (bits), the box that it covers, a bit order (which
attribute each further bit halves) and per attribute the cuts. The code of a point in a cluster is the
cluster's id followed by, for each bit of the order, the next bit of that attribute's cell number. All
schemes, the papers' and ours, are values of this type, so encoding, covering, serialising, evaluating and
rolling out are written once.

A point in several clusters has several codes, in none it has none. An interest therefore belongs to ONE
cluster that encloses all of its boxes: were it covered in two, an event in both would reach it twice. An
advertisement belongs to every cluster that it meets, because its events carry all their codes. Only where the
clusters tile the space (`tiles`) has every point one code, and interests, too, belong to all that they meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

import numpy as np
import numpy.typing as npt

from plerion.content.box import Box
from plerion.content.schema import Schema
from plerion.index.cuts import ContentIndexError, Cuts, equal_cuts
from plerion.index.dz import MAX_LENGTH, Dz


@dataclass(frozen=True, slots=True)
class Cluster:
    """A box of the event space with its own id, bit order and cuts (one per attribute of the schema)."""

    id: Dz
    box: Box
    order: tuple[int, ...]
    cuts: tuple[Cuts, ...]
    share: float | None = None
    """How large a part of the events has codes here, where it is known: covers save their dz for where events are."""

    def __post_init__(self) -> None:
        if self.share is not None and not 0 < self.share <= 1:
            raise ContentIndexError(
                f"a cluster has a share above 0 and up to 1 of the events, not {self.share}"
            )
        if self.length > MAX_LENGTH:
            raise ContentIndexError(
                f"a code has at most {MAX_LENGTH} bits, not {self.length}: use fewer bits"
            )
        for attribute, cuts in enumerate(self.cuts):
            if self.order.count(attribute) != cuts.bits:
                raise ContentIndexError(
                    f"attribute {attribute} has {cuts.bits} bits of cuts but stands "
                    f"{self.order.count(attribute)} times in the bit order"
                )
        if any(attribute not in range(len(self.cuts)) for attribute in self.order):
            raise ContentIndexError("the bit order names an attribute that the schema does not have")

    def __hash__(self) -> int:
        """Leaves the cuts out: there may be half a million of them, and caches ask at every call."""
        return hash((self.id, self.order))

    @property
    def length(self) -> int:
        return self.id.length + len(self.order)

    def code(self, point: Sequence[float]) -> Dz:
        """The definition of encoding, a bit at a time; `encode` holds its compiled twin."""
        cells = [cuts.cell(position) for cuts, position in zip(self.cuts, point, strict=True)]
        left = [cuts.bits for cuts in self.cuts]
        bits = self.id.bits
        for attribute in self.order:
            left[attribute] -= 1
            bits = bits << 1 | (cells[attribute] >> left[attribute] & 1)
        return Dz(bits, self.length)

    def encloses(self, bounds: npt.NDArray[np.float64]) -> bool:
        """Whether every box of `bounds` (m, attributes, 2) lies inside this cluster's box."""
        lows, highs = np.array(self.box.lows), np.array(self.box.highs)
        return bool((bounds[:, :, 0] >= lows).all() and (bounds[:, :, 1] <= highs).all())


@dataclass(frozen=True, slots=True)
class ContentIndex:
    """The mapping from points to dz, immutable; `epoch` numbers its versions."""

    schema: Schema
    clusters: tuple[Cluster, ...]
    epoch: int = 0

    def __post_init__(self) -> None:
        if not self.clusters:
            raise ContentIndexError("an index needs at least one cluster")
        if not 0 <= self.epoch < 1 << 63:  # what a JSON document and a 64-bit field can carry
            raise ContentIndexError(f"epochs count from 0 to 2**63 - 1, not {self.epoch}")
        width = len(self.schema.attributes)
        for cluster in self.clusters:
            if len(cluster.cuts) != width or len(cluster.box.lows) != width:
                raise ContentIndexError(
                    f"cluster {str(cluster.id)!r} does not have the schema's {width} attributes"
                )
            for attribute, cuts in zip(self.schema.attributes, cluster.cuts, strict=True):
                right = equal_cuts(attribute, 0)
                if (cuts.log, cuts.discrete) != (right.log, right.discrete):
                    raise ContentIndexError(
                        f"the cuts of {attribute.name!r} are for another kind of attribute"
                    )
        ids = sorted(cluster.id for cluster in self.clusters)
        for one, other in pairwise(ids):
            if one.covers(other):
                raise ContentIndexError(f"cluster id {str(other)!r} begins with cluster id {str(one)!r}")

    def __hash__(self) -> int:
        """Leaves most out: caches ask at every call."""
        return hash((self.epoch, len(self.clusters), self.clusters[0]))

    @property
    def bits(self) -> int:
        """The length of the longest code."""
        return max(cluster.length for cluster in self.clusters)

    def codes(self, point: Sequence[float]) -> tuple[Dz, ...]:
        """All codes of one point, in the order of the clusters."""
        return tuple(cluster.code(point) for cluster in self.clusters if cluster.box.contains(tuple(point)))

    def home(self, bounds: npt.NDArray[np.float64]) -> Cluster:
        """The cluster that an interest belongs to: of those that enclose all its boxes the smallest."""
        enclosing = [cluster for cluster in self.clusters if cluster.encloses(bounds)]
        if not enclosing:
            raise ContentIndexError(
                "this filter lies outside every cluster of the index: "
                "build the index anew, or give it a cluster for the whole space"
            )
        return min(enclosing, key=lambda cluster: volume(cluster.box, self.schema))


def everywhere(schema: Schema) -> Box:
    """The box of the whole space, events with missing values included."""
    width = len(schema.attributes)
    return Box((-inf,) * width, (inf,) * width)


def volume(box: Box, schema: Schema) -> float:
    """The share of the space that a box takes, by value ranges."""
    share = 1.0
    for attribute, low, high in zip(schema.attributes, box.lows, box.highs, strict=True):
        inside = min(high, attribute.end) - max(low, attribute.start)
        share *= max(0.0, inside) / (attribute.end - attribute.start)
    return share
