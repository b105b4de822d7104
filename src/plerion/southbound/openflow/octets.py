"""The kernels of this folder: entries written as bytes and read from them, many at once.

They stand apart from all that changes more often, because compiled kernels are kept as long as the modules that they
come from stay as they are. What they must know of the pipeline is given to them. `flowmod` and `readback` say what
they are for; every index is checked here before it is used, for compiled code reads where it is told to.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plerion.kernel import Int, Word, kernel

Octets = npt.NDArray[np.uint8]
Lengths = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]

ADDRESS_BITS = 128
INSTRUCTION = 8  # bytes of an instruction in front of its actions
_LENGTH, _XID, _BUNDLE, _PRIORITY = 2, 4, 16, 30  # where these stand in a message
_ETH_TYPE, _IP_PROTO = 0x8000_0A02, 0x8000_1401
_IPV6_DST, _IPV6_DST_MASKED = 0x8000_3610, 0x8000_3720


class Shapes(NamedTuple):
    """Row 4·n + 2·(deletes) + (whole address) is such a flow-mod of the n-th kind of entry, without its outputs."""

    octets: Octets
    size: Ints
    address: Ints  # where the address stands; its mask follows unless the address is whole
    wrapping: int


class Pieces(NamedTuple):
    """What sends an event out by each slot of a switch, and the order in which slots have their turn."""

    octets: Octets  # (slots, bytes of the longest)
    size: Ints
    order: Ints
    port: Ints  # the number of each slot's port, in order


class Columns(NamedTuple):
    """A row for each entry of an answer; of one that is not understood only the place and the packets count."""

    at: Ints
    understood: Flags
    high: Words
    low: Words
    length: Lengths
    ports: Words  # (rows, words)
    packets: Words


class Addressing(NamedTuple):
    """The bits in front of a dz in its address, and how many they are; what marks an entry of events."""

    head: Word
    shift: int
    cookie: Word
    table: int
    priority: int  # of the whole space


@kernel
def put(out: Octets, at: Int, width: Int, number: Int) -> None:
    """Writes the lowest `width` bytes of the number."""
    for i in range(width):
        out[at + i] = (np.uint64(number) >> np.uint64(8 * (width - 1 - i))) & np.uint64(0xFF)


@kernel
def take(given: Octets, at: Int, width: Int) -> Word:
    number = np.uint64(0)
    for i in range(width):
        number = number << np.uint64(8) | np.uint64(given[at + i])
    return number


@kernel
def mask_words(length: Int) -> tuple[Word, Word]:
    """The netmask with this many leading ones."""
    ones = ~np.uint64(0)
    if length == 0:
        return np.uint64(0), np.uint64(0)
    if length <= 64:
        return ones << np.uint64(64 - length), np.uint64(0)
    return ones, ones << np.uint64(128 - length)


@kernel
def sizes(size: Ints, pieces: Pieces, shape: Ints, ports: Words) -> Ints:
    """The bytes of each message."""
    found = size[shape]
    for i in range(len(shape)):
        actions = 0
        for slot in range(len(pieces.size)):
            if (ports[i, slot >> 6] >> np.uint64(slot & 63)) & np.uint64(1):
                actions += pieces.size[slot]
        if actions > 0:
            found[i] += INSTRUCTION + actions
    return found


@kernel
def write_actions(out: Octets, at: Int, pieces: Pieces, ports: Words) -> Int:
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
def write(
    out: Octets,
    ends: Ints,
    made: Shapes,
    pieces: Pieces,
    plan: Addressing,
    shape: Ints,
    high: Words,
    low: Words,
    length: Lengths,
    ports: Words,
    numbers: tuple[Int, Int, bool],
) -> None:
    """All messages, each up to its end; `numbers` are the first xid, the bundle, and whether the length is a rank."""
    first_xid, bundle, ranked = numbers
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
            put(out, begin + inner + _PRIORITY, 2, plan.priority + np.int64(length[i]))
        _put_network(out, begin + made.address[shape[i]], plan, high[i], low[i], np.int64(length[i]))


@kernel
def _put_network(out: Octets, at: Int, plan: Addressing, high: Word, low: Word, length: Int) -> None:
    """The address of a dz, and its mask unless the address is whole."""
    down, up = np.uint64(plan.shift), np.uint64(64 - plan.shift)
    put(out, at, 8, plan.head | high >> down)
    put(out, at + 8, 8, high << up | low >> down)
    if plan.shift + length < ADDRESS_BITS:
        first, second = mask_words(plan.shift + length)
        put(out, at + 16, 8, first)
        put(out, at + 24, 8, second)


@kernel
def chain(body: Octets) -> Ints:
    """Where each entry of an answer begins; ends with -1 when the lengths do not fit."""
    places = np.empty(len(body) // 56 + 1, np.int64)
    count, at = 0, np.int64(0)
    while at < len(body):
        size = np.int64(take(body, at, 2)) if at + 56 <= len(body) else 0
        match = np.int64(take(body, at + 50, 2)) if size >= 56 and at + size <= len(body) else 0
        if size % 8 or match < 4 or 48 + (match + 7) // 8 * 8 > size:
            places[count] = -1
            return places[: count + 1]
        places[count] = at
        count += 1
        at += size
    return places[:count]


@kernel
def read(body: Octets, rows: Columns, pieces: Pieces, plan: Addressing, scratch: Octets) -> None:
    """Fills the rows of entries of events that say what we would have written, and marks them as understood."""
    up, down = np.uint64(plan.shift), np.uint64(64 - plan.shift)
    for i in range(len(rows.at)):
        at = rows.at[i]
        rows.packets[i] = take(body, at + 32, 8)
        length = np.int64(take(body, at + 12, 2)) - plan.priority
        ours = take(body, at + 24, 8) == plan.cookie and body[at + 2] == plan.table
        timeless = take(body, at + 14, 4) == 0
        if not (ours and timeless and 0 <= length <= ADDRESS_BITS - plan.shift):
            continue
        fits, first, second = _address(body, at + 48, plan.shift + length)
        if not fits or first >> down != plan.head >> down:
            continue
        begin = at + 48 + (np.int64(take(body, at + 50, 2)) + 7) // 8 * 8
        if _ports(body, begin, at + np.int64(take(body, at, 2)), pieces, rows.ports[i], scratch):
            rows.understood[i] = True
            rows.high[i], rows.low[i] = first << up | second >> down, second << up
            rows.length[i] = length


@kernel
def _address(body: Octets, at: Int, length: Int) -> tuple[bool, Word, Word]:
    """The address of a match for events under a prefix of this length; False when it matches anything else."""
    first, second, seen = np.uint64(0), np.uint64(0), 0
    mask_first, mask_second = mask_words(length)
    here, end = at + 4, at + np.int64(take(body, at + 2, 2))
    while here + 4 <= end:
        header = np.int64(take(body, here, 4))
        begin, here = here + 4, here + 4 + (header & 0xFF)
        if here > end:
            break
        if header == _ETH_TYPE and take(body, begin, 2) == np.uint64(0x86DD):
            seen |= 1
        elif header == _IP_PROTO and body[begin] == 17:
            seen |= 2
        elif header == (_IPV6_DST if length == ADDRESS_BITS else _IPV6_DST_MASKED):
            first, second = take(body, begin, 8), take(body, begin + 8, 8)
            exact = length == ADDRESS_BITS or (
                take(body, begin + 16, 8) == mask_first and take(body, begin + 24, 8) == mask_second
            )
            seen |= 4 if exact else 8
        else:
            seen |= 8
    clean = first & ~mask_first == 0 and second & ~mask_second == 0
    return here == end and seen == 7 and clean, first, second


@kernel
def _ports(body: Octets, begin: Int, end: Int, pieces: Pieces, ports: Words, scratch: Octets) -> bool:
    """Collects the ports of an entry's outputs; True when the entry does with them what we would have written."""
    ports[:] = 0
    here = begin + INSTRUCTION
    while here + 16 <= end:
        size = np.int64(take(body, here + 2, 2))
        if size < 8:
            return False
        if take(body, here, 2) == 0:
            number = np.int64(take(body, here + 4, 4))
            slot = np.searchsorted(pieces.port, number)
            if slot == len(pieces.port) or pieces.port[slot] != number:
                return False
            ports[slot >> 6] |= np.uint64(1) << np.uint64(slot & 63)
        here += size
    written = write_actions(scratch, 0, pieces, ports)
    return end - begin == written and bool(np.all(scratch[:written] == body[begin:end]))
