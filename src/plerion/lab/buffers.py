"""The switches' sockets take bursts: Open vSwitch leaves the kernel's 200 KB, room for some 250 small packets.

There is no setting for it, and the kernel's own default belongs to everybody. But who may trace a process may take
a copy of its descriptor, and a socket has one buffer, whoever sets its size: that of each packet socket of the
lab's own daemon is set from outside.
"""

from __future__ import annotations

import ctypes
import os
import re
import socket
import warnings
from pathlib import Path

from plerion.lab.place import Place
from plerion.lab.residue import daemons_of

BYTES = 4 * 1024 * 1024

_PIDFD_GETFD = 438  # the same number on every architecture
_SO_RCVBUFFORCE = 33
_SOCKET = re.compile(r"socket:\[(\d+)\]")


class LabWarning(UserWarning):
    """The lab is up, and something about it is not as good as it could be."""


def widen(place: Place) -> int:
    """Each packet socket of the lab's switches holds `BYTES`; answers how many there are."""
    try:
        return sum(_widen(pid) for pid, program in daemons_of(place.path) if program == "ovs-vswitchd")
    except OSError as error:
        text = f"lab {place.name}: bursts of more than 200 packets may be lost: {error.strerror}"
        warnings.warn(text, LabWarning, stacklevel=2)
        return 0


def _widen(pid: int) -> int:
    # The column is the inode, by which descriptors and sockets find each other.
    packets = Path(f"/proc/{pid}/net/packet").read_text().splitlines()[1:]
    inodes = {line.split()[-1] for line in packets}
    process = os.pidfd_open(pid)
    try:
        found = [fd for fd in Path(f"/proc/{pid}/fd").iterdir() if _inode(fd) in inodes]
        for fd in found:
            with _copied(process, int(fd.name)) as copy:
                copy.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, BYTES)
        return len(found)
    finally:
        os.close(process)


def _inode(fd: Path) -> str | None:
    try:
        match = _SOCKET.fullmatch(str(fd.readlink()))
    except FileNotFoundError:  # closed meanwhile
        return None
    return match[1] if match else None


def _copied(process: int, fd: int) -> socket.socket:
    copy = ctypes.CDLL(None, use_errno=True).syscall(_PIDFD_GETFD, process, fd, 0)
    if copy < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"the switches' buffers cannot be widened ({os.strerror(number)})")
    return socket.socket(fileno=copy)
