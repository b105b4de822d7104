"""What a lab is: a topology, a name and options, checked. `wires` and `bridges` turn it into the words of commands,
`build` carries them out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from plerion.content.errors import quoted
from plerion.lab.error import LabError
from plerion.lab.names import Names, checked
from plerion.topology.graph import HostId, Link, Port, SwitchId, Topology

MAX_SWITCHES = 64

Datapath = Literal["netdev", "dummy"]
Links = Literal["veth", "patch"]
_CONTROLLER = re.compile(r"(tcp|ssl|unix):[^\s\"',]{1,200}")


@dataclass(frozen=True, slots=True)
class Tls:
    """The files by which the switches and their controller know each other."""

    key: Path
    certificate: Path
    authority: Path

    @property
    def files(self) -> tuple[Path, Path, Path]:
        return self.key, self.certificate, self.authority


@dataclass(frozen=True, slots=True)
class Options:
    """How a lab is built; what is impossible is refused.

    `links` of `None` are veth pairs where there are interfaces and patch ports where there are none.
    """

    controller: str | None = "tcp:127.0.0.1:6653"
    datapath: Datapath = "netdev"
    links: Links | None = None
    tls: Tls | None = None
    shape: bool = False
    table_limit: int | None = None
    prefixes: tuple[str, ...] = ("ipv6_dst", "ipv6_src")

    def __post_init__(self) -> None:
        if self.datapath not in ("netdev", "dummy"):
            raise LabError(f"there is no datapath {quoted(self.datapath)}", "use netdev or dummy")
        if self.links not in ("veth", "patch", None):
            raise LabError(f"there are no links {quoted(self.links)}", "use veth or patch")
        if self.datapath == "dummy" and (self.links == "veth" or self.shape):
            raise LabError("the dummy datapath has no interfaces", "use links patch, without --shape")
        if self.controller is not None and not _CONTROLLER.fullmatch(self.controller):
            raise LabError(f"{quoted(self.controller)} is no controller", "write tcp:127.0.0.1:6653")
        if self.controller is not None and self.controller.startswith("ssl:") and self.tls is None:
            raise LabError("a controller at ssl: needs a key, a certificate and an authority")
        if self.table_limit is not None and self.table_limit < 1:
            raise LabError(f"a table cannot be limited to {self.table_limit} entries", "use 1 or more")

    @property
    def cables(self) -> Links:
        """What links between switches are made of."""
        return self.links or ("veth" if self.datapath == "netdev" else "patch")


@dataclass(frozen=True)
class Plan:
    """All names and commands of one lab, checked: whatever is asked of it can be built."""

    topology: Topology
    name: str
    options: Options = field(default_factory=Options)
    home: str = ""

    def __post_init__(self) -> None:
        checked(self.name)
        count = len(self.topology.switches)
        if count > MAX_SWITCHES:
            raise LabError(f"the topology has {count} switches", f"a lab has at most {MAX_SWITCHES}")
        if count == 0:
            raise LabError("the topology has no switches", "a lab has at least one")

    @cached_property
    def names(self) -> Names:
        return Names(self.name, self.home)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """A switch's number, its datapath id, is its position from 1."""
        return {switch: number for number, switch in enumerate(self.topology.switches, start=1)}

    def bridge(self, switch: str) -> str:
        return self.names.bridge(self._number(switch))

    def interface(self, port: Port) -> str:
        """The interface at a switch's port."""
        if port.number not in self.topology.ports(SwitchId(port.node)):
            raise LabError(f"there is no port {port} in lab {self.name}")
        return self.names.interface(self._number(port.node), port.number)

    def namespace(self, host: str) -> str:
        return self.names.namespace(host, self.topology.host_number(HostId(host)))

    def link(self, port: Port) -> Link:
        """The cable in a port of a switch or host."""
        for found in self.topology.neighbours(port.node):
            if found.port == port.number:
                return found.link
        raise LabError(f"there is no link at port {port} in lab {self.name}")

    def interfaces(self, links: Iterable[Link] | None = None) -> Iterator[str]:
        """The switches' ends of links that are real interfaces, each once."""
        for link in self.topology.links if links is None else links:
            if self.is_wired(link):
                yield from (self.interface(end) for end in link.ends if end.node in self.numbers)

    def is_wired(self, link: Link) -> bool:
        """Whether a link is a veth pair."""
        if self.options.datapath == "dummy":
            return False
        return self.options.cables == "veth" or not (link.a in self.numbers and link.b in self.numbers)

    def _number(self, switch: str) -> int:
        if switch not in self.numbers:
            raise LabError(f"there is no switch {quoted(switch)} in lab {self.name}")
        return self.numbers[switch]
