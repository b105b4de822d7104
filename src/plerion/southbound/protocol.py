"""What the controller asks of a data plane."""

from __future__ import annotations

from typing import Protocol

from plerion.flow.diff import Diff
from plerion.flow.entry import Tables


class Southbound(Protocol):
    """Switches that take changes. Whatever stands behind it passes the same conformance suite."""

    async def apply(self, change: Diff) -> None:
        """Returns when every change is in force on every switch that it names. Applying one twice does no harm."""
        ...

    async def tables(self) -> Tables:
        """What the switches hold now, read back from them."""
        ...
