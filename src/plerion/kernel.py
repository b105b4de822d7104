"""The one door to numba: `kernel` compiles a function over NumPy arrays and keeps its type.

Rules for a kernel: arrays and numbers in, arrays and numbers out, no Python objects; its plain
definition stands in the tests and a law says that both agree. `fastmath` stays off: covers rely on every
machine rounding alike.

Compiled code is kept, so only the first call on a machine waits for the compiler. Numba itself notices a
change of a kernel's own file but not of a kernel that it calls in another one; so the place is named after
all modules that have kernels and all that these import, and any change of any of them starts an empty one.
"""

import os
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast

from numba import config, njit

P = ParamSpec("P")
R = TypeVar("R")

Int: TypeAlias = Any
Word: TypeAlias = Any
"""A whole number and a 64-bit word inside a kernel. Unchecked: NumPy's types cannot tell an element
of an array from a slice of it."""

_KEPT = 4  # versions of the compiled code; those used least recently go first


def cache_directory(sources: Path, place: Path) -> Path:
    """A directory under `place` that is another one as soon as a source that kernels depend on differs."""
    digest = sha256()
    for name, text in sorted(_behind_kernels(sources).items()):
        digest.update(name.encode() + b"\0" + text)
    found = place / digest.hexdigest()[:16]
    found.mkdir(parents=True, exist_ok=True)
    found.touch()
    versions = sorted(place.iterdir(), key=lambda version: version.stat().st_mtime, reverse=True)
    for old in versions[_KEPT:]:
        rmtree(old, ignore_errors=True)
    return found


def _behind_kernels(sources: Path) -> dict[str, bytes]:
    """The modules that import `kernel` and everything of the package that these import, by name."""
    texts = {
        ".".join((sources.name, *file.relative_to(sources).with_suffix("").parts)): file.read_bytes()
        for file in sources.rglob("*.py")
    }
    waiting = [name for name, text in texts.items() if f"{sources.name}.kernel".encode() in text]
    found: dict[str, bytes] = {}
    while waiting:
        name = waiting.pop()
        if name in texts and name not in found:
            found[name] = texts[name]
            waiting += [match.decode() for match in re.findall(rb"(?:from|import)\s+([\w.]+)", texts[name])]
    return found


def _set_cache() -> None:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")  # noqa: PTH111, PTH118 - a home that is not there is no error here
    try:
        found = cache_directory(Path(__file__).parent, Path(home) / "plerion" / "kernels")
    except OSError:
        return  # numba then looks for a place of its own
    setattr(config, "CACHE_DIR", str(found))  # noqa: B010 - numba makes its settings at run time


if "NUMBA_CACHE_DIR" not in os.environ:
    _set_cache()


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compiled on first use, kept on disk, runs without the interpreter lock."""
    return cast(Callable[P, R], njit(cache=True, nogil=True)(function))


def lean(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that makes no arrays, and so counts no references to those that it is given.

    For what is called millions of times: each call would else count up and down every array of every tuple it gets, and
    atomically at that, which took two thirds of the time of covers.
    """
    compiled = njit(cache=True, nogil=True, _nrt=False)  # type: ignore[call-overload]  # numba's types leave it out
    return cast(Callable[P, R], compiled(function))
