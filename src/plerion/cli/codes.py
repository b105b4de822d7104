"""Codes and covers as CSV, a million lines a second."""

from __future__ import annotations

from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from plerion.index.cover import Covers
from plerion.index.dzset import DzColumns
from plerion.index.encode import Codes

_ROWS = 1 << 17  # at a time: the bits of a row take 128 bytes


def write_codes(file: IO[bytes], codes: Codes) -> None:
    """`event,dz`."""
    names = pa.array(codes.event)
    _write(file, "event", names, codes.dz)


def write_covers(file: IO[bytes], ids: tuple[str, ...], covers: Covers) -> None:
    """`subscription,dz`."""
    rows = np.repeat(np.arange(len(covers)), np.diff(covers.offsets))
    _write(file, "subscription", pa.array(ids, pa.string()).take(pa.array(rows)), covers.dz)


def _write(file: IO[bytes], column: str, names: pa.Array, dz: DzColumns) -> None:
    schema = pa.schema([(column, names.type), ("dz", pa.string())])
    plain = (
        not pa.types.is_string(names.type) or not pc.any(pc.match_substring_regex(names, '[",\r\n]')).as_py()
    )
    options = pyarrow.csv.WriteOptions(quoting_style="none" if plain else "needed", quoting_header="none")
    with pyarrow.csv.CSVWriter(file, schema, write_options=options) as csv:
        for first in range(0, len(dz), _ROWS):
            rows = slice(first, first + _ROWS)
            csv.write_batch(pa.record_batch([names[rows], _bit_strings(dz[rows])], schema=schema))


def _bit_strings(dz: DzColumns) -> pa.Array:
    """Each dz as digits 0 and 1: the words taken apart, and of each row as many as its length."""
    words = np.stack((dz.high, dz.low), axis=1).astype(">u8").view(np.uint8).reshape(len(dz), 16)
    digits = np.unpackbits(words, axis=1) + np.uint8(ord("0"))
    kept = np.arange(128) < dz.length[:, None]
    offsets = np.concatenate(([0], np.cumsum(dz.length, dtype=np.int64))).astype(np.int32)
    text = digits[kept].tobytes()
    return pa.StringArray.from_buffers(len(dz), pa.py_buffer(offsets), pa.py_buffer(text))
