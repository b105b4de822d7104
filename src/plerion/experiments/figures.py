"""Every figure by name, and the work on one point as text in, text out: what travels over the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import msgspec

from plerion.content.errors import InputError, suggestion
from plerion.experiments import (
    closed_loop,
    combined,
    dimension,
    dz_length,
    indexing,
    lab_delay,
    lab_reconfiguration,
    lab_throughput,
    runtime,
    update_index,
    update_room,
    update_tree,
)
from plerion.experiments.figure import Figure, Point, Row

_COMPUTED: Final = (indexing, dimension, runtime, combined, dz_length)
_EMULATED: Final = (update_room, closed_loop, update_index, update_tree)
_MEASURED: Final = (lab_delay, lab_throughput, lab_reconfiguration)

FIGURES: Final[Mapping[str, Figure]] = {
    figure.name: figure for module in (*_COMPUTED, *_EMULATED, *_MEASURED) for figure in module.FIGURES
}


def named(names: list[str]) -> list[Figure]:
    """The figures of these names, all of them for none."""
    for name in names:
        if name not in FIGURES:
            raise InputError(f"there is no figure {name!r}", suggestion(name, tuple(FIGURES)))
    return [FIGURES[name] for name in names or FIGURES]


def points(figure: Figure, scale: float, seeds: int, directory: str) -> list[str]:
    """All that has to be computed, as JSON; the seeds of one place of the plot beside each other."""
    return [
        msgspec.json.encode(replace(start, seed=seed, scale=scale, directory=directory)).decode()
        for start in figure.starts
        for seed in range(1, seeds + 1)
    ]


def work(point: str) -> str:
    """The rows of a point, both as JSON."""
    read = msgspec.json.decode(point, type=Point)
    return msgspec.json.encode(FIGURES[read.figure].rows(read)).decode()


def read_rows(text: str) -> list[Row]:
    return msgspec.json.decode(text, type=list[Row])
