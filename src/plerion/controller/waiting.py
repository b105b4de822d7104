"""Who was accepted and is not answered yet, because a switch that they rely on is behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plerion.controller.answer import Answer, Asked, full_table
from plerion.controller.reliance import Reliance
from plerion.controller.state import State
from plerion.controller.switches import Switches
from plerion.topology.graph import SwitchId

Tell = Callable[[Asked, Answer], None]


class Waiting:
    """Answers are given as soon as nothing that they rely on is behind; all are looked at again when that changes."""

    def __init__(self) -> None:
        self._waiting: list[Asked] = []
        self._lacked: frozenset[SwitchId] = frozenset()  # when those were last looked at

    def __len__(self) -> int:
        return len(self._waiting)

    def look(self, fresh: Sequence[Asked], state: State, switches: Switches, tell: Tell) -> list[Asked]:
        """Tells whoever can be told; gives the withdrawals of those who are refused after all."""
        lacking = frozenset(switches.behind.difference(state.dead_switches))
        looked_at = fresh if lacking == self._lacked else [*self._waiting, *fresh]
        kept = self._waiting if lacking == self._lacked else []
        self._lacked = lacking
        reliance, undone = Reliance(state), list[Asked]()
        for one in looked_at:
            answer, undo = _answer(one, lacking, switches, reliance)
            if answer is None:
                kept.append(one)
                continue
            tell(one, answer)
            undone += [] if undo is None else [undo]
        self._waiting = kept
        return undone


def _answer(
    one: Asked, lacking: frozenset[SwitchId], switches: Switches, reliance: Reliance
) -> tuple[Answer | None, Asked | None]:
    """None while somebody is waited for; when a full table is why, a refusal and what takes the input back."""
    assert one.outcome is not None, "it was stepped"
    needed = lacking and (one.outcome.touched & lacking) | reliance.of(one.received, lacking)
    if not needed:
        return Answer(), None
    full = next((switch for switch in needed if switch in switches.refusing), None)
    if full is None or one.outcome.undo is None:
        return None, None
    return Answer(full_table(full, switches.refusing[full])), Asked(one.outcome.undo)
