"""The switches as a controller knows them: who can be told, who is behind, and who refuses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from logging import getLogger

from plerion.controller.outcome import Outcome, missing, missing_admissions
from plerion.controller.state import State
from plerion.flow.admission import Admission, admission_change
from plerion.flow.diff import coalesced
from plerion.southbound.protocol import EntriesRefused, Southbound
from plerion.topology.graph import SwitchId

log = getLogger(__name__)


@dataclass(slots=True)
class Tally:
    """What a controller did since it started."""

    rounds: int = 0
    accepted: int = 0
    refused: int = 0
    withdrawn: int = 0  # taken back because a switch refused
    changes: int = 0  # of tables and admissions, told to switches
    repaired: int = 0  # those of them that a switch lacked when it was compared


class Switches:
    """Tells switches what follows from a state; a switch is `behind` when it may lack some of it."""

    def __init__(self, southbound: Southbound, tally: Tally) -> None:
        self.behind: set[SwitchId] = set()
        self.refusing: dict[SwitchId, str] = {}  # those behind that do not take what they lack: why
        self._southbound = southbound
        self._tally = tally
        self._lost_meanwhile: set[SwitchId] = set()  # while others, or they themselves, were compared

    def lost(self, switch: SwitchId) -> None:
        self.behind.add(switch)
        self._lost_meanwhile.add(switch)

    async def tell(self, state: State, outcomes: Iterable[Outcome], before: frozenset[Admission]) -> None:
        """What the outcomes ask of the switches, whose edge admitted `before`; who cannot be told falls behind."""
        changes = [outcome.change for outcome in outcomes if outcome.change is not None]
        missed: frozenset[SwitchId] = frozenset()
        if changes and len(change := coalesced(changes)):
            missed |= await self._southbound.apply(change)
            self._tally.changes += len(change)
        # The edge comes last, and as one change: one input may take back what another one was admitted.
        if edge := admission_change(before, state.admitted):
            missed |= await self._southbound.admit(edge)
            self._tally.changes += len(edge)
        self.behind |= missed.difference(state.dead_switches)

    async def bring(self, state: State, switches: frozenset[SwitchId]) -> int:
        """Compares these switches with what they should hold and sends the difference; the number of changes."""
        count = 0
        self._lost_meanwhile.clear()
        while switches:
            try:
                missed, count = await self._repair(state, switches)
            except EntriesRefused as refusal:
                log.error("%s; what it holds stays as it is", refusal)
                self.behind.add(refusal.switch)
                self.refusing[refusal.switch] = refusal.reason
                switches -= {refusal.switch}
                continue
            for switch in switches:
                self.refusing.pop(switch, None)
            self.behind -= switches - self._lost_meanwhile
            self.behind |= missed.difference(state.dead_switches)
            break
        return count

    async def _repair(self, state: State, switches: frozenset[SwitchId]) -> tuple[frozenset[SwitchId], int]:
        change = missing(await self._southbound.tables(), state.table.tables(), switches)
        missed = await self._southbound.apply(change)
        edge = missing_admissions(await self._southbound.admissions(), state.admitted, switches)
        missed |= await self._southbound.admit(edge)
        count = len(change) + len(edge)
        self._tally.changes += count
        self._tally.repaired += count
        return missed & switches, count
