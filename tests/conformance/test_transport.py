"""The loopback transport passes what every transport must; raw and rewrite do in tests/ovs/test_transport.py."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from ipaddress import IPv6Address

import numpy as np
import pytest

from plerion.client.errors import TransportError
from plerion.client.mmsg import LOOPBACK, Datagrams
from plerion.client.place import Listed, Place, chosen, listed
from plerion.client.transport import LoopbackTransport, network_transport
from tests.conformance.transport_laws import Pair, TransportLaws, received


class TestLoopback(TransportLaws):
    @pytest.fixture
    def pair(self) -> Iterator[Pair]:
        with closing(LoopbackTransport()) as one, closing(LoopbackTransport()) as other:
            for receiver in (one, other):
                receiver.listen()
            with closing(LoopbackTransport([one.port, other.port])) as sender:
                yield Pair(
                    sender, (one, other), lambda number: number.to_bytes(16, "big"), LOOPBACK.tobytes()
                )


def test_who_is_reached_may_depend_on_the_address() -> None:
    with closing(LoopbackTransport()) as one, closing(LoopbackTransport()) as other:
        ports = {b"\1" * 16: [one.port], b"\2" * 16: [other.port], b"\3" * 16: []}
        one.listen()
        other.listen()
        with closing(LoopbackTransport(ports.__getitem__)) as sender:
            rows = np.frombuffer(b"".join(ports), np.uint8).reshape(3, 16)
            asyncio.run(sender.send(rows, Datagrams.of([b"first", b"second", b"third"])))
        assert received(one, 1) == [b"first"]
        assert received(other, 1) == [b"second"]
        assert list(one.receive()) == []


LO = Listed(Place(IPv6Address("::1"), "lo"), "00:00:00:00:00:00")
OWN = Listed(Place(IPv6Address("fd00::2"), "eth0"), "02:00:00:00:00:02")
OTHER = Listed(Place(IPv6Address("fd00::3"), "eth1"), "02:00:00:00:00:03")
MACHINE = Listed(Place(IPv6Address("fd00::2"), "eth0"), "52:54:00:12:34:56")  # its own, outside all networks


def test_a_host_is_found_by_its_address_and_the_mac_address_that_goes_with_it() -> None:
    assert chosen([LO, OWN]) == OWN.place
    assert chosen([LO, OTHER]) == OTHER.place
    assert chosen([OTHER, OWN]) == OWN.place, "eth0 is preferred"
    assert chosen([OTHER, OWN], interface="eth1") == OTHER.place
    assert chosen([OTHER, OWN], "fd00::3") == OTHER.place
    assert chosen([MACHINE, OTHER]) == OTHER.place, "nothing leaves by the machine's own interface"


@pytest.mark.parametrize(
    ("found", "asked", "said"),
    [
        (
            [LO, MACHINE],
            (),
            "is no host of a network .*plerion lab exec h1.*fd00::2 on eth0 .52:54:00:12:34:56",
        ),
        ([LO, MACHINE], ("fd00::2", "eth0"), "is no host of a network"),
        ([LO], ("::1",), "is no host of a network"),
        ([], (), "no address that fits .*there are none at all"),
        ([LO, OWN], ("fd00::dead",), "no address that fits .address fd00::dead"),
        ([LO, OWN], ("nonsense",), "'nonsense' is no address"),
        ([LO, OWN], (None, "nosuch0"), "no address that fits .*nosuch0"),
        ([OTHER, OTHER], (), "several addresses that fit"),
    ],
)
def test_what_is_no_place_of_a_host_is_refused_in_one_line(
    found: list[Listed], asked: tuple[str | None, ...], said: str
) -> None:
    with pytest.raises(TransportError, match=said) as refusal:
        chosen(found, *asked)
    assert "\n" not in str(refusal.value)


def test_the_addresses_of_this_machine_are_listed_with_those_of_its_interfaces() -> None:
    (loopback,) = (one for one in listed() if one.place.address == IPv6Address("::1"))
    assert loopback == LO


def test_a_transport_of_an_address_that_is_not_there_says_so() -> None:
    with pytest.raises(TransportError, match="check that this host has the address"):
        network_transport("rewrite", Place(IPv6Address("fd00::dead"), "lo"))
