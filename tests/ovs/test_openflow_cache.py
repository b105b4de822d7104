"""Events go where the tables say, whatever the cache of Open vSwitch made of earlier tables."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from time import monotonic

import pytest

from plerion.flow.diff import diff
from plerion.flow.entry import FlowEntry, no_tables, tables_of
from plerion.flow.fabric import fabric
from plerion.index.dz import Dz
from plerion.southbound.openflow.driver import OpenFlowSouthbound
from plerion.topology import SwitchId, ring
from tests.ovs.daemon import OpenVSwitch, open_vswitch

pytestmark = pytest.mark.ovs

S1 = SwitchId("s1")
TRANSIT, LEFT, RIGHT = 1, 2, 3

# Each table is followed by an event. The second one makes the switch keep a verdict for 0xd0 alone, the third one for
# all of 0xc0 to 0xff, the fourth must correct both, and the fifth leaves nothing but the first of them.
STORY: tuple[tuple[Mapping[str, tuple[int, ...]], int], ...] = (
    ({"": (LEFT,), "01": (RIGHT,), "10": (RIGHT,)}, 0x10),
    ({"": (LEFT,), "01": (RIGHT,), "10": (RIGHT,), "11010001": ()}, 0xD0),
    ({"": (LEFT,), "01": (RIGHT,), "10": (RIGHT,)}, 0xD4),
    ({"": (LEFT, RIGHT), "01": (RIGHT,), "10": (RIGHT,)}, 0xD4),
    ({"": (LEFT, RIGHT), "01": (RIGHT,), "10": (RIGHT,), "1111": ()}, 0xD0),
)


@pytest.fixture
def switch() -> Iterator[OpenVSwitch]:
    with open_vswitch() as made:
        made.add_bridges({"s1": 1})
        made.add_ports("s1", [TRANSIT, LEFT, RIGHT])
        made.vsctl(
            "--", "--id=@t", "create", "Flow_Table", "name=t", "prefixes=ipv6_dst,ipv6_src",
            "--", "set", "Bridge", "s1", "flow_tables:0=@t", "flow_tables:1=@t",
        )  # fmt: skip
        yield made


def left_by(switch: OpenVSwitch, event: int) -> set[int]:
    """The ports that an event leaves by; it is sent twice, so that the second one meets what the switch kept."""
    before, give_up = counters(switch), monotonic() + 10
    flow = (
        "in_port(1),eth(src=02:00:00:00:00:09,dst=33:33:00:00:00:00),eth_type(0x86dd),"
        f"ipv6(src=fd00::9,dst=ff0e:{event:x}00::,label=0,proto=17,tclass=0,hlimit=64,frag=no),udp(src=40000,dst=20706)"
    )
    for _ in range(2):
        switch.control.call("netdev-dummy/receive", "s1p1", flow)
    while (after := counters(switch))["rx"][TRANSIT] < before["rx"][TRANSIT] + 2:
        assert monotonic() < give_up, "the switch does not read"
    return {port for port, count in after["tx"].items() if count == before["tx"][port] + 2}


def counters(switch: OpenVSwitch) -> dict[str, dict[int, int]]:
    """Packets of each port in either direction."""
    told = switch.ofctl("dump-ports", "s1")
    found = re.findall(r"port\s+\"?(?:s1p)?(\d)\"?: rx pkts=(\d+).*?tx pkts=(\d+)", told, re.DOTALL)
    return {
        "rx": {int(port): int(count) for port, count, _ in found},
        "tx": {int(port): int(count) for port, _, count in found},
    }


def settle(switch: OpenVSwitch) -> None:
    for _ in range(2):
        switch.control.call("revalidator/wait")


def test_open_vswitch_alone_keeps_a_wrong_verdict_where_two_lie_over_each_other(switch: OpenVSwitch) -> None:
    went = set[int]()
    for table, event in STORY:
        lines = [
            f"priority={100 + len(dz)},udp6,ipv6_dst=ff0e:{int(dz.ljust(8, '0'), 2):x}00::/{16 + len(dz)},"
            f"actions={','.join(f'output:{port}' for port in ports) or 'drop'}"
            for dz, ports in table.items()
        ]
        (switch.directory / "flows").write_text("\n".join(lines) + "\n")
        switch.ofctl("replace-flows", "s1", f"{switch.directory}/flows")
        settle(switch)
        went = left_by(switch, event)
    version = switch.run("ovs-vswitchd", "--version").split()[3]
    assert went == {LEFT} or not version.startswith("3.1."), (
        f"{version} went by {went}: are turns still needed?"
    )


def test_events_leave_by_the_ports_of_the_table_whatever_was_kept_of_earlier_ones(
    switch: OpenVSwitch,
) -> None:
    network = ring(3)

    async def told() -> None:
        southbound = OpenFlowSouthbound(network)
        async with southbound.listening(port=0):
            switch.connect(["s1"], f"tcp:127.0.0.1:{southbound.port}")
            await southbound.until_connected([S1])
            before = no_tables(fabric(network))
            for table, event in STORY:
                entries = [FlowEntry(Dz.parse(dz), frozenset(ports)) for dz, ports in table.items()]
                after = tables_of(fabric(network), {S1: entries})
                await southbound.apply(diff(before, after))
                settle(switch)
                wanted = max((dz for dz in table if f"{event:08b}".startswith(dz)), key=len)
                assert left_by(switch, event) == set(table[wanted]), (event, table)
                before = after

    asyncio.run(told())


def test_a_switch_has_one_turn_and_keeps_it_over_a_reconnect(switch: OpenVSwitch) -> None:
    network = ring(3)

    def turns() -> list[str]:
        return re.findall(r"nw_(tos|ecn)=", switch.ofctl("dump-flows", "s1", "table=0"))

    async def told(deletions: int) -> None:
        southbound = OpenFlowSouthbound(network)
        async with southbound.listening(port=0):
            switch.connect(["s1"], f"tcp:127.0.0.1:{southbound.port}")
            await southbound.until_connected([S1])
            none, some = (
                tables_of(fabric(network), {S1: entries})
                for entries in ([], [FlowEntry(Dz.parse("1"), frozenset([LEFT]))])
            )
            for _ in range(deletions):
                await southbound.apply(diff(none, some))
                await southbound.apply(diff(some, none))

    asyncio.run(told(0))
    assert turns() == ["tos"]
    asyncio.run(told(1))
    assert turns() == ["ecn"]
    asyncio.run(told(0))
    assert turns() == ["ecn"]
    asyncio.run(told(3))
    assert turns() == ["tos"]
