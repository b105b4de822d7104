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
from plerion.flow.fabric import Fabric
from plerion.index.address import AddressPlan
from plerion.index.dz import WHOLE
from plerion.index.dzset import DzColumns, Lengths, Words
from plerion.kernel import Int, kernel
from plerion.southbound.openflow.messages import MAX_MESSAGE
from plerion.southbound.openflow.octets import ADDRESS_BITS, Octets, address_words, mask_words, put
from plerion.southbound.openflow.pipeline import admission_entry
from plerion.southbound.openflow.shapes import (
    INSTRUCTION,
    Ints,
    Pieces,
    Plan,
    Shapes,
    SwitchShapes,
    plan_words,
    shapes,
)

Kinds = npt.NDArray[np.uint8]

_NO_PIECES = Pieces(np.empty((0, 0), np.uint8), *np.empty((3, 0), np.int64))
_LENGTH, _XID, _BUNDLE, _PRIORITY = 2, 4, 16, 30  # where these stand in a message


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
    plan = plan_words(of.plan)
    whole = dz.length == ADDRESS_BITS - plan.shift
    shape = (2 * deletes + whole).astype(np.int64)[rows]
    kept = np.where(deletes[:, np.newaxis], np.uint64(0), ports)[rows]
    made = of.plain if bundle is None else of.bundled
    return FlowMods(_written(made, of.pieces, plan, shape, dz[rows], kept, first_xid, bundle, True), rows)


def admission_mods(
    fabric: Fabric,
    plan: AddressPlan,
    removed: Sequence[Admission],
    added: Sequence[Admission],
    first_xid: int,
    bundle: int | None,
) -> FlowMods:
    """The changes of what one switch admits; rows count the removed ones first."""
    changed = [*removed, *added]
    ports = sorted({admission.port for admission in changed})
    examples = [Admission(changed[0].switch, port, WHOLE) for port in ports]
    made = shapes([admission_entry(fabric.topology, plan, one) for one in examples], bundle is not None)
    words, dz = plan_words(plan), DzColumns.of(admission.dz for admission in changed)
    kind = np.searchsorted(ports, [admission.port for admission in changed])
    rows = np.arange(len(changed))
    shape = 4 * kind + 2 * (rows < len(removed)) + (dz.length == ADDRESS_BITS - words.shift)
    none = np.zeros((len(changed), 1), np.uint64)
    octets = _written(made, _NO_PIECES, words, shape, dz, none, first_xid, bundle, False)
    return FlowMods(octets, rows)


def _written(
    made: Shapes,
    pieces: Pieces,
    plan: Plan,
    shape: Ints,
    dz: DzColumns,
    ports: Masks,
    first_xid: int,
    bundle: int | None,
    ranked: bool,
) -> bytes:
    ends = np.cumsum(_sizes(made.size, pieces, shape, ports))
    total = int(ends[-1]) if len(ends) else 0
    if len(ends) and int(np.diff(ends, prepend=0).max()) > MAX_MESSAGE:
        raise EntryTooLong(
            f"an entry with this many ports takes more than the {MAX_MESSAGE} bytes of a message"
        )
    out = np.empty(total, np.uint8)
    head, shift = np.uint64(plan.head), plan.shift
    where = (first_xid, bundle or 0, ranked)
    _write(out, ends, made, pieces, head, shift, shape, dz.high, dz.low, dz.length, ports, where)
    return out.tobytes()


@kernel
def _sizes(size: Ints, pieces: Pieces, shape: Ints, ports: Masks) -> Ints:
    found = size[shape]
    for i in range(len(shape)):
        actions = actions_size(pieces, ports[i])
        if actions > 0:
            found[i] += INSTRUCTION + actions
    return found


@kernel
def actions_size(pieces: Pieces, ports: Masks) -> Int:
    total = 0
    for slot in range(len(pieces.size)):
        if (ports[slot >> 6] >> np.uint64(slot & 63)) & np.uint64(1):
            total += pieces.size[slot]
    return total


@kernel
def write_actions(out: Octets, at: Int, pieces: Pieces, ports: Masks) -> Int:
    """An instruction to apply the pieces of these ports, in their order; where it ends."""
    begin = at
    at += INSTRUCTION
    for slot in pieces.order:
        if (ports[slot >> 6] >> np.uint64(slot & 63)) & np.uint64(1):
            out[at : at + pieces.size[slot]] = pieces.octets[slot, : pieces.size[slot]]
            at += pieces.size[slot]
    if at == begin + INSTRUCTION:
        return begin  # nothing to apply: the entry drops, and has no instruction
    put(out, begin, 2, 4)
    put(out, begin + 2, 2, at - begin)
    put(out, begin + 4, 4, 0)
    return at


@kernel
def _write(
    out: Octets,
    ends: Ints,
    made: Shapes,
    pieces: Pieces,
    head: Int,
    shift: Int,
    shape: Ints,
    high: Words,
    low: Words,
    length: Lengths,
    ports: Masks,
    where: tuple[Int, Int, bool],
) -> None:
    first_xid, bundle, ranked = where
    inner = made.wrapping
    for i in range(len(shape)):
        size, begin = made.size[shape[i]], ends[i - 1] if i > 0 else 0
        out[begin : begin + size] = made.octets[shape[i], :size]
        if ends[i] > begin + size:
            write_actions(out, begin + size, pieces, ports[i])
        for start in range(0, inner + 1, max(inner, 1)):
            put(out, begin + start + _LENGTH, 2, ends[i] - begin - start)
            put(out, begin + start + _XID, 4, first_xid + i)
        if inner > 0:
            put(out, begin + _BUNDLE, 4, bundle)
        if ranked:
            rank = np.int64(out[begin + inner + _PRIORITY + 1]) + np.int64(length[i])
            put(out, begin + inner + _PRIORITY, 2, rank)
        first, second = address_words(head, shift, high[i], low[i])
        at = begin + made.address[shape[i]]
        put(out, at, 8, first)
        put(out, at + 8, 8, second)
        if shift + np.int64(length[i]) < 128:
            first, second = mask_words(shift + np.int64(length[i]))
            put(out, at + 16, 8, first)
            put(out, at + 24, 8, second)
