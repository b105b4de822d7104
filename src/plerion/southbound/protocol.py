"""What the controller asks of a data plane."""

from __future__ import annotations

from typing import Protocol

from plerion.flow.admission import Admission, AdmissionChange
from plerion.flow.diff import Diff
from plerion.flow.entry import Tables
from plerion.topology.graph import SwitchId


class EntriesRefused(RuntimeError):  # noqa: N818 - an answer, not a mistake
    """A switch did not take entries, for example because its table is full; none of that switch's part is in force."""

    def __init__(self, switch: SwitchId, reason: str, count: int) -> None:
        super().__init__(f"{switch} refused {count} changes of its table: {reason}")
        self.switch, self.reason, self.count = switch, reason, count


class Southbound(Protocol):
    """Switches that take changes. Whatever stands behind it passes the same conformance suite.

    `apply` and `admit` answer with the switches that could not be told, because nobody can talk to them now; for all
    others the change is in force when they return. They raise `EntriesRefused` when a switch refuses, and applying
    a change twice does no harm.
    """

    async def apply(self, change: Diff) -> frozenset[SwitchId]: ...

    async def admit(self, change: AdmissionChange) -> frozenset[SwitchId]: ...

    async def tables(self) -> Tables:
        """What the switches hold now, read back from them; of one that cannot be asked, what was last known."""
        ...

    async def admissions(self) -> frozenset[Admission]:
        """The same of what they admit."""
        ...
