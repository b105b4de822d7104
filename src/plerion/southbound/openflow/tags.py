"""Entries of a plan as a switch can hold them, a row each, and back.

OpenFlow 1.3 takes a tag off, or sets another one in its place, only where the match says that there is one. An entry
for whatever tag that does either is told as two: one for what has none, one for what has any. They match apart from
each other, so their priorities do not matter, and no other entry becomes two.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from plerion.update.canonical import canonical
from plerion.update.entries import ANY, UNTAGGED, Changes, Entries, joined, shared

TAGGED = -2
"""In the match of a row: any VLAN id, but a tag there must be."""


def parted(entries: Entries) -> Entries:
    """The same entries, each row of which a switch can hold."""
    entries = canonical(entries)
    double = (entries.vlan == ANY) & (entries.untag | (entries.set_vlan != ANY))
    if not double.any():
        return entries
    pair = [replace(entries[double], vlan=np.full(int(double.sum()), vlan)) for vlan in (UNTAGGED, TAGGED)]
    return joined([entries[~double], *map(canonical, pair)])


def united(rows: Entries) -> Entries:
    """The entries whose rows these are: the inverse of `parted`. A row that misses its other half stays as it is."""
    tagged, plain = np.flatnonzero(rows.vlan == TAGGED), np.flatnonzero(rows.vlan == UNTAGGED)
    halves = canonical(replace(rows[tagged], vlan=np.full(len(tagged), UNTAGGED)))
    at_half, at_plain = shared(halves, rows[plain])
    alike = (halves.behaviour()[at_half] == rows[plain].behaviour()[at_plain]).all(axis=1)
    whole = tagged[at_half[alike]]
    rest = np.ones(len(rows), np.bool_)
    rest[whole] = rest[plain[at_plain[alike]]] = False
    return joined([rows[rest], replace(rows[whole], vlan=np.full(len(whole), ANY))])


def told(changes: Changes) -> Changes:
    """The changes as rows, and of those that go only what nothing comes in place of."""
    removed, added = parted(changes.removed), parted(changes.added)
    replaced, _ = shared(removed, added)
    gone = np.ones(len(removed), np.bool_)
    gone[replaced] = False
    return Changes(removed[gone], added)
