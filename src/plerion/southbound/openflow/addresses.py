"""Destinations of many entries at once: columns to addresses with masks, and back. `Dialect` has the definition."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plerion.index.address import AddressPlan
from plerion.index.dz import MAX_LENGTH, WHOLE, DzError
from plerion.index.dzset import DzColumns, Words
from plerion.southbound.openflow.dialect import check_epochs
from plerion.update.entries import ANY, GROUPS, Columns

Flags = npt.NDArray[np.bool_]

PREFIX = 128 - MAX_LENGTH
_WORD = np.uint64(64)
_TOP = np.uint64(64 - PREFIX)


class Meaning(NamedTuple):
    """What destinations say; where one is not `ours` the rest means nothing."""

    ours: Flags
    epoch: Columns
    dz: DzColumns


def destinations(plan: AddressPlan, epoch: Columns, dz: DzColumns) -> Words:
    """A row (address, mask) of four words for each."""
    content = epoch[epoch != GROUPS]
    check_epochs(plan, int(content.min(initial=ANY)), int(content.max(initial=ANY)))
    longest = int(dz.length.max(initial=0))
    if longest > plan.capacity:
        raise DzError(f"{plan.family} has room for {plan.capacity} bits, the dz has {longest}")
    bits = np.where(epoch == GROUPS, 0, plan.epoch_bits)
    shift = (PREFIX + bits).astype(np.uint64)
    contents, groups = _heads(plan)
    named = (bits > 0) & (epoch >= 0)
    number = np.where(named, epoch, 0).astype(np.uint64) << (_WORD - shift)
    found = np.empty((len(epoch), 4), np.uint64)
    found[:, 0] = np.where(epoch == GROUPS, groups, contents) | number | dz.high >> shift
    found[:, 1] = dz.high << (_WORD - shift) | dz.low >> shift
    found[:, 2:] = MASKS[PREFIX + bits + dz.length]
    # In any epoch: the bits of the epoch are not looked at, nor is anything behind an empty dz.
    found[:, 2] &= ~np.where(named | (epoch == GROUPS), np.uint64(0), _span(plan))
    return found


def meaning(plan: AddressPlan, told: Words) -> Meaning:
    """The inverse of `destinations`; of all other addresses and masks it says that they are not ours."""
    contents, groups = _heads(plan)
    top = told[:, 0] >> _TOP << _TOP
    grouped = top == groups
    bits = np.where(grouped, 0, plan.epoch_bits)
    shift = (PREFIX + bits).astype(np.uint64)
    span = _span(plan)
    named = ~grouped & (plan.epoch_bits > 0) & (told[:, 2] & span == span)
    value = ((told[:, 0] & span) >> np.uint64(64 - PREFIX - plan.epoch_bits)).astype(np.int64)
    epoch = np.where(grouped, GROUPS, np.where(named, value, ANY))
    ones = (np.bitwise_count(told[:, 2]) + np.bitwise_count(told[:, 3])).astype(np.int64)
    length = np.clip(ones - PREFIX - np.where(named, bits, 0), 0, MAX_LENGTH - bits)
    high = told[:, 0] << shift | told[:, 1] >> (_WORD - shift)
    dz = DzColumns(high, told[:, 1] << shift, length.astype(np.uint8))
    ours = grouped | (top == contents)
    ours[ours] = (destinations(plan, epoch[ours], dz[ours]) == told[ours]).all(axis=1)
    return Meaning(ours, epoch, dz)


def _heads(plan: AddressPlan) -> tuple[np.uint64, np.uint64]:
    """The first word of the addresses of contents, without their epoch, and of groups."""
    contents, groups = AddressPlan(plan.family).network(WHOLE), plan.group(WHOLE)
    first, second = (np.uint64(int(one.network_address) >> 64) for one in (contents, groups))
    return first, second


def _span(plan: AddressPlan) -> np.uint64:
    """Where the epoch stands in the first word of an address."""
    return np.uint64(((1 << plan.epoch_bits) - 1) << (64 - PREFIX - plan.epoch_bits))


def _masks() -> Words:
    ones = [(1 << 128) - (1 << (128 - length)) for length in range(129)]
    return np.array([(mask >> 64, mask & (1 << 64) - 1) for mask in ones], np.uint64)


MASKS = _masks()
"""The netmask with so many leading ones, by their number."""
