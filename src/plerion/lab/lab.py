"""A network of real switches and hosts on this machine, built from a topology and taken down whole."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from plerion.content.errors import quoted
from plerion.lab import bridges, build, run, wires
from plerion.lab.buffers import widen
from plerion.lab.error import LabError
from plerion.lab.place import Place
from plerion.lab.plan import Datapath, Links, Options, Plan
from plerion.lab.residue import Residue, daemons_of, end, remove
from plerion.topology.graph import HostId, Port, SwitchId, Topology

_Words = ParamSpec("_Words")
_Found = TypeVar("_Found")


class Lab:
    """A lab that is up. Ports are named as in the topology, ``s1:2``; what is asked of it has happened on return."""

    def __init__(self, plan: Plan, place: Place) -> None:
        self.plan = plan
        self.place = place

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def topology(self) -> Topology:
        return self.plan.topology

    @classmethod
    async def up(
        cls,
        topology: Topology,
        name: str = "demo",
        controller: str | None = "tcp:127.0.0.1:6653",
        datapath: Datapath = "netdev",
        links: Links | None = None,
        *,
        run: Path | None = None,
        **options: Any,
    ) -> Lab:
        """A lab of this topology; the switches look for their controller, but do not wait for it.

        What else there is to choose: `Options`.
        """
        return await cls.build(Plan(topology, name, Options(controller, datapath, links, **options)), run)

    @classmethod
    async def build(cls, plan: Plan, run: Path | None = None) -> Lab:
        """The lab of a plan; one that cannot be finished takes itself down."""
        place = Place(plan.name, run)
        plan = replace(plan, home=place.names.home)
        await _whole(build.check, plan, place)
        build.claim(place)
        with place.locked():
            try:
                for step in build.steps(plan, place):
                    await _whole(step)
            except BaseException:
                await asyncio.shield(_whole(remove, place))
                raise
        return cls(plan, place)

    async def down(self) -> Residue:
        """Nothing of the lab is left; answers with what there was."""
        return await _whole(take_down, self.place)

    @classmethod
    def find(cls, name: str, run: Path | None = None) -> Lab:
        """The lab of this name that somebody built; raises `LabError` when there is none."""
        place = Place(name, run)
        try:
            return cls(build.described(place), place)
        except FileNotFoundError:
            fix = "see plerion lab status, or build it: plerion lab up"
            raise LabError(f"there is no lab {name}", fix) from None

    def host(self, host: str) -> str:
        """The network namespace of a host."""
        if self.plan.options.datapath == "dummy":
            raise LabError(f"hosts of lab {self.name} are no namespaces", "build it with --datapath netdev")
        if not self.topology.has_host(HostId(host)):
            raise LabError(f"there is no host {quoted(host)} in lab {self.name}")
        return self.plan.namespace(host)

    def command(self, host: str, words: Sequence[str | Path]) -> list[str]:
        """The words that run a program in a host."""
        return ["ip", "netns", "exec", self.host(host), *map(str, words)]

    def exec(
        self, host: str, words: Sequence[str | Path], check: bool = False, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a program in a host to its end; options are those of `subprocess.run`, texts are captured."""
        chosen = {"text": True, "capture_output": True, **options}
        return subprocess.run(self.command(host, words), check=check, **chosen)

    def popen(self, host: str, words: Sequence[str | Path], **options: Any) -> subprocess.Popen[Any]:
        """Start a program in a host; options are those of `subprocess.Popen`. It ends with the lab, if not before."""
        return subprocess.Popen(self.command(host, words), **options)

    def inside(self, host: str, work: Callable[[], _Found]) -> _Found:
        """What `work` gives in a host, for example a socket: it stays there wherever it is used."""
        return run.in_namespace(self.host(host), work)

    def cut(self, port: Port | str) -> None:
        """The link at this port carries nothing, and both its ends know."""
        self._wire(port, up=False)

    def heal(self, port: Port | str) -> None:
        """The link at this port carries again; does no harm to one that does."""
        self._wire(port, up=True)

    def _wire(self, port: Port | str, up: bool) -> None:
        link = self.plan.link(Port.parse(port) if isinstance(port, str) else port)
        if self.plan.is_wired(link):
            run.batch(self.place, "wire", wires.raised(self.plan.interfaces([link]), up))
            return
        self._change(bridges.attached(self.plan, link) if up else bridges.detached(self.plan, link))

    def _change(self, words: Sequence[str]) -> None:
        run.vsctl(self.place, words)
        if self.plan.options.cables == "patch":
            # Where no interface goes down, the datapath forwards by what it remembers until all of it was looked at.
            run.appctl(self.place, "revalidator/wait")

    def stop_switch(self, switch: str) -> None:
        """The switch is gone with its tables and its connections, and its neighbours see its links go down."""
        down = wires.raised(wires.own_interfaces(self.plan, switch), up=False)
        run.batch(self.place, "wire", down)
        self._change(bridges.stopped(self.plan, switch))

    def start_switch(self, switch: str) -> None:
        """A switch that was stopped is back, with empty tables and all its links; one that runs is stopped first."""
        self.stop_switch(switch)
        run.batch(self.place, "wire", wires.raised(wires.own_interfaces(self.plan, switch)))
        running = run.vsctl(self.place, ["list-br"]).split()
        self._change(bridges.started(self.plan, SwitchId(switch), running))
        widen(self.place)

    def restart_daemon(self) -> None:
        """Open vSwitch dies (kill -9) and is started again: every switch is back, with empty tables."""
        end(pid for pid, program in daemons_of(self.place.path) if program == "ovs-vswitchd")
        run.start_switches(self.place, self.plan.options.datapath == "dummy")
        run.vsctl(self.place, ["init"])
        widen(self.place)

    def trace(self, switch: str, in_port: int, flow: str) -> str:
        """What the switch would do with a packet, in the words of ``ofproto/trace``."""
        return self.appctl("ofproto/trace", self.plan.bridge(switch), f"in_port={in_port},{flow}")

    def set_table_limit(
        self, switch: str, entries: int | None, policy: str = "refuse", table: int = bridges.TABLES[-1]
    ) -> None:
        """A table of a switch takes no more entries than this; what is over is refused.

        With ``evict`` it takes the place of an entry that has a timeout, if there is one.
        """
        run.vsctl(self.place, bridges.limit_words(self.plan, switch, entries, policy, table))

    def ofctl(self, switch: str, command: str, *words: str, text: str | None = None) -> str:
        """What ``ovs-ofctl`` prints, for example ``ofctl("s1", "dump-flows")``; `text` is what it reads from ``-``.

        Its options may stand among the words; the version is 1.3 unless they say another.
        """
        options = ["-O", "OpenFlow13", *(word for word in words if word.startswith("-") and word != "-")]
        rest = [word for word in words if not word.startswith("-") or word == "-"]
        bridge = f"unix:{self.place.path}/{self.plan.bridge(switch)}.mgmt"
        return run.run(["ovs-ofctl", *options, command, bridge, *rest], self.place, text)

    def appctl(self, *words: str) -> str:
        """What the daemon of the switches answers."""
        return run.appctl(self.place, *words)


def take_down(place: Place) -> Residue:
    """Nothing is left of the lab of this name, however it came to its end; answers with what there was."""
    with place.locked():
        return remove(place)


async def _whole(work: Callable[_Words, _Found], *words: _Words.args, **named: _Words.kwargs) -> _Found:
    """What the work gives, done in a thread; who is cancelled meanwhile waits for its end, so that none goes on."""
    done = asyncio.ensure_future(asyncio.to_thread(work, *words, **named))
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        await asyncio.wait([done])
        raise
