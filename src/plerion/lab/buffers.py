"""The switches' sockets take bursts: Open vSwitch leaves the kernel's 200 KB, room for some 250 small packets.

There is no setting for it, and the kernel's own default belongs to everybody, so the buffer of each packet socket of
the lab's own daemon is set from outside.
"""

from __future__ import annotations

import socket
import warnings

from plerion.lab.place import Place
from plerion.lab.residue import daemons_of
from plerion.lab.sockets import packet_sockets

BYTES = 4 * 1024 * 1024
_SO_RCVBUFFORCE = 33


class LabWarning(UserWarning):
    """The lab is up, and something about it is not as good as it could be."""


def widen(place: Place) -> int:
    """Each packet socket of the lab's switches holds `BYTES`; answers how many there are."""
    count = 0
    try:
        for pid, program in daemons_of(place.path):
            for copy in packet_sockets(pid) if program == "ovs-vswitchd" else ():
                with copy:
                    copy.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, BYTES)
                count += 1
    except OSError as error:
        text = f"lab {place.name}: bursts of more than 200 packets may be lost: {error.strerror}"
        warnings.warn(text, LabWarning, stacklevel=2)
    return count
