"""What a batch of traffic was worth: deliveries that somebody asked for, false positives, losses and doubles.

The truth comes from exact matching, the traffic from walking the tables; neither knows of the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plerion.flow.entry import Ints, Masks
from plerion.index.cover import Covers
from plerion.index.encode import Codes
from plerion.index.words import lowest_bit
from plerion.kernel import kernel
from plerion.matching.bitset import BitsetMatcher, OpenBoxes, open_at
from plerion.matching.evaluate import runs
from plerion.simnet.bulk import Traffic

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Account:
    """Counts of one batch; add two to have those of both.

    A host delivery is one (event, host) pair; a false positive there is an event that no subscription of the host
    matches. A subscription is delivered what its cover has of the events that reached its host. A link carries a
    false positive when no host that the event reached through it wanted it. `lost` and `doubled` are by host too.
    """

    events: int
    host_deliveries: Ints
    host_false_positives: Ints
    subscription_deliveries: Ints
    subscription_false_positives: Ints
    link_loads: Ints
    link_false_positives: Ints
    lost: Ints
    doubled: Ints

    def __add__(self, other: Account) -> Account:
        return Account(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    @property
    def false_positive_rate(self) -> float:
        """The share of (event, host) deliveries that nobody there asked for."""
        return int(self.host_false_positives.sum()) / max(1, int(self.host_deliveries.sum()))


def account(
    traffic: Traffic,
    points: Floats,
    codes: Codes,
    publishers: Ints,
    matcher: BitsetMatcher,
    covers: Covers,
    hosts: Ints,
    reachable: Flags,
) -> Account:
    """The account of forwarding `codes` of `points`; event i was sent by the host `publishers[i]`.

    `hosts[j]` is the host of subscription j and `reachable[p, h]` whether the network joins two hosts at all.
    """
    copies = np.zeros((len(points), traffic.copies.shape[1]), np.int64)
    _add_copies(copies, codes.event, traffic.course, traffic.copies)
    reached = copies > 0
    wanted, hits = _truth(matcher.open_boxes, np.ascontiguousarray(points), matcher.owner, hosts, reached)
    expected = wanted & reachable[publishers]
    expected[np.arange(len(points)), publishers] = False
    useless = _useless_loads(traffic, codes.event, wanted)
    subscription = _delivered(codes, reached, covers, hosts)
    return Account(
        len(points),
        reached.sum(axis=0),
        (reached & ~wanted).sum(axis=0),
        subscription,
        subscription - hits,
        traffic.link_loads(),
        useless,
        (expected & ~reached).sum(axis=0),
        np.maximum(copies - 1, 0).sum(axis=0),
    )


def _useless_loads(traffic: Traffic, event: Ints, wanted: Flags) -> Ints:
    """By slot: events that went through it to nobody who wanted them."""
    found = np.zeros(traffic.slots, np.int64)
    _judge_links(traffic.course, event, traffic.first, traffic.slot, traffic.beyond, wanted, found)
    return found


def _delivered(codes: Codes, reached: Flags, covers: Covers, hosts: Ints) -> Ints:
    """By subscription: events under its cover that reached its host."""
    order = np.lexsort((codes.dz.low, codes.dz.high))
    first, last = runs(codes.dz[order], covers.dz)
    so_far = np.zeros((len(order) + 1, reached.shape[1]), np.int64)
    np.cumsum(reached[codes.event[order]], axis=0, out=so_far[1:])
    subscription = np.repeat(np.arange(len(covers)), np.diff(covers.offsets))
    host = hosts[subscription]
    return np.bincount(subscription, so_far[last, host] - so_far[first, host], len(covers)).astype(np.int64)


@kernel
def _add_copies(
    copies: Ints, event: Ints, course: npt.NDArray[np.int32], by_course: npt.NDArray[np.uint8]
) -> None:
    for i in range(len(event)):
        for h in range(copies.shape[1]):
            copies[event[i], h] += by_course[course[i], h]


@kernel
def _truth(plan: OpenBoxes, points: Floats, owner: Ints, hosts: Ints, reached: Flags) -> tuple[Flags, Ints]:
    """(event, host): whether a subscription there matches; by subscription: matching events that reached its host."""
    wanted = np.zeros(reached.shape, np.bool_)
    hits = np.zeros(len(hosts), np.int64)
    words = plan.checkpoints.shape[2]
    found, scratch = np.empty(words, np.uint64), np.empty(words, np.uint64)
    for event in range(len(points)):
        open_at(plan, points[event], found, scratch)
        for w in range(words):
            left = found[w]
            while left != 0:
                i = owner[(w << 6) + lowest_bit(left)]
                left &= left - np.uint64(1)
                wanted[event, hosts[i]] = True
                hits[i] += reached[event, hosts[i]]
    return wanted, hits


@kernel
def _judge_links(
    course: npt.NDArray[np.int32],
    event: Ints,
    first: Ints,
    slot: Ints,
    beyond: Masks,
    wanted: Flags,
    false_positives: Ints,
) -> None:
    """Adds one to each slot for each event that went through it to nobody who wanted it."""
    hosts = np.empty(beyond.shape[1], np.uint64)
    for i in range(len(course)):
        hosts[:] = 0
        for h in range(wanted.shape[1]):
            if wanted[event[i], h]:
                hosts[h >> 6] |= np.uint64(1) << np.uint64(h & 63)
        for s in range(first[course[i]], first[course[i] + 1]):
            useful = False
            for w in range(len(hosts)):
                useful |= beyond[s, w] & hosts[w] != 0
            false_positives[slot[s]] += not useful
