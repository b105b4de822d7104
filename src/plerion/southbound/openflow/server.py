"""Where switches connect: who may, over what, and that a switch has one connection.

Plain TCP is for loopback only. Anywhere else both sides show certificates of one authority, and the name of a switch
must stand in its certificate, so a switch can speak for nobody but itself.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from plerion.southbound.openflow.connection import Connection, ConnectionLost
from plerion.southbound.openflow.events import SwitchRefused, UnknownSwitch
from plerion.southbound.openflow.messages import PacketIn, PortStatus
from plerion.southbound.openflow.phases import USUAL, Timing
from plerion.topology.graph import SwitchId

ALIVE_SECONDS = 2.0  # in which a connected switch must answer when another one claims its name
STRANGERS = 256  # connections at a time that have not yet said who they are; one more sends the oldest away


class Exposed(ValueError):  # noqa: N818 - says what the address is
    """Switches would be told what to do over a network by anybody who can reach it."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Files in PEM form: our certificate with its key, and the authority that signs those of the switches."""

    certificate: Path
    key: Path
    authority: Path

    def context(self) -> ssl.SSLContext:
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        made.verify_mode = ssl.CERT_REQUIRED
        made.load_cert_chain(self.certificate, self.key)
        made.load_verify_locations(self.authority)
        return made


def check_exposure(host: str, tls: Tls | None) -> None:
    if tls is None and not _is_loopback(host):
        raise Exposed(
            f"plain TCP is for loopback only, not for {host!r}: give certificates, or listen on 127.0.0.1"
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


Serve = Callable[[SwitchId, Connection], Awaitable[None]]
Arrive = Callable[[SwitchId, PacketIn | PortStatus], None]


class SwitchServer:
    """Takes connections, finds out which switch each one is, and hands it to `serve` until it ends."""

    def __init__(
        self,
        ids: Mapping[int, SwitchId],
        serve: Serve,
        arrive: Arrive,
        report: Callable[[UnknownSwitch | SwitchRefused], None],
        timing: Timing = USUAL,
    ) -> None:
        self._ids, self._serve, self._arrive, self._report = ids, serve, arrive, report
        self._timing = timing
        self._holders: dict[SwitchId, Connection] = {}
        self._claims: dict[SwitchId, asyncio.Lock] = {}
        self._strangers: dict[Connection, None] = {}  # in the order in which they came
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listening(self, host: str, port: int, tls: Tls | None) -> AsyncIterator[int]:
        """Listens; gives the port, which is one that was free when 0 was asked for."""
        check_exposure(host, tls)
        secured = None if tls is None else tls.context()
        patience = None if secured is None else self._timing.handshake
        server = await asyncio.start_server(
            self._met, host, port, ssl=secured, ssl_handshake_timeout=patience, limit=1 << 20, backlog=512
        )
        try:
            yield int(server.sockets[0].getsockname()[1])
        finally:
            server.close()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(server.wait_closed(), 1.0)

    async def _met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._accompany(reader, writer)
        except asyncio.CancelledError:
            pass  # we stop listening; the stream's own callback would log it as an error
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _accompany(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        named: list[SwitchId] = []
        early: list[PacketIn | PortStatus] = []

        def arrived(message: PacketIn | PortStatus) -> None:
            if named:
                self._arrive(named[0], message)
            elif len(early) < 1024:
                early.append(message)

        connection = Connection(reader, writer, arrived, self._timing)
        serving = asyncio.create_task(connection.serve())
        try:
            switch = await self._identified(connection)
            if switch is not None:
                named.append(switch)
                for message in early:
                    self._arrive(switch, message)
                await self._serve(switch, connection)
        except ConnectionLost:
            pass  # before it was anybody
        finally:
            connection.close("closed here")
            for holder, held in list(self._holders.items()):
                if held is connection:
                    del self._holders[holder]
            await serving

    async def _identified(self, connection: Connection) -> SwitchId | None:
        """The switch at the other end, None when it is not let in."""
        if len(self._strangers) >= STRANGERS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.close("it said nothing while many others came")
        self._strangers[connection] = None
        try:
            features = await connection.features
        finally:
            self._strangers.pop(connection, None)
        switch = self._ids.get(features.dpid)
        if switch is None or features.auxiliary:
            self._report(UnknownSwitch(features.dpid, connection.address))
            return None
        names = connection.certificate_names()
        if names is not None and switch not in names:
            reason = f"its certificate is for {', '.join(sorted(names)) or 'nobody'}"
            self._report(SwitchRefused(switch, connection.address, reason))
            return None
        async with self._claims.setdefault(switch, asyncio.Lock()):
            held = self._holders.get(switch)
            if held is not None and await held.answers(ALIVE_SECONDS):
                self._report(SwitchRefused(switch, connection.address, "it is connected already"))
                return None
            if held is not None:
                held.close("replaced by another connection of the same switch")
            self._holders[switch] = connection
        return switch
