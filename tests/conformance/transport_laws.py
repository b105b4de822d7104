"""What every client transport does, whatever network is behind it. Give `TransportLaws` a pair and it is tested."""

from __future__ import annotations

import asyncio
import select
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from plerion.client.mmsg import BATCH, Addresses, Datagrams
from plerion.client.transport import Transport
from plerion.wire.event import MAX_BYTES

PATIENCE_SECONDS = 20.0


@dataclass(slots=True)
class Pair:
    """A publisher's transport at one host, and those of two processes of another host, which listen."""

    sender: Transport
    receivers: tuple[Transport, Transport]
    address: Callable[[int], bytes]  # of an event with this number
    source: bytes  # the address of the publisher's host

    def send(self, bodies: list[bytes]) -> None:
        rows = b"".join(self.address(number) for number in range(len(bodies)))
        addresses: Addresses = np.frombuffer(rows, np.uint8).reshape(-1, 16)
        asyncio.run(self.sender.send(addresses, Datagrams.of(bodies)))


def received(transport: Transport, count: int) -> list[bytes]:
    """The next datagrams, as many as are due."""
    found: list[bytes] = []
    ends = time.monotonic() + PATIENCE_SECONDS
    while len(found) < count:
        waiting, _, _ = select.select([transport.listen()], [], [], max(0.0, ends - time.monotonic()))
        assert waiting, f"{len(found)} of {count} datagrams came"
        found += map(bytes, transport.receive())
    return found


class TransportLaws:
    """Subclass it with a fixture `pair`."""

    def test_datagrams_arrive_whole_and_in_order(self, pair: Pair) -> None:
        sent = [bytes([size & 255]) * size for size in (1, 2, 100, 1_200, 1_452, 1_453, 4_000, MAX_BYTES)]
        pair.send(sent)
        assert received(pair.receivers[0], len(sent)) == sent

    def test_the_sender_of_each_datagram_is_known(self, pair: Pair) -> None:
        pair.send([b"one", b"two"])
        receiver, found = pair.receivers[0], 0
        while found < 2:
            received(receiver, 1)
            assert set(receiver.sources) == {pair.source}
            found += len(receiver.sources)
        assert list(receiver.receive()) == list(receiver.sources) == []

    def test_every_process_of_a_host_gets_every_event(self, pair: Pair) -> None:
        sent = [b"event %d" % number for number in range(50)]
        pair.send(sent)
        for receiver in pair.receivers:
            assert received(receiver, len(sent)) == sent

    def test_more_than_a_batch_is_sent_whole(self, pair: Pair) -> None:
        sent = [b"%d" % number for number in range(3 * BATCH + 1)]
        pair.send(sent)
        assert received(pair.receivers[0], len(sent)) == sent

    def test_without_arrivals_nothing_is_received_at_once(self, pair: Pair) -> None:
        began = time.monotonic()
        assert list(pair.receivers[0].receive()) == []
        assert time.monotonic() - began < 1
        pair.send([])

    def test_a_datagram_that_is_too_long_comes_cut_short_and_harms_no_other(self, pair: Pair) -> None:
        pair.send([b"x" * (MAX_BYTES + 500), b"y"])
        first, second = received(pair.receivers[0], 2)
        assert len(first) == MAX_BYTES
        assert second == b"y"

    def test_what_the_kernel_had_no_room_for_is_counted(self, pair: Pair) -> None:
        count, receiver = 80_000, pair.receivers[0]
        assert receiver.dropped == 0
        for _ in range(count // 2_000):
            pair.send([b"z"] * 2_000)
        got = 0
        while arrived := receiver.receive():
            got += len(arrived)
        pair.send([b"last"])
        assert received(receiver, 1) == [b"last"]
        assert 0 < receiver.dropped == count - got
