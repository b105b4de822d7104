"""What a controller answers, and who waits for it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from plerion.controller.inputs import Input
from plerion.controller.outcome import Outcome
from plerion.topology.graph import SwitchId


@dataclass(frozen=True, slots=True)
class Answer:
    """*ready* when `reason` is None: every path that the input asks for is in force."""

    reason: str | None = None

    @property
    def ready(self) -> bool:
        return self.reason is None


@dataclass(slots=True)
class Asked:
    """An input on its way through a round."""

    received: Input
    answer: asyncio.Future[Answer] | None = None  # None: nobody waits
    began: float = 0.0
    outcome: Outcome | None = None

    def fail(self, error: Exception) -> None:
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(error)


def full_table(switch: SwitchId, reason: str) -> str:
    """Why an interest is refused that a switch has no room for."""
    return f"{switch} does not take the entries that this needs: {reason}"
