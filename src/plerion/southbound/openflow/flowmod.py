"""Many flow-mods at once: columns in, bytes out, and not a line of Python for each.

The bytes are what `codec.encode` gives for the same entries, one message after the other (a law), at some hundred
times its pace. Numbers (xid) count up from the first; deletions come first, so that a full table has room for what
follows. Errors of the switch name a number, which is the place of the change in removed and added ones.
"""

from __future__ import annotations

import numpy as np

from plerion.southbound.openflow.addresses import destinations
from plerion.southbound.openflow.dialect import check_priorities
from plerion.southbound.openflow.messages import MAX_MESSAGE
from plerion.southbound.openflow.octets import Flags, Ints, Shapes, sizes, write
from plerion.southbound.openflow.shapes import Kind, SwitchShapes
from plerion.southbound.openflow.tags import TAGGED
from plerion.update.entries import ANY, Changes, Entries, joined


class EntryTooLong(ValueError):  # noqa: N818 - says what is wrong with the entry
    """More actions than fit into one message; the switch can never hold this entry."""


def flow_mods(of: SwitchShapes, changes: Changes, first_xid: int, bundle: int | None) -> bytes:
    """The changes of one switch, whose rows are `parted`; in a bundle unless it is None."""
    rows = joined([changes.removed, changes.added])
    if not len(rows):
        return b""
    deletes = np.arange(len(rows)) < len(changes.removed)
    check_priorities(int(rows.priority.min()), int(rows.priority.max()))
    destination = destinations(of.plan, rows.epoch, rows.dz)
    whole = (destination[:, 2:] == ~np.uint64(0)).all(axis=1)
    made, shape = _shapes(of, rows, whole, deletes, bundle is not None)
    ports = np.where(deletes[:, np.newaxis], np.uint64(0), rows.ports)
    sized = sizes(made, of.pieces, shape, ports)
    if int(sized.max()) > MAX_MESSAGE:
        raise EntryTooLong(
            f"an entry with this many ports takes more than the {MAX_MESSAGE} bytes of a message"
        )
    ends = np.cumsum(sized)
    out = np.empty(int(ends[-1]), np.uint8)
    write(out, ends, made, of.pieces, shape, destination, rows.priority, ports, first_xid, bundle or 0)
    return out.tobytes()


def _shapes(
    of: SwitchShapes, rows: Entries, whole: Flags, deletes: Flags, bundled: bool
) -> tuple[Shapes, Ints]:
    """The shapes that these rows need, and the one that each row needs."""
    set_vlan = np.where(deletes, ANY, rows.set_vlan)
    untag, bridge = rows.untag & ~deletes, rows.bridge & ~deletes
    flags = (untag, bridge, whole, deletes)
    ranges = (  # what a kind is known by, each with its least value and how many there may be
        (rows.table, 0, 2),
        (_slots(of, rows.in_port), ANY, len(of.pieces.port) + 1),
        (rows.vlan, TAGGED, 1 << 13),
        (set_vlan, ANY, 1 << 13),
        *((flag.astype(np.int64), 0, 2) for flag in flags),
    )
    numbers = np.zeros(len(rows), np.int64)
    for column, least, count in ranges:
        numbers = numbers * count + (column - least)
    _, first, shape = np.unique(numbers, return_index=True, return_inverse=True)
    columns = [column[first].tolist() for column in (rows.table, rows.in_port, rows.vlan, set_vlan, *flags)]
    return of.shapes([Kind(*one) for one in zip(*columns, strict=True)], bundled), shape


def _slots(of: SwitchShapes, ports: Ints) -> Ints:
    """The place of each port among those of the switch; ANY stays."""
    known = of.pieces.port
    found = np.minimum(np.searchsorted(known, ports), max(0, len(known) - 1))
    wrong = (ports != ANY) & (known[found] != ports if len(known) else True)
    if wrong.any():
        raise ValueError(f"{of.switch} has no port {int(ports[wrong][0])}, so no event comes in there")
    return np.where(ports == ANY, ANY, found)
