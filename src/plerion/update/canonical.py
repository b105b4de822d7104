"""One way to say what an entry does: two entries that treat every event alike are equal columns afterwards."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from plerion.update.entries import ANY, UNTAGGED, Entries, Table


def canonical(entries: Entries) -> Entries:
    """The same entries, none saying more than it does.

    What goes to the controller goes nowhere else and keeps its tag; the edge has no ports; a tag that is there already
    is not set, and none is taken off where none is or no host follows.
    """
    edge = entries.table == Table.EDGE
    idle = entries.bridge | (edge & (entries.set_vlan == entries.vlan))
    forwards = ~edge & ~entries.bridge
    untags = entries.untag & forwards & (entries.vlan != UNTAGGED) & to_hosts(entries)
    ports = np.where(forwards[:, np.newaxis], entries.ports, np.uint64(0))
    return replace(entries, ports=ports, set_vlan=np.where(idle, ANY, entries.set_vlan), untag=untags)


def to_hosts(entries: Entries) -> npt.NDArray[np.bool_]:
    """Which entries have an output that leads to a host."""
    found: npt.NDArray[np.bool_] = np.any(entries.ports & entries.fabric.host_ports[entries.switch], axis=1)
    return found
