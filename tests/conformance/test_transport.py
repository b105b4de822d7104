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
from plerion.client.place import Place, find_place
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


def test_a_place_that_the_host_does_not_have_is_refused_with_those_it_has() -> None:
    with pytest.raises(TransportError, match="no address"):
        find_place("fd00::dead")
    with pytest.raises(TransportError, match="is no address"):
        find_place("nonsense")
    with pytest.raises(TransportError, match="nosuch0"):
        find_place(interface="nosuch0")


def test_a_transport_of_an_address_that_is_not_there_says_so() -> None:
    with pytest.raises(TransportError, match="check that this host has the address"):
        network_transport("rewrite", Place(IPv6Address("fd00::dead"), "lo"))
