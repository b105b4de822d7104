"""Who may connect as which switch, and that nobody disturbs the others."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest
import trustme

from benchmarks.mutations import a_packet_in, a_port, message
from plerion.flow.diff import diff
from plerion.flow.entry import no_tables
from plerion.flow.fabric import fabric
from plerion.index.address import AddressPlan
from plerion.index.dz import WHOLE
from plerion.southbound.openflow.driver import OpenFlowSouthbound
from plerion.southbound.openflow.events import (
    NotConnected,
    PacketArrived,
    PortChanged,
    SwitchConnected,
    SwitchEvent,
    SwitchLost,
    SwitchRefused,
    UnknownSwitch,
)
from plerion.southbound.openflow.inbox import Inbox
from plerion.southbound.openflow.phases import USUAL, Timing
from plerion.southbound.openflow.server import STRANGERS, Exposed, Tls
from plerion.southbound.protocol import EntriesRefused
from plerion.topology import SwitchId, ring
from tests.laws.networks import unwritten
from tests.unit.openflow_peer import Peer

NETWORK = ring(3)
S1, S2, S3 = NETWORK.switches
FABRIC = fabric(NETWORK)
PATIENCE_SECONDS = 10.0
E = TypeVar("E", bound=SwitchEvent)


class Stage:
    """A southbound that listens, and peers that end with it."""

    def __init__(self, southbound: OpenFlowSouthbound) -> None:
        self.southbound = southbound
        self.tasks: list[asyncio.Task[None]] = []
        self._events = southbound.events()

    async def peer(
        self,
        dpid: int,
        secured: ssl.SSLContext | None = None,
        auxiliary: int = 0,
        ports: tuple[int, ...] = (1, 2, 3),
    ) -> Peer:
        made = Peer(dpid, auxiliary, ports)
        assert self.southbound.port is not None
        await made.connect(self.southbound.port, secured)
        self.tasks.append(asyncio.create_task(made.serve()))
        return made

    async def event(self, kind: type[E]) -> E:
        """The next event of this kind."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for event in self._events:
                if isinstance(event, kind):
                    return event
        raise AssertionError("events have no end")


@asynccontextmanager
async def stage(tls: Tls | None = None, timing: Timing = USUAL) -> AsyncIterator[Stage]:
    async with OpenFlowSouthbound(NETWORK, timing=timing).listening(port=0, tls=tls) as southbound:
        made = Stage(southbound)
        try:
            yield made
        finally:
            for task in made.tasks:
                task.cancel()
            await asyncio.gather(*made.tasks, return_exceptions=True)


def run(scene: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await scene()

    asyncio.run(whole())


def test_switches_connect_are_told_and_are_lost() -> None:
    async def scene() -> None:
        async with stage() as on:
            southbound, goal = on.southbound, unwritten(FABRIC, {S1: {WHOLE: frozenset({1})}})
            change = diff(no_tables(FABRIC), goal)
            assert await southbound.apply(change) == {S1}
            peer = await on.peer(1)
            assert (await on.event(SwitchConnected)).switch == S1
            assert southbound.connected == {S1}
            assert await southbound.apply(change) == frozenset()
            assert 4 in peer.seen
            peer.writer.close()
            assert await on.event(SwitchLost) == SwitchLost(S1, "the switch hung up")
            assert southbound.connected == frozenset()
            assert await southbound.tables() == goal  # what was last known of it
            with pytest.raises(NotConnected, match="s1 is not connected"):
                await southbound.send_packet(S1, 1, b"x")

    run(scene)


def test_a_switch_that_nobody_knows_is_sent_away_and_reported() -> None:
    async def scene() -> None:
        async with stage() as on:
            await on.peer(77)
            unknown = await on.event(UnknownSwitch)
            assert unknown.id == 77
            assert unknown.address.startswith("127.0.0.1:")
            await on.peer(1, auxiliary=1)
            assert (await on.event(UnknownSwitch)).id == 1
            await asyncio.wait_for(asyncio.gather(*on.tasks), PATIENCE_SECONDS)

    run(scene)


def test_a_second_connection_is_refused_while_the_first_one_lives() -> None:
    async def scene() -> None:
        async with stage() as on:
            await on.peer(1)
            await on.event(SwitchConnected)
            await on.peer(1)
            refused = await on.event(SwitchRefused)
            assert (refused.switch, refused.reason) == (S1, "it is connected already")
            assert on.southbound.connected == {S1}
            await asyncio.wait_for(on.tasks[1], PATIENCE_SECONDS)
            assert not on.tasks[0].done()

    run(scene)


def test_a_dead_connection_is_replaced() -> None:
    async def scene() -> None:
        async with stage() as on:
            dead = await on.peer(1)
            await on.event(SwitchConnected)
            dead.mute = True
            await on.peer(1)
            assert "replaced" in (await on.event(SwitchLost)).reason
            assert (await on.event(SwitchConnected)).switch == S1

    run(scene)


def test_a_switch_that_falls_silent_is_given_up() -> None:
    async def scene() -> None:
        async with stage(timing=Timing(probe=0.1, silence=0.3)) as on:
            peer = await on.peer(1)
            await on.event(SwitchConnected)
            peer.mute = True
            assert (await on.event(SwitchLost)).reason == "silent for 0.3 s"

    run(scene)


def test_one_that_talks_nonsense_ends_alone() -> None:
    async def scene() -> None:
        async with stage() as on:
            await on.peer(2)
            await on.event(SwitchConnected)
            bad = await on.peer(1)
            await on.event(SwitchConnected)
            bad.writer.write(b"\4\x0a\0\3 nonsense")
            lost = await on.event(SwitchLost)
            assert (lost.switch, lost.reason) == (S1, "a message says that it has 3 bytes")
            assert on.southbound.connected == {S2}
            assert await on.southbound.apply(diff(no_tables(FABRIC), no_tables(FABRIC))) == frozenset()

    run(scene)


def test_those_who_connect_and_say_nothing_are_sent_away_in_time() -> None:
    async def scene() -> None:
        async with stage(timing=Timing(handshake=0.3)) as on:
            assert on.southbound.port is not None
            silent = [await asyncio.open_connection("127.0.0.1", on.southbound.port) for _ in range(300)]
            for reader, writer in silent:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    assert len(await reader.read()) <= 8  # our hello, and the end
                writer.close()
            await on.peer(1)
            assert (await on.event(SwitchConnected)).switch == S1

    run(scene)


def test_those_who_connect_and_say_nothing_keep_no_switch_out() -> None:
    async def scene() -> None:
        async with stage() as on:
            assert on.southbound.port is not None
            opening = asyncio.open_connection
            silent = await asyncio.gather(
                *(opening("127.0.0.1", on.southbound.port) for _ in range(STRANGERS + 20))
            )
            await on.peer(1)
            assert (await on.event(SwitchConnected)).switch == S1
            async with asyncio.timeout(PATIENCE_SECONDS):
                assert len(await silent[0][0].read()) <= 8  # the oldest had to go
            for _, writer in silent:
                writer.close()

    run(scene)


def test_a_switch_that_refuses_a_bundle_is_named_with_its_reason() -> None:
    async def scene() -> None:
        async with stage() as on:
            peers = [await on.peer(number) for number in (1, 2)]
            await on.southbound.until_connected([S1, S2], PATIENCE_SECONDS)
            peers[0].refuse = b"\0\5\0\1"
            goal = unwritten(FABRIC, {s: {WHOLE: frozenset({1})} for s in (S1, S2)})
            with pytest.raises(EntriesRefused, match="table full") as refused:
                await on.southbound.apply(diff(no_tables(FABRIC), goal))
            assert (refused.value.switch, refused.value.count) == (S1, 1)

    run(scene)


def test_a_port_that_floods_fills_its_own_share_and_no_more() -> None:
    async def scene() -> None:
        inbox = Inbox[SwitchEvent](packets=100, of_one_port=5)
        for number in range(100):
            inbox.put(PacketArrived(S1, 1, b"%d" % number))
        inbox.put(PacketArrived(S1, 2, b"quiet"))
        inbox.put(SwitchLost(S1, "gone"))
        assert inbox.dropped == 95
        events = inbox.taken()
        first = [await anext(events) for _ in range(5)]
        assert first == [PacketArrived(S1, 1, b"%d" % number) for number in range(5)]
        assert [await anext(events), await anext(events)] == [
            PacketArrived(S1, 2, b"quiet"),
            SwitchLost(S1, "gone"),
        ]
        inbox.put(PacketArrived(S1, 1, b"again"))
        assert await anext(events) == PacketArrived(S1, 1, b"again")

    run(scene)


def test_all_packets_that_wait_are_bounded_and_reports_of_switches_are_not() -> None:
    inbox = Inbox[SwitchEvent](packets=100, of_one_port=5)
    for number in range(107):
        inbox.put(PacketArrived(S1, number, b""))
    assert inbox.dropped == 7
    inbox.put(SwitchLost(S1, "gone"))
    assert inbox.dropped == 7


def test_packets_and_ports_are_reported() -> None:
    async def scene() -> None:
        async with stage() as on:
            peer = await on.peer(1, ports=(1, 2))
            await on.event(SwitchConnected)
            assert await on.event(PortChanged) == PortChanged(S1, 3, False)
            peer.writer.write(a_packet_in(b"hello", 2))
            assert await on.event(PacketArrived) == PacketArrived(S1, 2, b"hello")
            for state in (1, 1, 0):
                peer.writer.write(message(12, bytes([2]) + bytes(7) + a_port(1, state=state)))
            assert await on.event(PortChanged) == PortChanged(S1, 1, False)
            assert await on.event(PortChanged) == PortChanged(S1, 1, True)  # said twice, reported once

    run(scene)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "switch.example", ""])
def test_plain_tcp_is_for_loopback_only(host: str) -> None:
    async def scene() -> None:
        with pytest.raises(Exposed, match="plain TCP is for loopback only"):
            async with OpenFlowSouthbound(NETWORK).listening(host, 0):
                pass

    run(scene)


def test_a_plan_that_switches_cannot_match_is_refused() -> None:
    with pytest.raises(ValueError, match="ipv6"):
        OpenFlowSouthbound(NETWORK, AddressPlan("ipv4"))


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def tls(authority: trustme.CA, tmp_path: Path) -> Tls:
    ours = authority.issue_cert("127.0.0.1")
    ours.private_key_pem.write_to_path(tmp_path / "key.pem")
    ours.cert_chain_pems[0].write_to_path(tmp_path / "certificate.pem")
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    return Tls(tmp_path / "certificate.pem", tmp_path / "key.pem", tmp_path / "authority.pem")


def secured(trusted: trustme.CA, signer: trustme.CA | None, name: str = "s1") -> ssl.SSLContext:
    """The context of a switch with a certificate of this name, or without one."""
    made = ssl.create_default_context()
    trusted.configure_trust(made)
    if signer is not None:
        signer.issue_cert(name).configure_cert(made)
    return made


def test_a_switch_with_its_own_certificate_is_let_in(authority: trustme.CA, tls: Tls) -> None:
    async def scene() -> None:
        async with stage(tls) as on:
            await on.peer(1, secured(authority, authority, "s1"))
            assert (await on.event(SwitchConnected)).switch == S1

    run(scene)


def test_a_switch_with_the_certificate_of_another_one_is_refused(authority: trustme.CA, tls: Tls) -> None:
    async def scene() -> None:
        async with stage(tls) as on:
            await on.peer(2, secured(authority, authority, "s1"))
            refused = await on.event(SwitchRefused)
            assert (refused.switch, refused.reason) == (S2, "its certificate is for s1")
            assert on.southbound.connected == frozenset()

    run(scene)


@pytest.mark.parametrize("signer", [None, trustme.CA()], ids=["no certificate", "another authority"])
def test_without_a_certificate_of_the_authority_nobody_gets_in(
    authority: trustme.CA, tls: Tls, signer: trustme.CA | None
) -> None:
    async def scene() -> None:
        async with stage(tls) as on:
            try:
                stranger = await on.peer(1, secured(authority, signer))
                await asyncio.wait_for(on.tasks[0], PATIENCE_SECONDS)
                assert stranger.seen in ([], [0])  # hung up on before anything was asked
            except (ssl.SSLError, ConnectionError):
                pass
            await on.peer(1, secured(authority, authority))
            assert (await on.event(SwitchConnected)).switch == S1

    run(scene)


def test_waiting_for_switches_ends_and_names_the_missing() -> None:
    async def scene() -> None:
        async with stage() as on:
            await on.peer(1)
            with pytest.raises(TimeoutError, match="s2, s3"):
                await on.southbound.until_connected(timeout=0.5)
            await on.southbound.until_connected([SwitchId("s1")])

    run(scene)
