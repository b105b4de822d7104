"""What `pub` and `sub` share: options of a host, and a run that ends in order when it is told to."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

import typer

Address = Annotated[
    str | None, typer.Option("--address", help="This host's address; default: its only one in the network.")
]
Interface = Annotated[
    str | None, typer.Option("--interface", help="The interface that has the address; default: eth0.")
]
Lease = Annotated[
    float, typer.Option("--lease", min=1.0, help="Seconds without a sign of life until all is withdrawn.")
]
Deadline = Annotated[float, typer.Option("--deadline", min=0.1, help="Seconds to wait for the controller.")]
Log = Annotated[
    str | None, typer.Option("--log", help="Directory of an event log that keeps what is sent or received.")
]


def run_until_told(work: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    """Runs the work; Ctrl-C and SIGTERM set the event that it is given, and it ends by itself."""

    async def running() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        await work(stop)

    asyncio.run(running())


async def unless(stop: asyncio.Event, work: Coroutine[Any, Any, Any]) -> Any:
    """What the work gives, or None when it is told to stop before."""
    doing, told = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    await asyncio.wait((doing, told), return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    if doing.done():
        return doing.result()
    doing.cancel()
    await asyncio.gather(doing, return_exceptions=True)
    return None
