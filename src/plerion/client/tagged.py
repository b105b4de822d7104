"""Events with a VLAN tag: whole Ethernet frames, because a UDP socket cannot tag what it sends.

Only the strategy `versioning` asks for it. A frame costs some 20 µs of Python; `epoch` costs none of this.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from ipaddress import IPv6Address

from plerion.client.errors import TransportError
from plerion.client.mmsg import LATER, Addresses, Datagrams, writable
from plerion.client.place import Place
from plerion.flow.admission import EVENT_PORT
from plerion.wire.frame import UdpFrame, build, multicast_mac


class TaggedSocket:
    """Sends datagrams in tagged frames out of a host's interface. Needs CAP_NET_RAW."""

    def __init__(self, place: Place) -> None:
        self._place = place
        try:
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        except PermissionError:
            fix = "run as root, give the interpreter CAP_NET_RAW, or change the index by another strategy"
            raise TransportError(
                "the network asks for tagged events, and a packet socket is not permitted", fix
            ) from None
        self.socket.setblocking(False)
        self.socket.bind((place.interface, 0))
        self._mac: bytes = self.socket.getsockname()[4]

    async def send_all(self, addresses: Addresses, datagrams: Datagrams, vlan: int) -> None:
        """Returns when the kernel has taken all of them; waits while it has no room."""
        sent = 0
        while sent < len(addresses):
            rest = slice(sent, None)
            taken = self.send(addresses[rest], datagrams.rows(rest), vlan)
            if not taken:
                await writable(self.socket)
            sent += taken

    def send(self, addresses: Addresses, datagrams: Datagrams, vlan: int) -> int:
        """How many of them, from the first on, the kernel took without waiting."""
        sent = 0
        for frame in self._frames(addresses, datagrams, vlan):
            try:
                self.socket.send(frame)
            except OSError as error:
                if error.errno not in LATER:
                    raise TransportError(
                        f"the kernel does not send tagged frames: {error.strerror}"
                    ) from None
                break
            sent += 1
        return sent

    def close(self) -> None:
        self.socket.close()

    def _frames(self, addresses: Addresses, datagrams: Datagrams, vlan: int) -> Iterator[bytes]:
        own = self._place.address
        ends = datagrams.starts + datagrams.lengths
        spans = zip(addresses, datagrams.starts.tolist(), ends.tolist(), strict=True)
        for address, begin, end in spans:
            to = IPv6Address(address.tobytes())
            payload = datagrams.body[begin:end]
            yield build(
                UdpFrame(self._mac, multicast_mac(to), own, to, EVENT_PORT, EVENT_PORT, payload), vlan
            )
