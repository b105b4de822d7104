"""Inputs that cannot be written down or that are out of bounds are refused before anything follows from them."""

import asyncio
from pathlib import Path

from plerion.content.schema import Number, Schema
from plerion.controller.answer import Answer
from plerion.controller.inputs import Advertise, Boxes, Input, Subscribe
from plerion.controller.journal import Journal
from plerion.controller.service import Controller
from plerion.controller.state import Settings, initial
from plerion.controller.step import Refuse, step
from plerion.flow.fabric import fabric
from plerion.index.propose import regular
from plerion.southbound.simulated import SimulatedSouthbound
from plerion.topology.generate import line

SETTINGS = Settings(line(3), regular(Schema((Number("x", 0, 9, integer=True), Number("y", 0, 1))), 8))


def test_an_input_that_no_journal_can_keep_is_refused_and_the_others_are_installed(tmp_path: Path) -> None:
    async def scenario() -> tuple[list[Answer], int, int]:
        southbound = SimulatedSouthbound(fabric(SETTINGS.topology))
        journal = Journal(tmp_path / "journal", SETTINGS)
        controller = await Controller.start(SETTINGS, journal, southbound)
        sent: list[Input] = [
            Advertise("a", "h1", "TRUE"),
            Subscribe("ok", "h3", "x > 3"),
            Subscribe("\ud800", "h3", "TRUE"),
        ]
        answers = list(await controller.handle_all(sent))
        held = await southbound.tables()
        assert held == controller.state.table.tables()
        return answers, len(held), len(journal)

    answers, entries, kept = asyncio.run(scenario())
    assert [answer.ready for answer in answers] == [True, True, False]
    assert entries > 0
    assert kept == 2


def test_boxes_are_bounded_and_disjoint() -> None:
    def refused(boxes: Boxes) -> bool:
        _, effects = step(initial(SETTINGS), Subscribe("s", "h1", boxes))
        return any(isinstance(effect, Refuse) for effect in effects)

    side = (0.0, 0.5)
    assert not refused((((0.0, 2.0), side), ((2.0, 4.0), side)))
    assert refused((((0.0, 3.0), side), ((2.0, 4.0), side)))
    assert refused(tuple(((i / 10_000, (i + 1) / 10_000), side) for i in range(1_025)))
    assert refused((((0.0, 2.0),),))
