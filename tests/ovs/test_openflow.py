"""The driver on real Open vSwitch: refusals, losses, repairs, packets, ports, counters and certificates."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from ipaddress import IPv6Address
from pathlib import Path
from struct import pack
from typing import TypeVar

import pytest
import trustme

from benchmarks.openflow import main as measure
from plerion.flow.admission import CONTROL_ADDRESS, CONTROL_PORT, EVENT_PORT, Admission, AdmissionChange
from plerion.flow.diff import diff
from plerion.flow.entry import Tables, no_tables
from plerion.flow.fabric import fabric
from plerion.index.address import AddressPlan
from plerion.index.dz import MAX_LENGTH, WHOLE, Dz
from plerion.southbound.openflow.driver import OpenFlowSouthbound
from plerion.southbound.openflow.events import (
    PacketArrived,
    PortChanged,
    SwitchConnected,
    SwitchEvent,
    SwitchLost,
    SwitchRefused,
    SwitchStatistics,
    UnknownSwitch,
)
from plerion.southbound.openflow.pipeline import Purpose, furniture
from plerion.southbound.openflow.server import Tls
from plerion.southbound.protocol import EntriesRefused
from plerion.topology import HostId, ipv6, mac, ring
from tests.laws.networks import unwritten
from tests.ovs.daemon import OpenVSwitch, open_vswitch

pytestmark = pytest.mark.ovs

NETWORK = ring(3)
FABRIC = fabric(NETWORK)
S1, S2, S3 = NETWORK.switches
NOTHING = no_tables(FABRIC)
HOST_PORT = 3  # of each switch of the ring
PATIENCE_SECONDS = 20.0
E = TypeVar("E", bound=SwitchEvent)


@pytest.fixture(scope="module")
def switch() -> Iterator[OpenVSwitch]:
    """One daemon for the module; every test makes the bridges anew."""
    with open_vswitch() as made:
        yield made


@pytest.fixture
def bridges(switch: OpenVSwitch) -> Iterator[OpenVSwitch]:
    switch.add_bridges({name: number for number, name in enumerate(NETWORK.switches, start=1)})
    for name in NETWORK.switches:
        switch.add_ports(name, NETWORK.ports(name))
    yield switch
    switch.vsctl(*(word for name in switch.bridges() for word in ("--", "del-br", name)))


@asynccontextmanager
async def driven(switch: OpenVSwitch) -> AsyncIterator[OpenFlowSouthbound]:
    """A driver with all switches connected."""
    async with OpenFlowSouthbound(NETWORK).listening(port=0) as southbound:
        switch.connect(NETWORK.switches, f"tcp:127.0.0.1:{southbound.port}")
        await southbound.until_connected(timeout=PATIENCE_SECONDS)
        yield southbound


async def event(southbound: OpenFlowSouthbound, kind: type[E]) -> E:
    """The next event of this kind."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for one in southbound.events():
            if isinstance(one, kind):
                return one
    raise AssertionError("events have no end")


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Waits for a condition, for a bounded time."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not await holds():
        assert time.monotonic() < give_up, "it never came true"
        await asyncio.sleep(0.02)


def table(count: int, *switches: str) -> Tables:
    names = switches or NETWORK.switches
    return unwritten(
        FABRIC, {s: {Dz(i, 12): frozenset({1}) for i in range(count)} for s in NETWORK.switches if s in names}
    )


def frame(host: str, destination: IPv6Address, port: int, payload: bytes = b"payload") -> bytes:
    """A UDP packet of this host, as it stands on the wire; nobody here checks its sum."""
    known = HostId(host)
    source = IPv6Address(ipv6(NETWORK, known)).packed
    udp = pack("!HHHH", 5000, port, 8 + len(payload), 0xFFFF) + payload
    ip = pack("!IHBB", 6 << 28, len(udp), 17, 64) + source + destination.packed
    ethernet = bytes.fromhex("333300000001" + mac(NETWORK, known).replace(":", "")) + b"\x86\xdd"
    return ethernet + ip + udp


def host_of(switch: str) -> str:
    peer = NETWORK.peer(switch, HOST_PORT)
    assert peer is not None
    return peer.node


def address(code: str) -> IPv6Address:
    full = Dz.parse(code.ljust(MAX_LENGTH, "0"))
    found = AddressPlan().address(full)
    assert isinstance(found, IPv6Address)
    return found


def test_a_full_table_is_refused_whole_and_the_others_are_told(bridges: OpenVSwitch) -> None:
    bridges.vsctl(
        *("--", "--id=@small", "create", "Flow_Table", "flow_limit=11", "overflow_policy=refuse"),
        *("--", "set", "Bridge", "s1", "flow_tables:1=@small"),
    )

    async def scene() -> None:
        async with driven(bridges) as southbound:
            before = table(5)
            await southbound.apply(diff(NOTHING, before))
            with pytest.raises(EntriesRefused, match="table full") as refused:
                await southbound.apply(diff(before, table(20)))
            assert (refused.value.switch, refused.value.count) == (S1, 15)
            assert (await southbound.tables()).sizes() == {S1: 5, S2: 20, S3: 20}
            # What goes makes room for what comes, in the same change.
            other = unwritten(FABRIC, {S1: {Dz(i, 9): frozenset({2}) for i in range(10)}})
            await southbound.apply(diff(table(5, "s1"), other))
            assert list((await southbound.tables()).entries(S1)) == list(other.entries(S1))

    asyncio.run(scene())


def test_a_switch_that_was_lost_is_remembered_and_read_again_when_it_is_back(bridges: OpenVSwitch) -> None:
    async def scene() -> None:
        async with driven(bridges) as southbound:
            for _ in NETWORK.switches:
                await event(southbound, SwitchConnected)
            held = table(30)
            await southbound.apply(diff(NOTHING, held))
            bridges.stop_switch()
            lost = {(await event(southbound, SwitchLost)).switch for _ in NETWORK.switches}
            assert lost == set(NETWORK.switches)
            assert await southbound.tables() == held  # what was last known
            assert await southbound.apply(diff(held, table(31))) == lost
            assert await southbound.tables() == held
            bridges.start_switch()
            back = {(await event(southbound, SwitchConnected)).switch for _ in NETWORK.switches}
            assert back == lost
            assert await southbound.tables() == NOTHING  # it forgot, and we asked
            await southbound.apply(diff(NOTHING, table(31)))
            assert await southbound.tables() == table(31)

    asyncio.run(scene())


def test_on_connecting_only_what_differs_is_repaired(bridges: OpenVSwitch) -> None:
    foreign = "cookie=0x77,table=0,priority=5,ip,actions=drop"
    nonsense = "cookie=0x506c657200000003,table=1,priority=3000,udp6,ipv6_dst=ff0e::/16,actions=output:1"
    lasting = "cookie=0x506c657200000001/-1,table=0,in_port=1"

    def age() -> float:
        (line,) = [one for one in bridges.ofctl("dump-flows", "s1", lasting).splitlines() if "table=0" in one]
        return float(line.split("duration=")[1].split("s")[0])

    async def scene() -> None:
        kept, admission = table(4), Admission(S1, HOST_PORT, Dz(1, 3))
        async with driven(bridges) as southbound:
            await southbound.apply(diff(NOTHING, kept))
            await southbound.admit(AdmissionChange(frozenset({admission})))
        bridges.ofctl("add-flow", "s1", foreign)
        bridges.ofctl("add-flow", "s1", nonsense)
        bridges.ofctl("del-flows", "s1", "table=0,in_port=2")
        before = age()
        async with driven(bridges) as southbound:
            assert await southbound.tables() == kept
            assert await southbound.admissions() == {admission}
        flows = bridges.ofctl("dump-flows", "s1")
        assert "cookie=0x77" in flows
        assert "priority=3000" not in flows
        assert flows.count("cookie=0x506c657200000001") == len(furniture(NETWORK, S1)) + 1  # and a turn
        assert age() >= before  # was right, so nobody touched it

    asyncio.run(scene())


def test_control_packets_reach_us_and_answers_leave(bridges: OpenVSwitch) -> None:
    async def scene() -> None:
        async with driven(bridges) as southbound:
            asked = frame(host_of("s2"), CONTROL_ADDRESS, CONTROL_PORT, b"x" * 1200)
            bridges.control.call("netdev-dummy/receive", f"s2p{HOST_PORT}", asked.hex())
            assert await event(southbound, PacketArrived) == PacketArrived(S2, HOST_PORT, asked)
            lldp = bytes.fromhex("0180c200000e0200000000ff88cc") + bytes(46)
            bridges.control.call("netdev-dummy/receive", "s2p1", lldp.hex())
            assert await event(southbound, PacketArrived) == PacketArrived(S2, 1, lldp)
            await southbound.send_packet(S2, HOST_PORT, frame("h1", address("1"), EVENT_PORT))

            async def sent() -> bool:
                ports = (await southbound.statistics(S2)).ports
                return {port.number: port.sent for port in ports}.get(HOST_PORT) == 1

            await until(sent)

    asyncio.run(scene())


def test_what_was_not_advertised_is_dropped_and_counted(bridges: OpenVSwitch) -> None:
    async def scene() -> None:
        async with driven(bridges) as southbound:
            await southbound.admit(AdmissionChange(frozenset({Admission(S1, HOST_PORT, Dz.parse("10"))})))
            await southbound.apply(diff(NOTHING, unwritten(FABRIC, {S1: {WHOLE: frozenset({1})}})))
            own, other = host_of("s1"), host_of("s2")
            for sender, code in ((own, "10"), (own, "10"), (own, "11"), (other, "10"), (other, "11")):
                sent = frame(sender, address(code), EVENT_PORT)
                bridges.control.call("netdev-dummy/receive", f"s1p{HOST_PORT}", sent.hex())

            async def counted() -> SwitchStatistics:
                bridges.control.call("revalidator/wait")
                return await southbound.statistics(S1)

            async def all_seen() -> bool:
                return (await counted()).refused[HOST_PORT] == 3

            await until(all_seen)
            found = await counted()
            assert found.packets[Purpose.ADMISSION] == found.packets[Purpose.FORWARDING] == 2
            assert {port.number: port.sent for port in found.ports}[1] == 2
            # Of the furniture all but one, a turn and an admission; and one entry beside the last of it.
            assert found.entries == {0: len(furniture(NETWORK, S1)) + 1, 1: 2}

    asyncio.run(scene())


def test_a_port_that_goes_down_and_comes_back_is_reported(bridges: OpenVSwitch) -> None:
    async def scene() -> None:
        async with driven(bridges) as southbound:
            bridges.vsctl("--", "del-port", "s1", "s1p2")
            assert await event(southbound, PortChanged) == PortChanged(S1, 2, False)
            bridges.add_ports("s1", [2])
            assert await event(southbound, PortChanged) == PortChanged(S1, 2, True)
            bridges.ofctl("mod-port", "s3", "s3p1", "down")
            assert await event(southbound, PortChanged) == PortChanged(S3, 1, False)

    asyncio.run(scene())


def test_a_bridge_with_an_id_of_nobody_is_sent_away(bridges: OpenVSwitch) -> None:
    async def scene() -> None:
        async with driven(bridges) as southbound:
            bridges.add_bridges({"stranger": 4711})
            bridges.connect(["stranger"], f"tcp:127.0.0.1:{southbound.port}")
            assert (await event(southbound, UnknownSwitch)).id == 4711
            assert await southbound.apply(diff(NOTHING, table(3))) == frozenset()

    asyncio.run(scene())


def test_over_tls_a_switch_is_who_its_certificate_says(bridges: OpenVSwitch, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    for name in ("127.0.0.1", "s1"):
        issued = authority.issue_cert(name)
        issued.private_key_pem.write_to_path(tmp_path / f"{name}.key")
        issued.cert_chain_pems[0].write_to_path(tmp_path / f"{name}.pem")
    tls = Tls(tmp_path / "127.0.0.1.pem", tmp_path / "127.0.0.1.key", tmp_path / "authority.pem")
    files = [str(tmp_path / file) for file in ("s1.key", "s1.pem", "authority.pem")]
    bridges.vsctl("set-ssl", *files)

    async def scene() -> None:
        async with OpenFlowSouthbound(NETWORK).listening(port=0, tls=tls) as southbound:
            bridges.connect(["s1", "s2"], f"ssl:127.0.0.1:{southbound.port}")
            refused = await event(southbound, SwitchRefused)
            assert (refused.switch, refused.reason) == (S2, "its certificate is for s1")
            await southbound.until_connected([S1], PATIENCE_SECONDS)
            assert southbound.connected == {S1}
            held = table(2000, "s1")
            assert await southbound.apply(diff(NOTHING, held)) == frozenset()
            assert await southbound.tables() == held

    asyncio.run(scene())


def test_the_measurement_of_flow_mods_runs(capsys: pytest.CaptureFixture[str]) -> None:
    measure(["switch", "1000"])
    assert "ovs-ofctl" in capsys.readouterr().out
