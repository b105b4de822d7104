"""`plerion sub`: receive what a filter matches, on this host."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from plerion.cli.host import Address, Deadline, Interface, Lease, Log, run_until_told, unless
from plerion.cli.options import Json
from plerion.cli.output import complain, print_facts, print_json

if TYPE_CHECKING:
    from plerion.client import Delivered, Session, Subscription

Count = Annotated[int | None, typer.Option("--count", min=1, help="End after so many events.")]
Seconds = Annotated[float | None, typer.Option("--seconds", min=0.0, help="End after so many seconds.")]
Queue = Annotated[int, typer.Option("--queue", min=1, help="Events that may wait to be printed.")]
Full = Annotated[
    str, typer.Option("--on-full", help="When more wait: drop-oldest, drop-newest, or wait (read no more).")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print the counts only.")]
Cloud = Annotated[bool, typer.Option("--cloudevents", help="Print each event as a CloudEvent, in JSON.")]


def sub(
    filter: Annotated[str, typer.Argument(help="What to receive, such as 'temperature > 30'; TRUE for all.")],
    count: Count = None,
    seconds: Seconds = None,
    json: Json = False,
    cloudevents: Cloud = False,
    quiet: Quiet = False,
    queue: Queue = 10_000,
    on_full: Full = "drop-oldest",
    address: Address = None,
    interface: Interface = None,
    lease: Lease = 15.0,
    deadline: Deadline = 10.0,
    log: Log = None,
) -> None:
    """Print events that the filter matches, as they arrive, and at the end what was counted.

    plerion lab exec h5 -- plerion sub 'temperature > 30' --count 10

    With --json a line an event, after a first line with "ready" and before a last one with "counts".
    """

    async def work(stop: asyncio.Event) -> None:
        from plerion.client import connect  # noqa: PLC0415 - the kernels load slowly, --help needs none

        options: Any = {"lease_seconds": lease, "deadline_seconds": deadline, "log": log}
        async with connect(address, interface, **options) as session:
            opening: Any = session.subscribe(filter, queue=queue, on_full=on_full)  # type: ignore[arg-type]  # checked there
            async with opening as subscription:
                _say_ready(session, subscription, json)
                printer = _Printer(json, cloudevents, quiet)
                await _receive(subscription, stop, count, seconds, printer)
            _print_counts(session, subscription, json)

    run_until_told(work)


async def _receive(
    subscription: Subscription,
    stop: asyncio.Event,
    count: int | None,
    seconds: float | None,
    printer: _Printer,
) -> None:
    left = count
    if seconds is not None:
        asyncio.get_running_loop().call_later(seconds, stop.set)
    while left is None or left > 0:
        found = await unless(stop, subscription.batch())
        if not found:
            return
        printer.print(found[:left])
        left = None if left is None else left - len(found)


class _Printer:
    """A line an event, many with one write."""

    def __init__(self, json: bool, cloudevents: bool, quiet: bool) -> None:
        self._json, self._cloudevents, self._quiet = json, cloudevents, quiet

    def print(self, events: list[Delivered]) -> None:
        if not self._quiet:
            sys.stdout.write("".join(f"{self._line(event)}\n" for event in events))
            sys.stdout.flush()

    def _line(self, event: Delivered) -> str:
        if self._cloudevents:
            from plerion.client import to_cloudevent  # noqa: PLC0415 - as above

            return msgspec.json.encode(to_cloudevent(event)).decode()
        if self._json:
            return msgspec.json.encode(event.to_json()).decode()
        sent = datetime.fromtimestamp(event.time_ns / 1e9, UTC).strftime("%H:%M:%S.%f")[:-3]
        values = "  ".join(f"{name}={_brief(value)}" for name, value in event.event.items())
        return f"{sent}  {event.publisher} #{event.sequence}  {1e3 * event.latency_seconds:.2f} ms  {values}"


def _brief(value: float | str | None) -> str:
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _say_ready(session: Session, subscription: Subscription, json: bool) -> None:
    if json:
        print_json({"ready": subscription.name, "host": session.host, "session": session.id})
        sys.stdout.flush()
    else:
        complain(f"ready: {session.host} receives {subscription.filter.text}")


def _print_counts(session: Session, subscription: Subscription, json: bool) -> None:
    counts = subscription.counts.to_json()
    counts |= {"malformed": session.totals.malformed, "kernel_dropped": session.dropped}
    if json:
        print_json({"counts": counts})
        return
    latency = counts.pop("latency")
    facts = {name.replace("_", " "): "unknown" if value is None else value for name, value in counts.items()}
    for name in ("mean", "p50", "p99"):
        if latency[name] is not None:
            facts[f"latency {name}"] = f"{1e3 * latency[name]:.3f} ms"
    print_facts(f"{session.host}: {subscription.filter.text}", facts)


command = sub
