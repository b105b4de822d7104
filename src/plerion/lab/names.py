"""What the parts of a lab are called: a function of the lab's name, so that a lab is found with nothing but it.

The kernel gives an interface 15 characters. Five of them tell labs apart (a hash of the name), the rest says which
switch and which port it is: ``p3k9xas12p3`` is port 3 of the twelfth switch. Namespaces have room for the names
themselves: ``plerion.demo.h1``. A lab's name holds no dot, so the parts of a namespace's name are never in doubt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from urllib.parse import quote

from plerion.content.errors import quoted
from plerion.lab.error import LabError

INTERFACE_CHARACTERS = 15  # of 16, the last being a zero
HOST_INTERFACE = "eth0"

_LAB = re.compile("[a-z0-9][a-z0-9_-]{0,31}")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_MARK_DIGITS = 5
_NAMESPACE_CHARACTERS = 128


def is_name(text: str) -> bool:
    """Whether a lab can be called this."""
    return _LAB.fullmatch(text) is not None


def checked(name: str) -> str:
    """The name of a lab, if it can be one."""
    if not is_name(name):
        fix = "use up to 32 of a-z, 0-9, _ and -, the first a letter or digit"
        raise LabError(f"{quoted(name)} cannot name a lab", fix)
    return name


@dataclass(frozen=True)
class Names:
    """The names of one lab. Labs of the same name at different homes are different labs.

    `home` is where labs keep their files, empty for the usual place, which leaves no trace in the names.
    """

    lab: str
    home: str = ""

    def __post_init__(self) -> None:
        checked(self.lab)

    @cached_property
    def mark(self) -> str:
        """What the names of all interfaces begin with, ``p`` and five digits of base 36."""
        return "p" + _digits(self._number)

    @property
    def group(self) -> int:
        """The interface group: the kernel deletes a group of hundreds in the time of one."""
        return self._number % 0x7FFF_FFFE + 1

    def bridge(self, switch: int) -> str:
        """The bridge of the n-th switch."""
        return f"{self.mark}s{switch}"

    def interface(self, switch: int, port: int) -> str:
        """The interface at a port of the n-th switch."""
        return f"{self.mark}s{switch}p{port}"

    def is_interface(self, candidate: str) -> bool:
        """Whether an interface or bridge belongs to this lab."""
        return re.fullmatch(rf"{self.mark}s[0-9]{{1,2}}(p[0-9]{{1,5}})?", candidate) is not None

    def namespace(self, host: str, number: int) -> str:
        """The network namespace of a host; what a file's name cannot hold is escaped, what is too long is a number."""
        escaped = quote(host, safe="")
        # No escape begins with %n, so a number is never taken for another host's name.
        word = escaped if len(escaped) <= _NAMESPACE_CHARACTERS else f"%n{number}"
        return f"{_prefix(self.home)}.{self.lab}.{word}"

    def is_namespace(self, candidate: str) -> bool:
        """Whether a namespace belongs to this lab."""
        return lab_of(candidate, self.home) == self.lab

    @cached_property
    def _number(self) -> int:
        return _hash(f"{self.lab}\0{self.home}" if self.home else self.lab)


def lab_of(candidate: str, home: str = "") -> str | None:
    """The lab that a namespace belongs to, `None` for one of somebody else or of another home."""
    prefix, _, rest = candidate.partition(".")
    name, dot, host = rest.partition(".")
    return name if prefix == _prefix(home) and dot and host and is_name(name) else None


def _prefix(home: str) -> str:
    return f"plerion-{_digits(_hash(home))}" if home else "plerion"


def _hash(text: str) -> int:
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big")


def _digits(number: int) -> str:
    digits = ""
    for _ in range(_MARK_DIGITS):
        number, rest = divmod(number, 36)
        digits += _DIGITS[rest]
    return digits
