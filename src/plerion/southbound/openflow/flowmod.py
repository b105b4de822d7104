"""Many flow-mods at once: columns in, bytes out, and not a line of Python for each.

The bytes are what `codec.encode` gives for the same entries, one message after the other (a law), at some hundred
times its pace. Numbers (xid) count up from the first; deletions come first, so that a full table has room for what
follows. Errors of the switch name a number, and `FlowMods.rows` tells which change that was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plerion.flow.admission import Admission
from plerion.flow.diff import Kind
from plerion.flow.entry import Masks
from plerion.index.dzset import DzColumns
from plerion.southbound.openflow.messages import MAX_MESSAGE
from plerion.southbound.openflow.octets import ADDRESS_BITS, Addressing, Ints, Pieces, Shapes, sizes, write
from plerion.southbound.openflow.pipeline import host_at
from plerion.southbound.openflow.shapes import SwitchShapes

Kinds = npt.NDArray[np.uint8]

_NO_PIECES = Pieces(np.empty((0, 0), np.uint8), *np.empty((3, 0), np.int64))


class EntryTooLong(ValueError):  # noqa: N818 - says what is wrong with the entry
    """More actions than fit into one message; the switch can never hold this entry."""


@dataclass(frozen=True, slots=True, eq=False)
class FlowMods:
    """Encoded changes; message i says change `rows[i]`."""

    octets: bytes
    rows: Ints

    def __len__(self) -> int:
        return len(self.rows)


def forwarding_mods(
    of: SwitchShapes, dz: DzColumns, kind: Kinds, ports: Masks, first_xid: int, bundle: int | None
) -> FlowMods:
    """The changes of one switch's table, given as the columns of a `Diff`; in a bundle unless it is None."""
    deletes = kind == Kind.DELETE
    rows = np.argsort(~deletes, kind="stable")
    plan = of.addressing
    whole = dz.length == ADDRESS_BITS - plan.shift
    shape = (2 * deletes + whole).astype(np.int64)[rows]
    kept = np.where(deletes[:, np.newaxis], np.uint64(0), ports)[rows]
    made = of.plain if bundle is None else of.bundled
    return FlowMods(_written(made, of.pieces, plan, shape, dz[rows], kept, first_xid, bundle, True), rows)


def admission_mods(
    of: SwitchShapes, removed: Sequence[Admission], added: Sequence[Admission], first_xid: int, bundle: int
) -> FlowMods:
    """The changes of what one switch admits; rows count the removed ones first."""
    changed = [*removed, *added]
    for one in changed:
        host_at(of.fabric.topology, of.switch, one.port)  # raises where no host is
    plan, dz = of.addressing, DzColumns.of(one.dz for one in changed)
    kind = np.array([of.host_ports.index(one.port) for one in changed], np.int64)
    rows = np.arange(len(changed))
    shape = 4 * kind + 2 * (rows < len(removed)) + (dz.length == ADDRESS_BITS - plan.shift)
    none = np.zeros((len(changed), 1), np.uint64)
    octets = _written(of.admissions, _NO_PIECES, plan, shape, dz, none, first_xid, bundle, False)
    return FlowMods(octets, rows)


def _written(
    made: Shapes,
    pieces: Pieces,
    plan: Addressing,
    shape: Ints,
    dz: DzColumns,
    ports: Masks,
    first_xid: int,
    bundle: int | None,
    ranked: bool,
) -> bytes:
    sized = sizes(made.size, pieces, shape, ports)
    ends = np.cumsum(sized)
    total = int(ends[-1]) if len(ends) else 0
    if len(ends) and int(sized.max()) > MAX_MESSAGE:
        raise EntryTooLong(
            f"an entry with this many ports takes more than the {MAX_MESSAGE} bytes of a message"
        )
    out = np.empty(total, np.uint8)
    numbers = (first_xid, bundle or 0, ranked)
    write(out, ends, made, pieces, plan, shape, dz.high, dz.low, dz.length, ports, numbers)
    return out.tobytes()
