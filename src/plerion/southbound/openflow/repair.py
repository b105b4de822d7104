"""Bringing a switch that has just connected back to what it should be, by the difference and nothing else."""

from __future__ import annotations

from struct import Struct

from plerion.southbound.openflow.cache import whose_turn
from plerion.southbound.openflow.codec import ATOMIC_AND_ORDERED, encode
from plerion.southbound.openflow.connection import Connection, Errors
from plerion.southbound.openflow.decode import BUNDLE_ADD, ONF
from plerion.southbound.openflow.inspection import MANY, admission, aside, held
from plerion.southbound.openflow.messages import VERSION, BundleAdd, Command, FlowMod
from plerion.southbound.openflow.pipeline import OURS_TO_DELETE, Entry, furniture, turns
from plerion.southbound.openflow.readback import Found, Held
from plerion.southbound.openflow.shapes import SwitchShapes
from plerion.southbound.protocol import EntriesRefused
from plerion.topology.graph import SwitchId


def repairs(of: SwitchShapes, told: Held) -> tuple[list[Found], list[Entry]]:
    """What carries our cookie and is nothing that we would have written; and the furniture that is missing."""
    wanted = furniture(of.fabric.topology, of.switch) | {turns()[whose_turn(told)]}
    stale = [one for one in told.others if one.entry not in wanted and admission(of, one.entry) is None]
    standing = {one.entry for one in told.others}
    return stale, [entry for entry in wanted if entry not in standing]


async def furnish(of: SwitchShapes, connection: Connection) -> Held:
    """Repairs the switch's furniture by its difference, and gives what else it holds."""
    async with connection.changing:
        told = await held(of, connection)
        stale, missing = await aside(len(told.others) > MANY, repairs, of, told)

        def write(first_xid: int, bundle: int) -> bytes:
            numbered = iter(range(first_xid, first_xid + len(stale) + len(missing)))
            gone = [wrapped(deletion(one, xid), bundle) for one, xid in zip(stale, numbered, strict=False)]
            put = [
                encode(BundleAdd(bundle, FlowMod(Command.ADD, entry)), xid)
                for entry, xid in zip(missing, numbered, strict=True)
            ]
            return b"".join(gone + put)

        count = len(stale) + len(missing)
        if count:
            check_taken(of.switch, count, await connection.change(count, write))
    return told


def check_taken(switch: SwitchId, count: int, errors: Errors) -> None:
    """Raises what the switch had against a bundle; the error of a message says more than that of the bundle."""
    if errors:
        _, error = max(errors, key=lambda found: found[0])
        raise EntriesRefused(switch, error.reason, count)


_DELETION = Struct("!BBHIQQBBHHHIIIHxx")
_WRAPPING = Struct("!BBHIIIIHH")


def deletion(held: Found, xid: int) -> bytes:
    """Deletes an entry by its match as the switch gave it, which need not be one that we can read."""
    size, anything = _DELETION.size + len(held.match), 0xFFFF_FFFF
    place = (held.cookie, OURS_TO_DELETE, held.table, int(Command.DELETE_STRICT), 0, 0, held.priority)
    return _DELETION.pack(VERSION, 14, size, xid, *place, anything, anything, anything, 0) + held.match


def wrapped(message: bytes, bundle: int) -> bytes:
    """A message as part of a bundle, with the same number."""
    size, xid = _WRAPPING.size + len(message), int.from_bytes(message[4:8], "big")
    return _WRAPPING.pack(VERSION, 4, size, xid, ONF, BUNDLE_ADD, bundle, 0, ATOMIC_AND_ORDERED) + message
