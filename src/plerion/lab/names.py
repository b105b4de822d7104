"""What the parts of a lab are called: a function of the lab's name, so that a lab is found with nothing but it.

The kernel gives an interface 15 characters. Five of them tell labs apart (a hash of the name), the rest says which
switch and which port it is: ``p3k9xas12p3`` is port 3 of the twelfth switch. Namespaces have room for the names
themselves: ``plerion.demo.h1``. A lab's name holds no dot, so the parts of a namespace's name are never in doubt.
"""

from __future__ import annotations

import re
from hashlib import sha256
from urllib.parse import quote

from plerion.content.errors import quoted
from plerion.lab.error import LabError

INTERFACE_CHARACTERS = 15  # of 16, the last being a zero
NAMESPACE_PREFIX = "plerion"
HOST_INTERFACE = "eth0"

_LAB = re.compile("[a-z0-9][a-z0-9_-]{0,31}")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_MARK_DIGITS = 5
_NAMESPACE_CHARACTERS = 128


def checked(name: str) -> str:
    """The name of a lab, if it can be one."""
    if not _LAB.fullmatch(name):
        fix = "use up to 32 of a-z, 0-9, _ and -, the first a letter or digit"
        raise LabError(f"{quoted(name)} cannot name a lab", fix)
    return name


def mark(name: str) -> str:
    """What the names of all interfaces of a lab begin with, ``p`` and five digits of base 36."""
    number, digits = _number(name), ""
    for _ in range(_MARK_DIGITS):
        number, rest = divmod(number, 36)
        digits += _DIGITS[rest]
    return f"p{digits}"


def group(name: str) -> int:
    """The interface group of a lab: the kernel deletes a group of hundreds in the time of one."""
    return _number(name) % 0x7FFF_FFFE + 1


def bridge(name: str, switch: int) -> str:
    """The bridge of the n-th switch."""
    return f"{mark(name)}s{switch}"


def interface(name: str, switch: int, port: int) -> str:
    """The interface at a port of the n-th switch."""
    return f"{mark(name)}s{switch}p{port}"


def is_interface(name: str, candidate: str) -> bool:
    """Whether an interface or bridge belongs to the lab of this name."""
    return re.fullmatch(rf"{mark(name)}s[0-9]{{1,2}}(p[0-9]{{1,5}})?", candidate) is not None


def namespace(name: str, host: str, number: int) -> str:
    """The network namespace of a host; what a file's name cannot hold is escaped, what is too long is a number."""
    escaped = quote(host, safe="")
    # No escape begins with %n, so a number is never taken for another host's name.
    word = escaped if len(escaped) <= _NAMESPACE_CHARACTERS else f"%n{number}"
    return f"{NAMESPACE_PREFIX}.{name}.{word}"


def lab_of(candidate: str) -> str | None:
    """The lab that a namespace belongs to, `None` for a namespace of somebody else."""
    prefix, _, rest = candidate.partition(".")
    name, dot, host = rest.partition(".")
    ours = prefix == NAMESPACE_PREFIX and dot and host and _LAB.fullmatch(name)
    return name if ours else None


def _number(name: str) -> int:
    return int.from_bytes(sha256(name.encode()).digest()[:8], "big")
