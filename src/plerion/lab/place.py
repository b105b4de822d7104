"""Where the files of labs are, and the one lock that a lab has."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plerion.lab.error import LabError
from plerion.lab.names import Names

VARIABLE = "PLERION_RUN"
DEFAULT_ROOT = Path("/run/plerion")


def run_root(given: Path | None = None) -> Path:
    """The directory that holds a directory for each lab: as given, as the environment says, or the usual one.

    Links are followed, because processes are known by it: one directory has one name.
    """
    if given is not None:
        return given.resolve()
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE]).resolve()
    if os.geteuid() == 0:
        return DEFAULT_ROOT
    return Path(os.environ.get("XDG_RUNTIME_DIR") or f"/tmp/plerion-{os.getuid()}").resolve() / "plerion"


def home_of(root: Path) -> str:
    """What tells labs of this directory from others of the same name: nothing in the usual place."""
    return "" if root == DEFAULT_ROOT else str(root)


class Place:
    """The run directory of one lab, and the files in it."""

    def __init__(self, name: str, root: Path | None = None) -> None:
        home = run_root(root)
        self.names = Names(name, home_of(home))
        self.path = home / name

    @property
    def name(self) -> str:
        return self.names.lab

    @property
    def database(self) -> Path:
        return self.path / "conf.db"

    @property
    def socket(self) -> str:
        """The database, as the programs of Open vSwitch name it."""
        return f"unix:{self.path}/db.sock"

    @property
    def description(self) -> Path:
        return self.path / "lab.json"

    def control(self, daemon: str) -> Path:
        """The socket on which a daemon is asked."""
        return self.path / f"{daemon}.ctl"

    def log(self, daemon: str) -> Path:
        return self.path / f"{daemon}.log"

    def environment(self) -> dict[str, str]:
        """Open vSwitch keeps the sockets of bridges where this says."""
        return {**os.environ, "OVS_RUNDIR": str(self.path), "OVS_LOGDIR": str(self.path)}

    def busy(self) -> bool:
        """Whether somebody builds this lab or takes it down just now."""
        try:
            with self.locked():
                return False
        except LabError:
            return True

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else builds this lab or takes it down meanwhile; a process that dies lets go of it."""
        try:
            directory = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            yield  # Nothing is there to be built or taken down by others.
            return
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            what = f"lab {self.name} is being built or taken down by another process"
            raise LabError(what, "wait for it, or end it") from None
        finally:
            os.close(directory)
