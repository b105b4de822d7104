"""An Open vSwitch of a test's own: both daemons as children, everything they write in a directory that goes with them.

The dummy datapath needs no interfaces and no kernel module, so many can run side by side.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
PATIENCE_SECONDS = 20.0


class Unixctl:
    """A daemon's control socket, kept open: many commands in flight cost one round trip, not one process each."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE_SECONDS)
        self._socket.connect(str(path))
        self._decoder = json.JSONDecoder()
        self._text = ""

    def call(self, method: str, *words: str) -> str:
        (answer,) = self.calls(method, [words])
        return answer

    def calls(self, method: str, arguments: Sequence[Sequence[str]], in_flight: int = 64) -> list[str]:
        """The answers in the order of the arguments; raises on the first that is an error."""
        found: list[str] = []
        for begin in range(0, len(arguments), in_flight):
            part = arguments[begin : begin + in_flight]
            requests = [
                json.dumps({"method": method, "params": list(a), "id": i}) for i, a in enumerate(part)
            ]
            self._socket.sendall("".join(requests).encode())
            for i in range(len(part)):
                reply = self._reply()
                if reply.get("error") or reply["id"] != i:
                    raise RuntimeError(f"{method} {' '.join(part[i])}: {reply}")
                found.append(reply["result"])
        return found

    def _reply(self) -> Any:
        while True:
            try:
                reply, end = self._decoder.raw_decode(self._text)
            except ValueError:
                received = self._socket.recv(1 << 20)
                if not received:
                    raise ConnectionError("the daemon hung up") from None
                self._text += received.decode()
                continue
            self._text = self._text[end:].lstrip()
            return reply

    def close(self) -> None:
        self._socket.close()


class OpenVSwitch:
    """Bridges of one daemon; a bridge named ``s3`` has the datapath id that it was given."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._children: list[subprocess.Popen[bytes]] = []
        self._control: Unixctl | None = None
        self._environment = {**os.environ, "OVS_RUNDIR": str(directory), "OVS_DBDIR": str(directory)}

    @property
    def control(self) -> Unixctl:
        """The control socket of the switch daemon."""
        assert self._control is not None, "the switch is not running"
        return self._control

    def start(self) -> None:
        database = self.directory / "conf.db"
        if not database.exists():
            subprocess.run(["ovsdb-tool", "create", database, SCHEMA], check=True)
        self._child("ovsdb-server", f"--remote=punix:{self.directory}/db.sock", database)
        self._until_there("db.sock")
        self.vsctl("--no-wait", "init")
        self.start_switch()

    def start_switch(self) -> None:
        self._child(
            "ovs-vswitchd", f"unix:{self.directory}/db.sock", "--enable-dummy=override", "--disable-system"
        )
        self._until_there("ovs-vswitchd.ctl")
        self._control = Unixctl(self.directory / "ovs-vswitchd.ctl")

    def stop_switch(self) -> None:
        """As in a crash: no goodbye to anybody."""
        self.control.close()
        self._control = None
        child = self._children.pop()
        child.kill()
        child.wait()
        (self.directory / "ovs-vswitchd.ctl").unlink(missing_ok=True)

    def stop(self) -> None:
        if self._control is not None:
            self._control.close()
        for child in reversed(self._children):
            child.terminate()
        for child in self._children:
            try:
                child.wait(5)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def add_bridges(self, ids: dict[str, int], *, protocols: str = "OpenFlow13") -> None:
        words: list[str] = []
        for name, number in ids.items():
            words += [
                "--",
                "add-br",
                name,
                "--",
                "set",
                "bridge",
                name,
                "datapath_type=dummy",
                "fail_mode=secure",
            ]
            words += [f"protocols={protocols}", f"other-config:datapath-id={number:016x}"]
        self.vsctl(*words)

    def bridges(self) -> list[str]:
        return self.vsctl("list-br").split()

    def add_ports(self, bridge: str, ports: Sequence[int]) -> None:
        """Interfaces that lead nowhere, with the numbers that are asked for."""
        words: list[str] = []
        for port in ports:
            name = f"{bridge}p{port}"
            words += ["--", "add-port", bridge, name, "--", "set", "interface", name, "type=dummy"]
            words += [f"ofport_request={port}"]
        self.vsctl(*words)

    def connect(self, bridges: Sequence[str], controller: str) -> None:
        words: list[str] = []
        for name in bridges:
            words += ["--", "set-controller", name, controller]
            words += ["--", "set", "controller", name, "max_backoff=1000", "inactivity_probe=30000"]
        self.vsctl(*words)

    def vsctl(self, *words: str) -> str:
        return self.run("ovs-vsctl", f"--db=unix:{self.directory}/db.sock", "--timeout=20", *words)

    def ofctl(self, *words: str) -> str:
        return self.run("ovs-ofctl", "-O", "OpenFlow13", *words)

    def run(self, *words: str) -> str:
        done = subprocess.run(words, env=self._environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)[:500]}: {done.stderr}")
        return done.stdout

    def _child(self, program: str, *words: str | Path) -> None:
        control = self.directory / f"{program}.ctl"
        log = self.directory / f"{program}.log"
        self._children.append(
            subprocess.Popen(
                [
                    program,
                    *words,
                    f"--unixctl={control}",
                    f"--log-file={log}",
                    "-vconsole:off",
                    "-vsyslog:off",
                ],
                env=self._environment,
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )

    def _until_there(self, name: str) -> None:
        """Waits until somebody listens on a socket of the directory."""
        give_up = time.monotonic() + PATIENCE_SECONDS
        while True:
            probe = socket.socket(socket.AF_UNIX)
            try:
                probe.connect(str(self.directory / name))
            except OSError:
                if time.monotonic() > give_up or self._children[-1].poll() is not None:
                    raise
                time.sleep(0.01)
            else:
                return
            finally:
                probe.close()


@contextmanager
def open_vswitch() -> Iterator[OpenVSwitch]:
    """A running Open vSwitch without bridges; nothing of it is left afterwards."""
    with tempfile.TemporaryDirectory(prefix="plerion-ovs-") as directory:
        made = OpenVSwitch(Path(directory))
        try:
            made.start()
            yield made
        finally:
            made.stop()
