"""Numbers in network byte order inside kernels, and the two words of an address."""

import numpy as np
import numpy.typing as npt

from plerion.kernel import Int, Word, kernel

Octets = npt.NDArray[np.uint8]

ADDRESS_BITS = 128


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
def address_words(head: Word, shift: Int, high: Word, low: Word) -> tuple[Word, Word]:
    """The address of a dz (left-aligned in two words) behind the first `shift` bits, which `head` holds."""
    down, up = np.uint64(shift), np.uint64(64 - shift)
    return head | high >> down, high << up | low >> down


@kernel
def dz_words(shift: Int, first: Word, second: Word) -> tuple[Word, Word]:
    """The dz in an address; the inverse of `address_words`."""
    up, down = np.uint64(shift), np.uint64(64 - shift)
    return first << up | second >> down, second << up


@kernel
def mask_words(length: Int) -> tuple[Word, Word]:
    """The netmask with this many leading ones."""
    ones = ~np.uint64(0)
    if length == 0:
        return np.uint64(0), np.uint64(0)
    if length <= 64:
        return ones << np.uint64(64 - length), np.uint64(0)
    return ones, ones << np.uint64(128 - length)
