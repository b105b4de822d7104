"""Frames of hosts: a repetition costs nothing while its request is worked on, and is answered again afterwards."""

import asyncio
from ipaddress import IPv6Address

from plerion.content.schema import Number, Schema
from plerion.controller.announce import packed
from plerion.controller.desk import Desk
from plerion.controller.inband import InBand
from plerion.controller.lease import Leases
from plerion.controller.quota import Quotas
from plerion.controller.service import Controller
from plerion.controller.state import Settings
from plerion.flow.admission import CONTROL_ADDRESS, CONTROL_PORT
from plerion.flow.fabric import fabric
from plerion.index.address import AddressPlan
from plerion.index.propose import regular
from plerion.southbound.simulated import SimulatedSouthbound
from plerion.topology import line
from plerion.topology.graph import HostId, SwitchId, ipv6, mac
from plerion.wire.control import Join, Ready, Reply, Request, Subscribe, decode_reply, encode
from plerion.wire.description import Description
from plerion.wire.frame import UdpFrame, build, mac_bytes, parse
from plerion.wire.segment import Reassembly, segments

NETWORK = line(2)
INDEX = regular(Schema((Number("x", 0, 100),)), 8)
HOST = HostId("h1")
PLACE = NETWORK.attachment(HOST)
SESSION = "0123456789abcdef"


def frame(request: Request) -> bytes:
    (payload,) = segments(encode(request), request.number)
    own = mac_bytes(mac(NETWORK, HOST)), IPv6Address(ipv6(NETWORK, HOST))
    group = b"\x33\x33" + CONTROL_ADDRESS.packed[-4:]
    return build(UdpFrame(own[0], group, own[1], CONTROL_ADDRESS, 40_000, CONTROL_PORT, payload))


async def scene() -> tuple[InBand, list[Reply]]:
    replies: list[Reply] = []

    async def send(_switch: SwitchId, _port: int, octets: bytes) -> None:
        message = Reassembly().receive("h1", parse(octets).payload, 0.0)
        assert message is not None
        replies.append(decode_reply(message))

    controller = await Controller.start(Settings(NETWORK, INDEX), None, SimulatedSouthbound(fabric(NETWORK)))
    desk = Desk(packed(Description(INDEX, AddressPlan(), "raw")), Leases(), Quotas())
    return InBand(NETWORK, controller, desk, send), replies


async def until(replies: list[Reply], count: int) -> None:
    async with asyncio.timeout(60):
        while len(replies) < count:
            await asyncio.sleep(0)


def test_a_request_that_is_repeated_while_it_is_worked_on_is_answered_once_and_later_again() -> None:
    async def repeated() -> None:
        inband, replies = await scene()
        inband.arrived(PLACE, frame(Join(1, SESSION, 30.0)), 0.0)
        await until(replies, 1)
        asked = frame(Subscribe(2, SESSION, "hot", "x > 50"))
        for _ in range(3):
            inband.arrived(PLACE, asked, 1.0)
        await until(replies, 2)
        assert replies[1:] == [Ready(2)]
        assert inband.tally.repeats == 2
        inband.arrived(PLACE, asked, 2.0)
        await until(replies, 3)
        assert replies[2:] == [Ready(2)]
        assert inband.tally.repeats == 2

    asyncio.run(repeated())


def test_another_request_is_no_repetition() -> None:
    async def different() -> None:
        inband, replies = await scene()
        inband.arrived(PLACE, frame(Join(1, SESSION, 30.0)), 0.0)
        await until(replies, 1)
        for number in (2, 3):
            inband.arrived(PLACE, frame(Subscribe(number, SESSION, f"hot{number}", "x > 50")), 1.0)
        await until(replies, 3)
        assert {reply.number for reply in replies[1:]} == {2, 3}
        assert inband.tally.repeats == 0

    asyncio.run(different())
