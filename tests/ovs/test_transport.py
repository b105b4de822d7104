"""Raw and rewrite pass what every transport must, between two namespaces that one cable joins."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from ipaddress import IPv6Address
from typing import Any, TypeVar
from uuid import uuid4

import pytest

from plerion.client.place import find_place
from plerion.client.transport import Kind, network_transport
from plerion.flow.admission import CONTROL_ADDRESS, EVENT_PORT
from plerion.lab.run import in_namespace
from plerion.topology.graph import mac_beside
from plerion.wire.frame import UdpFrame, build, multicast_mac
from tests.conformance.transport_laws import Pair, TransportLaws, received
from tests.ovs.service_world import PROGRAM

pytestmark = pytest.mark.ovs

T = TypeVar("T")
HERE, THERE = IPv6Address("fd00::1"), IPv6Address("fd00::2")


def ip(*words: str, check: bool = True) -> None:
    subprocess.run(["ip", *words], check=check, capture_output=True)


class Cable:
    """Two hosts set up as a lab sets up its hosts, and nothing between them."""

    def __init__(self) -> None:
        self.names = [f"plt-{uuid4().hex[:8]}-{side}" for side in "ab"]

    def __enter__(self) -> Cable:
        for name in self.names:
            ip("netns", "add", name)
        first, second = self.names
        ip("link", "add", "eth0", "netns", first, "type", "veth", "peer", "name", "eth0", "netns", second)
        for name, address in zip(self.names, (HERE, THERE), strict=True):
            for words in (
                "link set lo up",
                f"link set eth0 address {mac_beside(address)} allmulticast on up",
                f"addr add {address}/64 dev eth0 nodad",
                "-6 rule add pref 10 iif eth0 lookup 77",
                "-6 rule add pref 100 lookup local",
                "-6 rule del pref 0",
                "-6 route add local ff0c::/14 dev eth0 table 77",
            ):
                ip("-n", name, *words.split())
        return self

    def __exit__(self, *_: Any) -> None:
        for name in self.names:
            ip("netns", "del", name, check=False)

    def at(self, host: int, work: Callable[[], T]) -> T:
        return in_namespace(self.names[host], work)


@pytest.fixture(scope="module")
def cable() -> Iterator[Cable]:
    with Cable() as made:
        yield made


def opened(kind: Kind, listens: bool) -> Any:
    made = network_transport(kind, find_place())
    if listens:
        made.listen()
    return made


@contextmanager
def connected(cable: Cable, kind: Kind, address: Callable[[int], bytes]) -> Iterator[Pair]:
    """Sockets stay in the namespace that they were opened in."""
    with (
        closing(cable.at(0, lambda: opened(kind, listens=False))) as sender,
        closing(cable.at(1, lambda: opened(kind, listens=True))) as one,
        closing(cable.at(1, lambda: opened(kind, listens=True))) as other,
    ):
        yield Pair(sender, (one, other), address, HERE.packed)


def event_address(number: int) -> bytes:
    return b"\xff\x0e" + number.to_bytes(14, "big")


def noise(cable: Cable, host: IPv6Address, port: int) -> None:
    """A datagram that is no event."""

    def shout() -> None:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as loud:
            loud.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, socket.if_nametoindex("eth0"))
            loud.sendto(b"noise", (str(host), port))

    cable.at(0, shout)


class TestRaw(TransportLaws):
    @pytest.fixture
    def pair(self, cable: Cable) -> Iterator[Pair]:
        with connected(cable, "raw", event_address) as made:
            yield made

    def test_the_kernel_keeps_everything_but_events_away(self, pair: Pair, cable: Cable) -> None:
        noise(cable, THERE, EVENT_PORT)
        noise(cable, THERE, 9)
        noise(cable, IPv6Address("ff0e::1"), EVENT_PORT + 1)
        noise(cable, IPv6Address("ff18::1"), EVENT_PORT)
        pair.send([b"event"])
        assert received(pair.receivers[0], 1) == [b"event"]

    def test_what_is_sent_to_a_group_is_an_event(self, pair: Pair, cable: Cable) -> None:
        noise(cable, IPv6Address("ff0b::1"), EVENT_PORT)
        noise(cable, IPv6Address("ff0d:500::"), EVENT_PORT)
        noise(cable, IPv6Address("ff1d::1"), EVENT_PORT)
        pair.send([b"event"])
        assert received(pair.receivers[0], 2) == [b"noise", b"event"]

    def test_a_wrong_checksum_is_not_delivered(self, pair: Pair, cable: Cable) -> None:
        to = IPv6Address(event_address(5))
        frame = bytearray(build(UdpFrame(b"\2" * 6, multicast_mac(to), HERE, to, 9, EVENT_PORT, b"good")))

        def inject(bodies: list[bytes]) -> None:
            with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
                wire.bind(("eth0", 0))
                for body in bodies:
                    wire.send(body)

        bad = bytes(frame[:-1]) + b"?"
        cable.at(0, lambda: inject([bad, bytes(frame)]))
        assert received(pair.receivers[0], 1) == [b"good"]

    def test_without_the_capability_the_error_says_what_to_do(self, cable: Cable) -> None:
        program = (
            "from plerion.client.place import find_place\n"
            "from plerion.client.transport import network_transport, TransportError\n"
            "try: network_transport('raw', find_place()).listen()\n"
            "except TransportError as error: print(error)\n"
        )
        said = in_namespace(cable.names[1], lambda: unprivileged(program))
        assert "CAP_NET_RAW" in said


class TestRewrite(TransportLaws):
    """The last switch wrote the host's own address, so here it is sent to at once."""

    @pytest.fixture
    def pair(self, cable: Cable) -> Iterator[Pair]:
        with connected(cable, "rewrite", lambda _: THERE.packed) as made:
            yield made

    def test_the_first_process_takes_the_port_and_another_one_reads_along_or_is_told(
        self, cable: Cable
    ) -> None:
        program = (
            "from plerion.client.place import find_place\n"
            "from plerion.client.transport import network_transport, TransportError\n"
            "first = network_transport('rewrite', find_place())\n"
            "first.listen()\n"
            "try: network_transport('rewrite', find_place()).listen()\n"
            "except TransportError as error: print(error)\n"
        )
        said = in_namespace(cable.names[1], lambda: unprivileged(program))
        assert "another process receives" in said
        with connected(cable, "rewrite", lambda _: THERE.packed) as pair:
            noise(cable, THERE, 9)
            pair.send([b"event"])
            assert [received(receiver, 1) for receiver in pair.receivers] == [[b"event"], [b"event"]]


def test_a_machine_that_is_no_host_is_told_so_and_sends_nothing(cable: Cable) -> None:
    def watched() -> socket.socket:
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        opened.bind(("eth0", 0))
        return opened

    def asked() -> subprocess.CompletedProcess[str]:
        words = [PROGRAM, "sub", "TRUE", "--deadline", "0.1"]
        return subprocess.run(words, check=False, capture_output=True, text=True)

    def said_to_the_controller() -> int:
        count = 0
        with suppress(BlockingIOError):
            while True:
                count += watching.recv(4096)[38:54] == CONTROL_ADDRESS.packed
        return count

    with closing(cable.at(1, watched)) as watching:
        watching.setblocking(False)
        silent = cable.at(0, asked)
        assert "no answer to Join" in silent.stderr
        assert said_to_the_controller() > 0, "the watcher can tell"
        ip("-n", cable.names[0], "link", "set", "eth0", "address", "52:54:00:12:34:56")
        try:
            refused = cable.at(0, asked)
        finally:
            ip("-n", cable.names[0], "link", "set", "eth0", "address", str(mac_beside(HERE)))
        assert refused.returncode == 2
        (line,) = refused.stderr.splitlines()
        assert "is no host of a network" in line
        assert said_to_the_controller() == 0


def unprivileged(program: str) -> str:
    """What a program prints that may not open raw sockets."""
    words = ["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw", sys.executable, "-c", program]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout
