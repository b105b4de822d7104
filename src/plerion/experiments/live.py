"""A network of real processes: a lab, a controller that was started with `plerion up`, and guests in the hosts.

Everything is a program of its own, talked to as users would: the controller by its configuration and its API, a guest
by its lines. All of it is gone when `close` returns, whatever state it was in.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Condition, Thread
from time import monotonic, sleep
from typing import IO, Any, Self
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from plerion.index.codec import to_json
from plerion.index.content_index import ContentIndex
from plerion.lab import Lab
from plerion.topology.graph import Topology

SECONDS = 120.0  # for anything that should take less than one, on a machine that does much else
START_SECONDS = 180.0  # for a program that may have its kernels to compile first
_PORTS = range(20_000, 32_000)  # below those that the kernel gives to whoever connects


class LiveError(RuntimeError):
    """A program of the network did not do what it was asked."""


class GuestProcess:
    """The other end of `guest`: asks in lines, and waits for answers by their numbers."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None, "it was started with pipes"
        assert process.stdout is not None, "it was started with pipes"
        self.process = process
        self._stdin, self._asked = process.stdin, 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._news = Condition()
        self._ended = False
        self._listener = Thread(target=self._listen, args=(process.stdout,), daemon=True)
        self._listener.start()

    def joined(self) -> dict[str, Any]:
        """Waits until it is in the network; says as which host, and under which name it publishes."""
        return self.answer(0, START_SECONDS)

    def send(self, do: str, **words: object) -> int:
        """Asks, and does not wait; `answer` takes the number."""
        self._asked += 1
        self._stdin.write(json.dumps({"do": do, "number": self._asked, **words}) + "\n")
        self._stdin.flush()
        return self._asked

    def ask(self, do: str, **words: object) -> dict[str, Any]:
        return self.answer(self.send(do, **words))

    def answer(self, number: int, seconds: float = SECONDS) -> dict[str, Any]:
        with self._news:
            come = self._news.wait_for(lambda: number in self._answers or self._ended, seconds)
            if not come or number not in self._answers:
                raise LiveError(f"a guest gave no answer: {'it ended' if self._ended else 'it is silent'}")
            found = self._answers.pop(number)
        if "error" in found:
            raise LiveError(found["error"])
        return found

    def kill(self) -> None:
        """The host's program dies without a word."""
        self.process.kill()
        self._close()

    def leave(self) -> None:
        """It withdraws what it asked for, and ends."""
        with suppress(OSError):
            self._stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self._close()

    def _close(self) -> None:
        self.process.wait()
        self._listener.join()
        with suppress(OSError):  # what was written last may have nobody to read it
            self._stdin.close()

    def _listen(self, lines: IO[str]) -> None:
        with lines:
            for line in lines:
                found = json.loads(line)
                with self._news:
                    self._answers[found.pop("number")] = found
                    self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()


class LiveNetwork:
    """Use it as a context manager. Nothing runs before it is entered."""

    def __init__(
        self, topology: Topology, index: ContentIndex, folder: Path, name: str, **settings: object
    ) -> None:
        self.topology, self.folder, self.name = topology, folder, name
        self.openflow_port, self.api_port = _free_port(), _free_port()
        self.guests: list[GuestProcess] = []
        self.controller: subprocess.Popen[bytes] | None = None
        self.lab: Lab
        (folder / "topology.json").write_text(json.dumps(topology.to_json()))
        (folder / "index.json").write_bytes(to_json(index))
        self.configure(**settings)

    def configure(self, **settings: object) -> None:
        """Writes the configuration, which a controller reads when it starts; JSON is YAML, too."""
        usual: Mapping[str, object] = {
            "topology": "topology.json",
            "index": "index.json",
            "openflow": {"listen": f"127.0.0.1:{self.openflow_port}"},
            "api": {"listen": f"127.0.0.1:{self.api_port}"},
        }
        (self.folder / "plerion.yaml").write_text(json.dumps({**usual, **settings}, indent=1))

    @property
    def api(self) -> str:
        return f"http://127.0.0.1:{self.api_port}"

    def __enter__(self) -> Self:
        try:
            target = f"tcp:127.0.0.1:{self.openflow_port}"
            self.lab = asyncio.run(Lab.up(self.topology, self.name, target))
            self.start_controller()
            self.until_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the guests and the controller, and takes the lab down."""
        try:
            for guest in self.guests:
                guest.kill()
            self.kill_controller()
        finally:
            if hasattr(self, "lab"):
                asyncio.run(self.lab.down())

    def start_controller(self) -> None:
        plerion = Path(sys.executable).with_name("plerion")
        words: list[str | Path] = [plerion, "up", "--config", self.folder / "plerion.yaml"]
        with (self.folder / "controller.log").open("ab") as log:
            # In its own group, as guests are: Ctrl-C is for who started the network, and who then ends all of it.
            self.controller = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def kill_controller(self) -> None:
        """kill -9, wherever it is just now."""
        self._end_controller(signal.SIGKILL)

    def stop_controller(self) -> None:
        """SIGTERM, as a service is stopped."""
        self._end_controller(signal.SIGTERM)

    def _end_controller(self, how: int) -> None:
        if self.controller is not None:
            self.controller.send_signal(how)
            self.controller.wait(SECONDS)
            self.controller = None

    def guest(self, host: str, lease_seconds: float = 10.0, events: Path | None = None) -> GuestProcess:
        """A guest that is on its way into the network; `joined` waits for it. It may keep a log of its events."""
        words = [sys.executable, "-m", "plerion.experiments.guest", str(lease_seconds)]
        words += [] if events is None else [str(events)]
        log = (self.folder / f"{host}.log").open("ab")
        with log:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log, "text": True}
            found = GuestProcess(self.lab.popen(host, words, start_new_session=True, **pipes))
        self.guests.append(found)
        return found

    def asked(self, path: str, body: object = None, method: str | None = None) -> Any:
        """What the API answers, whatever the status; `LiveError` when nobody does."""
        octets = None if body is None else json.dumps(body).encode()
        request = Request(self.api + path, octets, {"Content-Type": "application/json"}, method=method)
        try:
            with urlopen(request, timeout=SECONDS) as response:
                return json.loads(response.read())
        except HTTPError as error:
            return json.loads(error.read())
        except (URLError, OSError) as error:
            raise LiveError(f"the controller does not answer: {error}") from None

    def until_ready(self, seconds: float = START_SECONDS) -> None:
        """Returns when every switch is connected and holds what it should."""
        self.until("every switch is in step", lambda: self.asked("/readyz").get("ready"), seconds)

    def until(self, what: str, condition: Callable[[], Any], seconds: float = SECONDS) -> None:
        """Returns when the condition holds; a controller that does not answer yet makes it not hold."""
        give_up = monotonic() + seconds
        while True:
            with suppress(LiveError):
                if condition():
                    return
            if self.controller is not None and self.controller.poll() is not None:
                raise LiveError(f"the controller ended: {self.last_words()}")
            if monotonic() > give_up:
                raise LiveError(f"after {seconds:g} s it does not hold that {what}: {self.last_words()}")
            sleep(0.02)

    def last_words(self) -> str:
        """The end of the controller's log."""
        log = self.folder / "controller.log"
        return "\n".join(log.read_text(errors="replace").splitlines()[-15:]) if log.exists() else ""


def _free_port() -> int:
    chooser = random.Random(os.urandom(8))
    while True:
        port = chooser.choice(_PORTS)
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port
