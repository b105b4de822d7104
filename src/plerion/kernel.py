"""The one door to numba: `kernel` compiles a function over NumPy arrays and keeps its type.

Rules for a kernel: arrays and numbers in, arrays and numbers out, no Python objects; its plain
definition stands in the tests and a law says that both agree. Compiled code is cached next to the
module, so only the first call on a machine waits for the compiler. `fastmath` stays off: covers rely on
every machine rounding alike.
"""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")

Int: TypeAlias = Any
Word: TypeAlias = Any
"""A whole number and a 64-bit word inside a kernel. Unchecked: NumPy's types cannot tell an element
of an array from a slice of it."""


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compiled on first use, cached on disk, runs without the interpreter lock."""
    return cast(Callable[P, R], njit(cache=True, nogil=True)(function))
