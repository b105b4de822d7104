"""Compiles what a controller runs on, before anybody waits for it.

Kernels are compiled when they are first called and kept on disk. The first start after an installation takes that time
here, where no switch is connected yet, and not in the first round, where each would think its controller dead.
"""

from __future__ import annotations

from collections.abc import Iterator

from plerion.controller.inputs import (
    Advertise,
    Boxes,
    Input,
    LinkDown,
    LinkUp,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from plerion.controller.load import live, loaded
from plerion.controller.outcome import missing
from plerion.controller.state import Settings, initial
from plerion.controller.step import step
from plerion.flow.entry import no_tables
from plerion.index.content_index import ContentIndex
from plerion.topology.generate import line


def rehearse(index: ContentIndex) -> None:
    """One of each input on a small network, with limits that are met and limits that are not."""
    topology = line(3)
    for limits in ({}, dict.fromkeys(topology.switches, 1)):
        settings = Settings(topology, index, budget=8, tcam=limits)
        state = initial(settings)
        given = list(_inputs(index))
        for received in given:
            state, _ = step(state, received)
        state, _ = loaded(settings, live(given[:4]))
        missing(no_tables(state.fabric), state.table.tables(), topology.switches)


def _inputs(index: ContentIndex) -> Iterator[Input]:
    half: Boxes = (
        tuple(
            (attribute.start, (attribute.start + attribute.end) / 2 if at == 0 else attribute.end)
            for at, attribute in enumerate(index.schema.attributes)
        ),
    )
    yield Advertise("a", "h1", "TRUE")
    yield Advertise("b", "h2", half)
    yield Subscribe("q", "h3", "TRUE")
    yield Subscribe("r", "h2", half)
    yield LinkDown("s1:1")
    yield LinkUp("s1:1")
    yield Unsubscribe("q")
    yield Unadvertise("a")
