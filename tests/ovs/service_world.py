"""A lab with a controller as a process of its own, and hosts whose sockets a test holds."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

from plerion.content.schema import Number, Schema
from plerion.controller.rehearsal import rehearse
from plerion.flow.admission import CONTROL_ADDRESS, CONTROL_PORT, EVENT_PORT
from plerion.index.address import AddressPlan
from plerion.index.codec import to_json
from plerion.index.propose import regular
from plerion.lab import Lab
from plerion.topology import HostId, from_name, ipv6, mac
from plerion.wire.control import Adopted, Join, Reply, Request, Subscribe, Welcome, decode_reply, encode
from plerion.wire.frame import UdpFrame, build, mac_bytes, multicast_mac
from plerion.wire.segment import segments

PROGRAM = str(Path(sys.executable).with_name("plerion"))
SCHEMA = Schema((Number("x", 0, 255, integer=True), Number("y", 0, 255, integer=True)))
INDEX = regular(SCHEMA, 16)
PLAN = AddressPlan()
SECONDS = 30.0
START_SECONDS = 120.0  # a first start compiles kernels


def wait_for(condition: Callable[[], object], what: str, seconds: float = SECONDS) -> None:
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, f"not within {seconds:g} s: {what}"
        time.sleep(0.02)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@dataclass
class Process:
    """`plerion up` on a configuration in a folder of its own; `start` it, kill it, start it again."""

    folder: Path
    openflow_port: int
    topology: str = "fat-tree:4x2"
    more: str = ""
    api_port: int = field(default_factory=free_port)
    running: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / "index.json").write_bytes(to_json(INDEX))
        lines = [
            f"topology: {self.topology}",
            "index: index.json",
            "budget: 8",
            "epoch_bits: 0",  # what a test sends by hand has the plainest addresses
            f"openflow: {{listen: '127.0.0.1:{self.openflow_port}'}}",
            f"api: {{listen: '127.0.0.1:{self.api_port}'}}",
            self.more,
        ]
        (self.folder / "plerion.yaml").write_text("\n".join(lines) + "\n")

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def start(self, ready: bool = True) -> None:
        with (self.folder / "log").open("ab") as log:
            words = [PROGRAM, "up", "--config", str(self.folder / "plerion.yaml")]
            self.running = subprocess.Popen(words, stdout=log, stderr=log)
        try:
            if ready:
                wait_for(self.ready, "all switches connected and in step", START_SECONDS)
        except BaseException:
            self.end(signal.SIGKILL)
            raise

    def ready(self) -> bool:
        assert self.running is not None
        assert self.running.poll() is None, self.log
        try:
            return bool(self.get("/readyz")["ready"])
        except OSError:
            return False

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        assert self.running is not None
        self.running.send_signal(number)
        return self.running.wait(20)

    def get(self, path: str) -> Any:
        return self.call("GET", path)[1]

    def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        request = urllib.request.Request(f"http://127.0.0.1:{self.api_port}{path}", method=method)
        text = None if body is None else json.dumps(body).encode()
        if text is not None:
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, text, timeout=SECONDS) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def metric(self, name: str) -> float:
        """A metric, summed over its labels."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.api_port}/metrics") as response:
            lines = response.read().decode().splitlines()
        found = [line for line in lines if line.split("{")[0].split(" ")[0] == name]
        assert found, f"there is no metric {name}"
        return sum(float(line.rsplit(" ", 1)[1]) for line in found)


class Client:
    """A program on a host: a control socket and one for events, both in the host's namespace."""

    def __init__(self, lab: Lab, host: str, session: str | None = None) -> None:
        self.lab, self.host = lab, host
        self.session = session or os.urandom(8).hex()
        self.numbers = count(1)
        self.control = lab.inside(host, lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM))
        self.events = lab.inside(host, _receiver)
        self.control.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE

    def close(self) -> None:
        self.control.close()
        self.events.close()

    def send(self, request: Request) -> None:
        for packet in segments(encode(request), request.number):
            self.control.sendto(packet, (str(CONTROL_ADDRESS), CONTROL_PORT))

    def ask(self, request: Request, seconds: float = SECONDS) -> Reply:
        """The answer; the request is repeated until it comes."""
        give_up = time.monotonic() + seconds
        while time.monotonic() < give_up:
            self.send(request)
            again = time.monotonic() + 0.5
            while (left := again - time.monotonic()) > 0:
                reply = self.reply(left)
                if reply is not None and reply.number == request.number:
                    return reply
        raise AssertionError(f"no answer to {request} within {seconds:g} s")

    def reply(self, seconds: float) -> Reply | None:
        self.control.settimeout(seconds)
        try:
            return decode_reply(self.control.recv(4096))
        except TimeoutError:
            return None

    def join(self, lease_seconds: float = 60.0) -> None:
        welcome = self.ask(Join(next(self.numbers), self.session, lease_seconds))
        assert isinstance(welcome, Welcome)
        assert welcome.host == self.host
        self.ask(Adopted(next(self.numbers), self.session, welcome.digest))

    def subscribe(self, name: str, filter: str) -> Reply:
        return self.ask(Subscribe(next(self.numbers), self.session, name, filter))

    def publish(self, x: int, y: int, text: str) -> None:
        self.control.sendto(text.encode(), (address(x, y), EVENT_PORT))

    def received(self, seconds: float = 0.3) -> list[str]:
        """Texts of the events that came until none came for so long."""
        found: list[str] = []
        self.events.settimeout(seconds)
        while True:
            try:
                packet = self.events.recv(4096)
            except TimeoutError:
                return found
            if int.from_bytes(packet[2:4], "big") == EVENT_PORT:
                found.append(packet[8:].decode())

    def forge(self, source: str, x: int, y: int, text: str) -> None:
        """An event in the name of another host, or from its own hand past all sockets."""
        topology, claimed = self.lab.topology, HostId(source)
        target = IPv6Address(address(x, y))
        frame = UdpFrame(
            mac_bytes(mac(topology, HostId(self.host))),
            multicast_mac(target),
            IPv6Address(ipv6(topology, claimed)),
            target,
            EVENT_PORT,
            EVENT_PORT,
            text.encode(),
        )

        def send() -> None:
            with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
                raw.bind(("eth0", 0))
                raw.send(build(frame))

        self.lab.inside(self.host, send)


def _receiver() -> socket.socket:
    taken = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_UDP)
    taken.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
    return taken


def address(x: int, y: int) -> str:
    (code,) = INDEX.codes((float(x), float(y)))
    return str(PLAN.address(code))


@contextmanager
def a_lab() -> Iterator[Lab]:
    """The papers' testbed of ten switches, looking for a controller at a port that is free.

    Kernels are compiled here, if they have to be, and not while a test waits for a controller to start.
    """
    rehearse(INDEX)
    controller = f"tcp:127.0.0.1:{free_port()}"
    made = asyncio.run(Lab.up(from_name("fat-tree:4x2"), f"c{uuid4().hex[:10]}", controller=controller))
    try:
        yield made
    finally:
        asyncio.run(made.down())


@contextmanager
def clients(lab: Lab) -> Iterator[Callable[[str], Client]]:
    """Makes clients on hosts; all are closed at the end."""
    made: list[Client] = []

    def make(host: str) -> Client:
        made.append(Client(lab, host))
        return made[-1]

    yield make
    for client in made:
        client.close()


def process(lab: Lab, folder: Path, more: str = "") -> Process:
    """A controller at the port where the lab's switches look for it."""
    controller = lab.plan.options.controller
    assert controller is not None
    return Process(folder, int(controller.rpartition(":")[2]), more=more)
