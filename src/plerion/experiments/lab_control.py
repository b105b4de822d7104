"""The control path on real switches: from a request of a host to *ready*, from a killed controller to one that serves.

The controller is a process of its own, as in operation. Hosts ask it in-band: a request leaves a host's namespace,
the first switch hands it up, the switches take the entries that follow and answer their barriers, and the reply
goes out by the port that the request came in by. What is timed is all of that, at the host.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from ipaddress import IPv6Address
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any, Final
from urllib.request import urlopen

import msgspec

from plerion.client.channel import CONTROLLER, ControlChannel
from plerion.client.place import Place
from plerion.client.transport import sending_socket
from plerion.controller.journal import Journal
from plerion.controller.memory import regions_of
from plerion.experiments.lab_load import Load
from plerion.experiments.lab_site import controller_port, free_port
from plerion.index.codec import to_json
from plerion.lab import Lab, LabError
from plerion.lab.names import HOST_INTERFACE
from plerion.topology.graph import HostId, ipv6
from plerion.wire.control import Join, Ready, Reply, Subscribe, Unknown, Unsubscribe

START_SECONDS: Final = 300.0  # on a new machine kernels are compiled first
ASK_SECONDS: Final = 30.0
LEASE_SECONDS: Final = 600.0
AT_ONCE: Final = 1_000  # inputs of a journal that are written together

_PROGRAM: Final = "from plerion.cli.main import run; run()"


def written_journal(path: Path, load: Load, count: int) -> None:
    """The journal of a controller that accepted the first `count` subscriptions."""
    journal = Journal(path, load.settings)
    given = list(load.inputs(count))
    for begin in range(0, len(given), AT_ONCE):
        part = given[begin : begin + AT_ONCE]
        journal.append(part, regions_of(load.settings, part))
    journal.close()


class ControllerProcess:
    """`plerion up` on a lab, with files of its own; `start` and `kill` it as often as you like."""

    def __init__(self, lab: Lab, load: Load, folder: Path) -> None:
        self.lab, self.folder = lab, folder
        self.api = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        settings = load.settings
        (folder / "index.json").write_bytes(to_json(settings.index))
        (folder / "topology.json").write_bytes(msgspec.json.encode(lab.topology.to_json()))
        (folder / "plerion.yaml").write_text(
            f"topology: topology.json\nindex: index.json\nbudget: {settings.budget}\nlog_level: warning\n"
            f"openflow:\n  listen: 127.0.0.1:{controller_port(lab)}\napi:\n  listen: 127.0.0.1:{self.api}\n"
            "quotas:\n  subscriptions: 1000000\n  requests_per_second: 1000000\n"
        )

    def start(self) -> None:
        words = [sys.executable, "-c", _PROGRAM, "up", "--config", str(self.folder / "plerion.yaml")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(words, stdout=log, stderr=log)

    def kill(self) -> None:
        """As a power cut would."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    async def until_ready(self, seconds: float = START_SECONDS) -> None:
        """Returns when every switch is connected and holds what it should."""
        ends = monotonic() + seconds
        while monotonic() < ends:
            if self._process is None or self._process.poll() is not None:
                raise LabError(f"the controller ended: {self._last_words()}")
            if await asyncio.to_thread(self._is_ready):
                return
            await asyncio.sleep(0.05)
        raise LabError(f"the controller is not ready after {seconds:g} s: {self._last_words()}")

    def metric(self, name: str) -> float:
        """A number that the controller tells of itself."""
        text = self._get("/metrics").decode()
        return sum(float(line.split()[-1]) for line in text.splitlines() if line.split(" ")[0] == name)

    def memory(self) -> float:
        """Mebibytes that the process has in memory."""
        assert self._process is not None, "it runs"
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def _is_ready(self) -> bool:
        try:
            return bool(self._get("/readyz"))
        except OSError:
            return False

    def _get(self, path: str) -> bytes:
        with urlopen(f"http://127.0.0.1:{self.api}{path}", timeout=30) as answer:
            found: bytes = answer.read()
            return found

    def _last_words(self) -> str:
        lines = (self.folder / "log").read_text(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else "it said nothing"


@contextmanager
def controller(lab: Lab, load: Load, folder: Path, deployed: int) -> Iterator[ControllerProcess]:
    """A controller that remembers this many subscriptions, not yet started; it ends with the context."""
    process = ControllerProcess(lab, load, folder)
    written_journal(folder / "plerion.journal", load, deployed)
    try:
        yield process
    finally:
        process.stop()


class Asker:
    """One client at a host, as far as the controller can tell."""

    def __init__(self, channel: ControlChannel, session: str) -> None:
        self._channel, self._session = channel, session

    async def join(self) -> None:
        await self._channel.ask(lambda number: Join(number, self._session, LEASE_SECONDS), ASK_SECONDS)

    async def subscribe(self, name: str, text: str) -> float:
        """Seconds from the request to *ready*."""
        return await self._timed(lambda number: Subscribe(number, self._session, name, text))

    async def unsubscribe(self, name: str) -> float:
        return await self._timed(lambda number: Unsubscribe(number, self._session, name))

    async def _timed(self, make: Callable[[int], Any]) -> float:
        began = perf_counter()
        answer: Reply = await self._channel.ask(make, ASK_SECONDS)
        if isinstance(answer, Unknown):
            await self.join()
            answer = await self._channel.ask(make, ASK_SECONDS)
        if not isinstance(answer, Ready):
            raise LabError(f"the controller did not say ready but {answer}")
        return perf_counter() - began


@asynccontextmanager
async def askers(lab: Lab, seed: int = 1) -> AsyncIterator[dict[HostId, Asker]]:
    """A client at each host, joined."""
    async with AsyncExitStack() as opened:
        found = {}
        for number, host in enumerate(lab.topology.hosts):
            place = Place(IPv6Address(ipv6(lab.topology, host)), HOST_INTERFACE)
            sock = lab.inside(host, lambda place=place: sending_socket(place))  # type: ignore[misc]  # a default
            loop = asyncio.get_running_loop()
            _, channel = await loop.create_datagram_endpoint(
                lambda: ControlChannel(CONTROLLER, lambda _: None), sock=sock
            )
            opened.callback(channel.close)
            found[host] = Asker(channel, f"{seed:08x}{number:08x}")
            await found[host].join()
        yield found


async def at_a_rate(work: Callable[[int], Awaitable[float]], numbers: range, rate: float) -> list[float]:
    """Begins one piece of work each 1/rate seconds whatever became of the others; the seconds that each took."""
    began, tasks = perf_counter(), []
    for at, number in enumerate(numbers):
        await asyncio.sleep(max(0.0, began + at / rate - perf_counter()))
        tasks.append(asyncio.ensure_future(work(number)))
    return list(await asyncio.gather(*tasks))


async def in_flight(work: Callable[[int], Awaitable[float]], numbers: range, many: int) -> float:
    """Pieces of work a second, with so many under way all the time."""
    waiting = iter(numbers)

    async def one_after_the_other() -> None:
        for number in waiting:
            await work(number)

    began = perf_counter()
    await asyncio.gather(*(one_after_the_other() for _ in range(many)))
    return len(numbers) / (perf_counter() - began)


def touched_since(lab: Lab, seconds: float) -> tuple[int, int]:
    """Of the entries of all switches, how many are younger than this by the switches' own clocks, and all of them."""
    ages = [
        float(found)
        for switch in lab.topology.switches
        for found in re.findall(r"duration=([0-9.]+)s", lab.ofctl(switch, "dump-flows"))
    ]
    return sum(age < seconds for age in ages), len(ages)
