"""Looking into a connected switch: what it holds and what it counts."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

from plerion.southbound.openflow.connection import Connection, ConnectionLost
from plerion.southbound.openflow.decode import port_counters, table_counters
from plerion.southbound.openflow.events import SwitchStatistics
from plerion.southbound.openflow.messages import MalformedMessage, Part
from plerion.southbound.openflow.pipeline import OURS, OURS_MASK, RULE, TABLES, Purpose
from plerion.southbound.openflow.readback import Found, Held, read_back
from plerion.southbound.openflow.shapes import SwitchShapes

LARGE_ANSWER = 1 << 18  # bytes; such an answer is read in a thread, so that no other switch waits for it
MANY = 1000  # entries that are looked at one by one in the event loop

P = ParamSpec("P")
R = TypeVar("R")


async def aside(large: bool, work: Callable[P, R], *given: P.args, **named: P.kwargs) -> R:
    """The result of pure work; what may take long is done beside the event loop."""
    return await asyncio.to_thread(work, *given, **named) if large else work(*given, **named)


async def held(
    of: SwitchShapes, connection: Connection, cookie: int = OURS, cookie_mask: int = OURS_MASK
) -> Held:
    """The switch's entries with this cookie. One that answers nonsense is hung up on."""
    body = await connection.rows(Part.FLOWS, cookie, cookie_mask)
    try:
        return await aside(len(body) > LARGE_ANSWER, read_back, of, body)
    except MalformedMessage as error:
        connection.close(str(error))
        raise ConnectionLost(str(error)) from None


async def statistics(of: SwitchShapes, connection: Connection) -> SwitchStatistics:
    told = await held(of, connection)
    tables = table_counters(await connection.rows(Part.TABLES))
    ports = port_counters(await connection.rows(Part.PORTS))
    packets = Counter({Purpose.FORWARDING: int(told.packets.sum())})
    for one in told.others:
        if one.cookie & 0xFFFF_FFFF in set(Purpose):
            packets[Purpose(one.cookie & 0xFFFF_FFFF)] += one.packets
    return SwitchStatistics(
        of.switch,
        {row.table: row.entries for row in tables if row.table in TABLES},
        dict(packets),
        tuple(row for row in ports if row.number in of.fabric.topology.ports(of.switch)),
        {
            one.entry.match.in_port: one.packets
            for one in _standing(told.others, "refused")
            if one.entry is not None and one.entry.match.in_port is not None
        },
        sum(one.packets for one in _standing(told.others, "strangers")),
        sum(one.packets for one in _standing(told.others, "unwanted")),
    )


def _standing(others: Sequence[Found], name: str) -> list[Found]:
    """The furniture of one rule."""
    rule = RULE[name]
    return [
        one
        for one in others
        if (one.table, one.priority, one.cookie) == (rule.table, rule.priority, rule.purpose.cookie)
    ]
