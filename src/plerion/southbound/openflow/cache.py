"""Open vSwitch forwards by a cache of its tables: when a change is in force, and how the cache is kept right.

A barrier says that a table has changed; the cache is looked through some milliseconds later, and until then events go
where they went (`settled`).

The userspace datapath keeps its verdict for a region of addresses, as wide as the table allows. When entries are
deleted regions become wider, and new ones come to lie over old, narrow ones. The next change corrects what is kept in
place, and finds what to correct by an address: the wrong one, where two lie over each other (3.1.0, shown by
tests/ovs/test_openflow_cache.py). The other stays as it was for as long as events meet it, and they go astray.

So regions must not come to lie over each other. Of two entries, the *turns*, a switch has one: it matches no event that
anybody sends (a traffic class without a meaning), but to know that the switch has to look at a field, and what it keeps
says so. A bundle that deletes anything puts the other turn in its place, which looks at another field: then nothing
that is kept says enough any more, and all of it is deleted instead of corrected.

But Open vSwitch looks through what it keeps while it deletes it, so it passes some verdict over now and then, and
leaves it until it looks again, which may take half a second. So it is made to look again: a *nudge* adds an entry
that is there already.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import monotonic

from plerion.southbound.openflow.codec import encode
from plerion.southbound.openflow.connection import Connection
from plerion.southbound.openflow.messages import BarrierRequest, BundleAdd, Command, FlowMod
from plerion.southbound.openflow.pipeline import Entry, turns
from plerion.southbound.openflow.readback import Held

MESSAGES = 2  # of a turn
NUDGES = 2  # after a turn; with one of them, on a busy machine, a verdict was still passed over after 1 of 200 changes


def whose_turn(told: Held) -> int:
    """Whose turn it is on a switch: the second's only where it stands alone."""
    there = {one.entry for one in told.others}
    return int(turns()[0] not in there and turns()[1] in there)


def turned(turn: int, first_xid: int, bundle: int) -> bytes:
    """The messages of a bundle after which it is the other one's turn."""
    changes: tuple[tuple[Command, Entry], ...] = (
        (Command.ADD, turns()[1 - turn]),
        (Command.DELETE_STRICT, turns()[turn]),
    )
    numbered = enumerate(changes, start=first_xid)
    return b"".join(encode(BundleAdd(bundle, FlowMod(*change)), xid) for xid, change in numbered)


def nudge(turn: int, xid: int, bundle: int) -> bytes:
    """The message of a bundle that changes nothing and makes the switch look its cache through once more."""
    return encode(BundleAdd(bundle, FlowMod(Command.ADD, turns()[turn])), xid)


async def settled(connections: Sequence[Connection], seconds: float) -> None:
    """Returns when switches that have answered a barrier have had the time to look their cache through once.

    One that answers a second barrier has begun to look its cache through; the rest is time, more on a busy machine.
    """
    if connections:
        asked = monotonic()
        await asyncio.gather(*(one.ask(BarrierRequest()) for one in connections), return_exceptions=True)
        await asyncio.sleep(max(seconds, 2 * (monotonic() - asked)))
