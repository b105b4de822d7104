"""One switch as the driver knows it: how it is told, what it was last known to hold, and who is at the other end."""

from __future__ import annotations

from plerion.southbound.openflow.cache import nudge
from plerion.southbound.openflow.connection import Connection, ConnectionLost
from plerion.southbound.openflow.flowmod import EntryTooLong
from plerion.southbound.openflow.inspection import MANY, aside, held
from plerion.southbound.openflow.pipeline import EXACTLY, OURS, OURS_MASK, Purpose
from plerion.southbound.openflow.readback import sorted_out
from plerion.southbound.openflow.repair import Bundle, Target, repair
from plerion.southbound.openflow.shadow import Shadow
from plerion.southbound.openflow.shapes import SwitchShapes
from plerion.southbound.openflow.tags import parted, told
from plerion.southbound.protocol import EntriesRefused
from plerion.update.entries import Changes, Entries, Table


class RemoteSwitch:
    """Rows here are `parted`: each is one entry of the switch. Whatever needs the switch raises `ConnectionLost`."""

    def __init__(self, shapes: SwitchShapes) -> None:
        self.shapes = shapes
        self.connection: Connection | None = None
        self._shadow = Shadow(shapes.fabric)
        self._turn = 0

    @property
    def rows(self) -> Entries:
        """What it was last known to hold."""
        return self._shadow.rows()

    async def tell(self, changes: Changes, *, in_update: bool) -> bool:
        """The changes are in force when it returns, but for what the switch has in its cache; whether a turn was made.

        At rest a longer dz stands over a shorter one, and only deletions widen what the cache may keep. In an update a
        wide entry may stand over many, so what is added does as well.
        """
        part = told(changes)
        connection = self._connected()
        async with connection.changing:
            turns = await self._send(connection, Bundle(part, in_update or len(part.removed) > 0))
            self._shadow.record(part)
            return turns

    async def overwrite(self, entries: Entries) -> bool:
        """It holds exactly these; what it holds of them already is not touched."""
        wanted = parted(entries)
        return await self.repair(self._connected(), lambda _: wanted)

    async def repair(self, connection: Connection, target: Target) -> bool:
        """Reads the switch back whole and brings it to the target, and its furniture in order."""
        async with connection.changing:
            found = await held(self.shapes, connection)
            work = await aside(len(found) > MANY, repair, self.shapes, found, target)
            self._turn = work.turn
            turns = len(work.bundle) > 0 and await self._send(connection, work.bundle)
            self._shadow.replace(work.rows)
            return turns

    async def nudge(self) -> None:
        """The switch looks through its cache once more."""
        connection = self._connected()
        async with connection.changing:
            await connection.change(1, lambda xid, bundle: nudge(self._turn, xid, bundle))

    async def read(self, purpose: Purpose | None = None) -> None:
        """Brings what is known of it up to date, of one purpose or of all."""
        connection = self._connected()
        cookie, mask = (OURS, OURS_MASK) if purpose is None else (purpose.cookie, EXACTLY)
        async with connection.changing:
            found = await held(self.shapes, connection, cookie, mask)
            rows, _ = await aside(len(found.others) > MANY, sorted_out, self.shapes, found)
            table = {Purpose.ADMISSION: Table.EDGE, Purpose.FORWARDING: Table.FORWARDING}
            self._shadow.replace(rows, None if purpose is None else table[purpose])

    async def _send(self, connection: Connection, bundle: Bundle) -> bool:
        def write(first_xid: int, number: int) -> bytes:
            return bundle.write(self.shapes, self._turn, first_xid, number)

        count = len(bundle.changes) + len(bundle.stale) + len(bundle.missing)
        try:
            errors = await connection.change(len(bundle), write)
        except EntryTooLong as error:
            raise EntriesRefused(self.shapes.switch, str(error), count) from None
        if errors:
            # The error of a message says more than that of the bundle.
            _, worst = max(errors, key=lambda found: found[0])
            raise EntriesRefused(self.shapes.switch, worst.reason, count)
        self._turn ^= bundle.turns
        return bundle.turns

    def _connected(self) -> Connection:
        if self.connection is None:
            raise ConnectionLost("not connected")
        return self.connection
