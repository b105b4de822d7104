"""Which events a sample keeps: a function of the event's id and the rate, and of nothing else.

Whoever logs an event or one of its deliveries decides alike, without talking to each other, so sampled events and
sampled deliveries join. A sample at a lower rate is part of one at a higher rate.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from plerion.eventlog.records import Ints, LogError

Words = npt.NDArray[np.uint64]

LEAST_RATE: Final = 2.0**-32


def checked_rate(rate: float) -> float:
    """The rate, or LogError for one at which counts could not be scaled back."""
    if not LEAST_RATE <= rate <= 1:
        raise LogError(f"a sampling rate of {rate}", "use one above 0 (at least 2**-32) and at most 1")
    return float(rate)


def kept(publishers: pa.Array, sequences: Ints, rate: float) -> npt.NDArray[np.bool_]:
    """Whether each (publisher, sequence) is in the sample: about `rate` of them are, 1 keeps all."""
    if rate == 1:
        return np.ones(len(sequences), bool)
    names = publishers.dictionary_encode()
    salts = np.array([_salt(name) for name in names.dictionary.to_pylist()], np.uint64)
    words = _mixed(_mixed(sequences.astype(np.uint64)) ^ salts[names.indices.to_numpy()])
    return np.asarray(words < np.uint64(int(rate * 2.0**64)))


def _salt(name: str) -> int:
    return int.from_bytes(sha256(name.encode()).digest()[:8], "little")


def _mixed(words: Words) -> Words:
    """The finaliser of splitmix64: every bit of the result hangs on every bit of the word."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
