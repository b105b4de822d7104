"""Something that takes a while to open: await it to have it, or enter it to have it closed at the end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Opening(Generic[T]):
    """``async with opening as it: ...`` or ``it = await opening``; once."""

    def __init__(self, work: Coroutine[Any, Any, T], close: Callable[[T], Awaitable[None]]) -> None:
        self._work = work
        self._close = close
        self._opened: list[T] = []

    def __await__(self) -> Generator[Any, Any, T]:
        return self._work.__await__()

    async def __aenter__(self) -> T:
        self._opened.append(await self._work)
        return self._opened[0]

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close(self._opened.pop())
