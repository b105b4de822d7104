"""What the controller asks of a data plane."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from plerion.flow.admission import Admission, AdmissionChange
from plerion.flow.diff import Diff
from plerion.flow.entry import Tables
from plerion.topology.graph import SwitchId
from plerion.update.entries import Changes, Entries
from plerion.update.state import Stamp


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


class Updatable(Southbound, Protocol):
    """Switches that also take what plans consist of: entries of two states, and those that stand between them.

    What `Southbound` asks is in the language of one stamp at a time: `apply` and `admit` write entries with that stamp,
    `tables` and `admissions` pass all others over. Between `begin` and `end` entries with any stamp may stand; at any
    other time a switch that connects loses those without the stamp that is spoken.
    """

    def begin(self) -> None:
        """An update is under way: whatever entries of ours a switch holds, it keeps them when it connects.

        A controller that takes up an update after a crash says so before switches connect.
        """
        ...

    async def tell(self, changes: Changes) -> frozenset[SwitchId]:
        """A round's changes, to all switches at once; in force when it returns.

        Answers with the switches that could not be told, and raises `EntriesRefused` when one refuses, which then has
        nothing of its part; all others have theirs. Telling twice, or removing what is not there, does no harm.
        """
        ...

    async def overwrite(self, entries: Entries, switches: Collection[SwitchId]) -> frozenset[SwitchId]:
        """Each of these switches holds exactly the entries that are given for it; no event meets anything in between.

        Answers and raises as `tell` does. What is right already is not touched. For a switch that came back in the
        middle of an update, which may have missed rounds or forgotten all of them.
        """
        ...

    async def entries(self) -> Entries:
        """All entries that switches hold now, with any stamp, in canonical form.

        Of a switch that cannot be asked it is what was last known.
        """
        ...

    def speak(self, stamp: Stamp) -> None:
        """From now on `apply`, `admit`, `tables` and `admissions` speak of entries with this stamp."""
        ...

    async def end(self) -> frozenset[SwitchId]:
        """The update is over: entries without the stamp that is spoken are removed.

        Answers as `tell` does; a switch that could not be told loses them when it connects.
        """
        ...
