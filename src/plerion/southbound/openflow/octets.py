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

INSTRUCTION = 8  # bytes of an instruction in front of its actions
_LENGTH, _XID, _BUNDLE, _PRIORITY = 2, 4, 16, 30  # where these stand in a message
_IN_PORT, _ETH_TYPE, _IP_PROTO = 0x8000_0004, 0x8000_0A02, 0x8000_1401
_VLAN, _VLAN_MASKED, _IPV6_DST, _IPV6_DST_MASKED = 0x8000_0C02, 0x8000_0D04, 0x8000_3610, 0x8000_3720
_TAG, _ANY, _UNTAGGED, _TAGGED = 0x1000, -1, 0, -2
_OUTPUT, _POP_TAG = 0, 18


class Shapes(NamedTuple):
    """Flow-mods of some kinds without what differs from one to the next, each with where its address stands."""

    octets: Octets
    size: Ints
    address: Ints  # where the address stands; its mask follows where `masked`
    masked: Flags
    untags: Flags  # tags are taken off before hosts
    wrapping: int


class Pieces(NamedTuple):
    """What sends an event out by each slot of a switch, and the orders in which slots have their turn."""

    octets: Octets  # (slots, bytes of the longest)
    size: Ints
    order: Ints  # (2, slots): where nothing is taken off, and where tags are
    hosts: int  # in the second order the first of those that lead to hosts
    port: Ints  # the number of each slot's port, in order
    untagging: Octets
    to_us: Octets  # a whole instruction


class Rows(NamedTuple):
    """A row for each entry of an answer; of one that is not `ours` only the place and the packets count."""

    at: Ints
    ours: Flags
    in_port: Ints
    vlan: Ints
    priority: Ints
    destination: Words  # (rows, 4): address and mask
    ports: Words  # (rows, words)
    untag: Flags
    bridge: Flags
    packets: Words


class Home(NamedTuple):
    """Where entries that forward stand, and their mark."""

    table: int
    cookie: Word


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
def has(ports: Words, slot: Int) -> bool:
    return bool((ports[slot >> 6] >> np.uint64(slot & 63)) & np.uint64(1))


@kernel
def sizes(made: Shapes, pieces: Pieces, shape: Ints, ports: Words) -> Ints:
    """The bytes of each message."""
    found = made.size[shape]
    for i in range(len(shape)):
        actions, to_hosts = 0, False
        for at in range(len(pieces.size)):
            slot = pieces.order[1, at]
            if has(ports[i], slot):
                actions += pieces.size[slot]
                to_hosts |= at >= pieces.hosts
        if actions > 0:
            found[i] += INSTRUCTION + actions
            found[i] += len(pieces.untagging) if to_hosts and made.untags[shape[i]] else 0
    return found


@kernel
def write_actions(out: Octets, at: Int, pieces: Pieces, ports: Words, untags: bool) -> Int:
    """An instruction to apply the pieces of these ports, in their order; where it ends."""
    begin, tagged = at, untags
    at += INSTRUCTION
    for place in range(len(pieces.size)):
        slot = pieces.order[1 if untags else 0, place]
        if has(ports, slot):
            if tagged and place >= pieces.hosts:
                out[at : at + len(pieces.untagging)] = pieces.untagging
                at += len(pieces.untagging)
                tagged = False
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
    shape: Ints,
    destination: Words,
    priority: Ints,
    ports: Words,
    first_xid: Int,
    bundle: Int,
) -> None:
    """All messages, each up to its end."""
    inner = made.wrapping
    for i in range(len(shape)):
        size, begin = made.size[shape[i]], ends[i - 1] if i > 0 else 0
        out[begin : begin + size] = made.octets[shape[i], :size]
        if ends[i] > begin + size:
            write_actions(out, begin + size, pieces, ports[i], made.untags[shape[i]])
        for start in range(0, inner + 1, max(inner, 1)):
            put(out, begin + start + _LENGTH, 2, ends[i] - begin - start)
            put(out, begin + start + _XID, 4, first_xid + i)
        if inner > 0:
            put(out, begin + _BUNDLE, 4, bundle)
        put(out, begin + inner + _PRIORITY, 2, priority[i])
        for word in range(4 if made.masked[shape[i]] else 2):
            put(out, begin + made.address[shape[i]] + 8 * word, 8, destination[i, word])


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
def read(body: Octets, rows: Rows, pieces: Pieces, home: Home, scratch: Octets) -> None:
    """Fills the rows of entries that forward and say what we would have written; whose address, is not looked at."""
    for i in range(len(rows.at)):
        at = rows.at[i]
        rows.packets[i] = take(body, at + 32, 8)
        rows.priority[i] = np.int64(take(body, at + 12, 2))
        ours = take(body, at + 24, 8) == home.cookie and body[at + 2] == home.table
        timeless = take(body, at + 14, 4) == 0
        if not (ours and timeless and rows.priority[i] > 0 and _matches(body, at + 48, rows, i)):
            continue
        begin = at + 48 + (np.int64(take(body, at + 50, 2)) + 7) // 8 * 8
        rows.ours[i] = _does(body, begin, at + np.int64(take(body, at, 2)), pieces, rows, i, scratch)


@kernel
def _matches(body: Octets, at: Int, rows: Rows, i: Int) -> bool:
    """Fills in what an entry matches; False when that is anything but events."""
    rows.in_port[i], rows.vlan[i], seen = _ANY, _ANY, 0
    rows.destination[i, 2:] = ~np.uint64(0)
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
        elif header in (_IPV6_DST, _IPV6_DST_MASKED):
            for word in range((header & 0xFF) // 8):
                rows.destination[i, word] = take(body, begin + 8 * word, 8)
            seen |= 4
        elif header == _IN_PORT:
            rows.in_port[i] = np.int64(take(body, begin, 4))
        elif header in (_VLAN, _VLAN_MASKED):
            rows.vlan[i] = _vlan(np.int64(take(body, begin, header & 0xFF)), header == _VLAN_MASKED)
            seen |= 0 if rows.vlan[i] != _ANY else 8
        else:
            seen |= 8
    return here == end and seen == 7


@kernel
def _vlan(told: Int, masked: bool) -> Int:
    """What a match of tags means; ANY for what we never write."""
    if masked:
        return _TAGGED if told == _TAG << 16 | _TAG else _ANY
    if told == 0:
        return _UNTAGGED
    return told - _TAG if told > _TAG and told < 2 * _TAG else _ANY


@kernel
def _does(body: Octets, begin: Int, end: Int, pieces: Pieces, rows: Rows, i: Int, scratch: Octets) -> bool:
    """Collects what an entry does; True when it does that just as we would have written it."""
    ports, untag = rows.ports[i], False
    ports[:] = 0
    if end - begin == len(pieces.to_us) and np.all(body[begin:end] == pieces.to_us):
        rows.bridge[i] = True
        return True
    here = begin + INSTRUCTION
    while here + 8 <= end:
        size = np.int64(take(body, here + 2, 2))
        if size < 8:
            return False
        kind = take(body, here, 2)
        untag |= kind == np.uint64(_POP_TAG)
        if kind == np.uint64(_OUTPUT):
            number = np.int64(take(body, here + 4, 4))
            slot = np.searchsorted(pieces.port, number)
            if slot == len(pieces.port) or pieces.port[slot] != number:
                return False
            ports[slot >> 6] |= np.uint64(1) << np.uint64(slot & 63)
        here += size
    rows.untag[i] = untag
    if untag and rows.vlan[i] in (_ANY, _UNTAGGED):
        return False
    written = write_actions(scratch, 0, pieces, ports, untag)
    return end - begin == written and bool(np.all(scratch[:written] == body[begin:end]))
