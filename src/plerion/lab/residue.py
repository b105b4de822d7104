"""All that there is of a lab, found by its name alone, and removed.

A lab may have died at any moment: half built, its daemons killed, its run directory all that a reboot left. So nothing
that was written down is believed. Processes are known by their program and by the run directory among their words,
namespaces and interfaces by their names, and removing goes on until nothing is found.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

from plerion.lab.error import LabError
from plerion.lab.names import is_name, lab_of
from plerion.lab.place import DEFAULT_ROOT, Place, home_of
from plerion.lab.run import NAMESPACES
from plerion.lab.sockets import packet_sockets

# What building a lab starts. A pager that shows a log of the lab is none of it.
PROGRAMS = frozenset({"ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-appctl", "ovsdb-tool", "ip", "tc"})
PATIENCE_SECONDS = 20.0
STEP_SECONDS = 0.01
CLOSED_AT_ONCE = 64
_PROCESSES = Path("/proc")


@dataclass(frozen=True, slots=True)
class Residue:
    """What was found of a lab; false when there is nothing."""

    processes: tuple[int, ...]
    guests: tuple[int, ...]
    namespaces: tuple[str, ...]
    interfaces: tuple[str, ...]
    directory: bool

    def __bool__(self) -> bool:
        return bool(self.processes or self.namespaces or self.interfaces or self.directory)

    def __str__(self) -> str:
        parts = {
            "process": (len(self.processes), "es"),
            "namespace": (len(self.namespaces), "s"),
            "interface": (len(self.interfaces), "s"),
            "run directory": (int(self.directory), ""),
        }
        words = [f"{n} {what}{plural if n > 1 else ''}" for what, (n, plural) in parts.items() if n]
        return ", ".join(words) or "nothing"


def residue(place: Place) -> Residue:
    """Everything that the lab of this name has on this machine now."""
    namespaces = tuple(sorted(name for name in _listed(NAMESPACES) if place.names.is_namespace(name)))
    own = tuple(sorted(name for _, name in socket.if_nameindex() if place.names.is_interface(name)))
    daemons = tuple(pid for pid, _ in daemons_of(place.path))
    return Residue(daemons, tuple(_guests(namespaces)), namespaces, own, place.path.exists())


def daemons_of(path: Path) -> Iterator[tuple[int, str]]:
    """(pid, program) of each process that works on the run directory."""
    for pid, words in _commands():
        program = words[0].rpartition("/")[2]
        if program in PROGRAMS and any(f"{path}/" in word for word in words[1:]) and _sees(pid, path):
            yield pid, program


def named_labs(root: Path) -> list[str]:
    """The names of all labs that have left a directory, a process or a namespace."""
    found = {path.name for path in root.iterdir() if path.is_dir()} if root.is_dir() else set()
    found |= {
        name for name in (lab_of(space, home_of(root)) for space in _listed(NAMESPACES)) if name is not None
    }
    for pid, words in _commands():
        for word in words[1:] if words[0].rpartition("/")[2] in PROGRAMS else ():
            _, inside, rest = word.partition(f"{root}/")
            if inside and _sees(pid, root):
                found.add(rest.partition("/")[0])
    return sorted(filter(is_name, found))


def remove(place: Place) -> Residue:
    """Nothing of the lab is left when this returns; answers with what there was. Programs in its hosts end, too."""
    first = found = residue(place)
    give_up = monotonic() + PATIENCE_SECONDS
    while found:
        end([*found.processes, *found.guests])
        _delete(place.names.group, found)
        shutil.rmtree(place.path, ignore_errors=True)
        found = residue(place)
        if found and monotonic() > give_up:
            raise LabError(f"lab {place.name} does not go away: {found} left", "see who holds it")
        if found:
            sleep(STEP_SECONDS)
    if place.path.parent == DEFAULT_ROOT:
        with suppress(OSError):  # another lab is in it, or somebody was quicker
            DEFAULT_ROOT.rmdir()
    return first


def end(processes: Iterable[int]) -> None:
    """The processes are killed, and gone when this returns."""
    pending = set(processes)
    borrowed = [copy for pid in pending for copy in _borrowed(pid)]
    for pid in pending:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    give_up = monotonic() + PATIENCE_SECONDS
    try:
        while pending := {pid for pid in pending if _alive(pid)}:
            if monotonic() > give_up:
                raise LabError(f"process {min(pending)} does not end")
            sleep(STEP_SECONDS)
    finally:
        # The kernel takes its time over each packet socket, and as long over many that are closed at once. A process
        # that dies closes them one by one, which is why the last copies are here.
        with ThreadPoolExecutor(CLOSED_AT_ONCE) as pool:
            list(pool.map(socket.socket.close, borrowed))


def _borrowed(pid: int) -> Iterator[socket.socket]:
    with suppress(OSError):  # not allowed, or too many: then it only takes longer
        yield from packet_sockets(pid)


def _delete(group: int, found: Residue) -> None:
    # A group is deleted at once, where one by one each would wait for the kernel to be done with it.
    lines = [f"link set {interface} group {group}" for interface in found.interfaces]
    lines += [f"link delete group {group}"] if found.interfaces else []
    lines += [f"netns delete {namespace}" for namespace in found.namespaces]
    if lines:
        # With -force it goes on after a line that failed; what is left is seen and tried again.
        subprocess.run(
            ["ip", "-force", "-batch", "-"], input="\n".join(lines) + "\n", text=True, capture_output=True, check=False
        )  # fmt: skip


def _listed(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()] if folder.is_dir() else []


def _commands() -> Iterator[tuple[int, list[str]]]:
    """Processes and their words; a process that ended has none."""
    for path in _PROCESSES.iterdir():
        if path.name.isdigit():
            try:
                words = (path / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
            except OSError:
                continue
            if words[0]:
                yield int(path.name), words


def _guests(namespaces: Iterable[str]) -> Iterator[int]:
    """The processes that run inside of namespaces."""
    wanted = {identity for name in namespaces if (identity := _identity(NAMESPACES / name))}
    if wanted:
        for pid, _ in _commands():
            if _identity(_PROCESSES / str(pid) / "ns" / "net") in wanted and pid != os.getpid():
                yield pid


def _sees(pid: int, path: Path) -> bool:
    """Whether a path is the same for a process as for us: in a container it has the same name and is another."""
    for place in (path, *path.parents):
        ours, theirs = _identity(place), _identity(_PROCESSES / str(pid) / "root" / place.relative_to("/"))
        if ours and theirs:
            return ours == theirs
    return False


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells a file, a directory or a namespace from all others."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _alive(pid: int) -> bool:
    try:
        # The name in brackets may hold anything, so the state is what follows the last bracket.
        state = (_PROCESSES / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
        # The first thread of a killed process is a zombie while others still hold what they share.
        threads = len(_listed(_PROCESSES / str(pid) / "task"))
    except OSError:
        return False
    return state not in ("Z", "X") or threads > 1
