"""Commands of a plan, carried out. Each tells in one line what went wrong, and names the run directory of its lab,
by which what a killed process left behind is found."""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import socket
import struct
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TypeVar

from plerion.lab.error import LabError
from plerion.lab.place import Place

NAMESPACES = Path("/run/netns")
PRIORITY = -10  # of all threads of the switches, as the packages of Open vSwitch have it
SECONDS = 60  # for one command; all of them take a second or less where nothing is wrong

_SCHEMAS = (Path("/usr/share/openvswitch"), Path("/usr/local/share/openvswitch"))
_SIOCETHTOOL, _SET_TX_CHECKSUM = 0x8946, 0x17
_NEW_NETWORK = 0x4000_0000
_Found = TypeVar("_Found")


def run(words: Sequence[str | Path], place: Place, text: str | None = None) -> str:
    """What a command printed; a command that fails is a `LabError` with the first line of its complaint."""
    program = Path(words[0]).name
    try:
        done = subprocess.run(
            words, input=text, capture_output=True, text=True, timeout=SECONDS, check=False,
            env=place.environment(),
        )  # fmt: skip
    except FileNotFoundError:
        fix = "install iproute2" if program in ("ip", "tc") else "install Open vSwitch (openvswitch-switch)"
        raise LabError(f"there is no program {program}", fix) from None
    except subprocess.TimeoutExpired:
        raise LabError(f"lab {place.name}: {program} did not end within {SECONDS} s") from None
    if done.returncode:
        complaint = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
        raise LabError(f"lab {place.name}: {program}: {complaint[0]}")
    return done.stdout


def batch(place: Place, title: str, lines: Sequence[str], *flags: str) -> None:
    """Lines for `ip` from a file of the run directory, in one process."""
    if lines:
        file = place.path / f"{title}.batch"
        file.write_text("\n".join(lines) + "\n")
        run(["ip", *flags, "-batch", file], place)


def vsctl(place: Place, words: Sequence[str], wait: bool = True) -> str:
    """One transaction on the lab's switches; with `wait` it is in force when this returns."""
    patience = [f"--timeout={SECONDS}"] if wait else ["--no-wait"]
    return run(["ovs-vsctl", f"--db={place.socket}", *patience, *words], place)


def appctl(place: Place, *words: str) -> str:
    """What the switches' daemon answers."""
    return run(["ovs-appctl", "-t", place.control("ovs-vswitchd"), *words], place)


def start_database(place: Place) -> None:
    """An empty database and its server, which answers when this returns."""
    schema = next((path / "vswitch.ovsschema" for path in _SCHEMAS if path.is_dir()), None)
    if schema is None:
        raise LabError("there is no Open vSwitch here", "install Open vSwitch (openvswitch-switch)")
    run(["ovsdb-tool", "create", place.database, schema], place)
    remote = f"--remote=p{place.socket}"
    run(["ovsdb-server", place.database, remote, *_daemon(place, "ovsdb-server")], place)


def start_switches(place: Place, dummies: bool) -> None:
    """The daemon of the switches, which answers when this returns."""
    flavour = "--enable-dummy=override" if dummies else "--enable-dummy"
    run(["ovs-vswitchd", place.socket, flavour, *_daemon(place, "ovs-vswitchd")], place)
    prefer(int((place.path / "ovs-vswitchd.pid").read_text()))


def prefer(process: int) -> None:
    """All threads of the process come before others, those that it starts later included.

    For Linux a priority is a thread's. What looks through the cache of the switches is a thread of its own, and on a
    busy machine events go by old tables for as long as it waits.
    """
    for thread in Path(f"/proc/{process}/task").iterdir():
        with suppress(PermissionError, ProcessLookupError):  # without the privilege it works, too
            os.setpriority(os.PRIO_PROCESS, int(thread.name), PRIORITY)


def _daemon(place: Place, name: str) -> list[str]:
    files = [f"--unixctl={place.control(name)}", f"--log-file={place.log(name)}"]
    pid = f"--pidfile={place.path}/{name}.pid"
    return [*files, pid, "--detach", "--no-chdir", "-vconsole:off", "-vsyslog:off"]


def check_version(place: Place) -> None:
    """Open vSwitch 3 or later is installed."""
    words = run(["ovs-vswitchd", "--version"], place).split()
    version = next((word for word in words if word[:1].isdigit()), "0")
    if int(version.split(".")[0]) < 3:
        raise LabError(f"this is Open vSwitch {version}", "install 3.0 or later")
    if shutil.which("ip") is None:
        raise LabError("there is no program ip", "install iproute2")


def without_ipv6(interfaces: Sequence[str]) -> None:
    """The machine's own network takes no part in what crosses these interfaces; only their switch does."""
    for interface in interfaces:
        setting = Path(f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6")
        if setting.exists():  # not where the machine itself has no IPv6
            setting.write_text("1")


def in_namespace(namespace: str, work: Callable[[], _Found]) -> _Found:
    """What `work` gives inside a network namespace; it runs in a thread of its own, this one stays where it is."""
    found: list[_Found] = []
    failed: list[BaseException] = []

    def inside() -> None:
        try:
            file = os.open(NAMESPACES / namespace, os.O_RDONLY)
            try:
                if ctypes.CDLL(None, use_errno=True).setns(file, _NEW_NETWORK):
                    raise OSError(ctypes.get_errno(), "cannot enter the namespace", namespace)
            finally:
                os.close(file)
            found.append(work())
        except BaseException as error:
            failed.append(error)

    thread = Thread(target=inside)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return found[0]


def compute_checksums(interface: str) -> None:
    """Packets leave the interface with their checksums filled in.

    A veth pair leaves that to hardware which is not there, and a userspace switch passes on what it reads: a packet
    whose addresses are rewritten would arrive with a sum that is wrong.
    """
    value = ctypes.create_string_buffer(struct.pack("II", _SET_TX_CHECKSUM, 0))
    request = struct.pack("16sP16x", interface.encode(), ctypes.addressof(value))
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCETHTOOL, request)


def each(work: Callable[[_Found], None], items: Sequence[_Found]) -> None:
    """The work on each item, a few at a time, because most of it is waiting for processes."""
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(work, items):
            pass
