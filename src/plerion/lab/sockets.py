"""The packet sockets of a process, borrowed: who may trace a process may take copies of its descriptors.

A copy is the same socket: what is set on it holds for its owner, and it is closed when the last copy is.
"""

from __future__ import annotations

import ctypes
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

_PIDFD_GETFD = 438  # the same number on every architecture
_SOCKET = re.compile(r"socket:\[(\d+)\]")


def packet_sockets(pid: int) -> Iterator[socket.socket]:
    """A copy of each packet socket of the process, to be closed; `OSError` where that is not allowed."""
    # The last column is the inode, by which descriptors and sockets find each other.
    listed = Path(f"/proc/{pid}/net/packet").read_text().splitlines()[1:]
    inodes = {line.split()[-1] for line in listed}
    process = os.pidfd_open(pid)
    try:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir() if inodes else ():
            if _inode(descriptor) in inodes:
                yield _copied(process, int(descriptor.name))
    finally:
        os.close(process)


def _inode(descriptor: Path) -> str | None:
    try:
        match = _SOCKET.fullmatch(str(descriptor.readlink()))
    except FileNotFoundError:  # closed meanwhile
        return None
    return match[1] if match else None


def _copied(process: int, descriptor: int) -> socket.socket:
    copy = ctypes.CDLL(None, use_errno=True).syscall(_PIDFD_GETFD, process, descriptor, 0)
    if copy < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"a socket of another process cannot be had ({os.strerror(number)})")
    return socket.socket(fileno=copy)
