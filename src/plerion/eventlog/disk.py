"""Files that are there as a whole or not at all, whenever the process or the machine stops."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, content: bytes, synced: bool = True) -> None:
    """Gives the path this content at one instant; nobody ever sees a part of it under this name.

    It is written under a name that starts with a dot, which the log's readers and Spark pass over, and then renamed.
    `synced` returns when it would survive a power cut; without it that is left to a later `os.sync`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            file.write(content)
            if synced:
                file.flush()
                os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    if synced:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder survive a power cut."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
