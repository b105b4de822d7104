"""`plerion pub`: publish events of a file, or of standard input, from this host."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
import numpy as np
import typer

from plerion.cli.host import Address, Deadline, Interface, Lease, Log, run_until_told, unless
from plerion.cli.options import Json
from plerion.cli.output import complain, print_facts, print_json
from plerion.content.errors import ContentError, InputError
from plerion.content.read import read_events
from plerion.content.schema import Schema

if TYPE_CHECKING:
    from plerion.client import Session

Filter = Annotated[
    str, typer.Option("--filter", help="What will be published: only events that it matches may be.")
]
Events = Annotated[
    str, typer.Option("--events", help="CSV, .csv.gz, Parquet or .jsonl; - for JSON lines on standard input.")
]
Rate = Annotated[
    float | None, typer.Option("--rate", min=0.001, help="Events a second; default: as fast as it goes.")
]
Repeat = Annotated[bool, typer.Option("--repeat", help="Begin again at the end, until told to stop.")]
Cloud = Annotated[bool, typer.Option("--cloudevents", help="The lines are CloudEvents in JSON.")]
_LINES = (".jsonl", ".ndjson")
_CHUNK = 512
_TICK_SECONDS = 0.01  # a paced publisher sends what is due this often

Batch = tuple[Any, list[Any] | None]


def pub(
    filter: Filter,
    events: Events = "-",
    rate: Rate = None,
    repeat: Repeat = False,
    cloudevents: Cloud = False,
    json: Json = False,
    address: Address = None,
    interface: Interface = None,
    lease: Lease = 15.0,
    deadline: Deadline = 10.0,
    log: Log = None,
) -> None:
    """Advertise a filter and publish events; every event is checked against the schema of the network.

    plerion lab exec h1 -- plerion pub --filter TRUE --events events.csv --rate 1000
    """
    if repeat and events == "-":
        raise InputError("--repeat needs a file", "standard input can be read once")
    if cloudevents and not _is_lines(events):
        raise InputError("--cloudevents needs lines of JSON", "give - or a file named .jsonl")

    async def work(stop: asyncio.Event) -> None:
        from plerion.client import connect  # noqa: PLC0415 - the kernels load slowly, --help needs none

        options: Any = {"lease_seconds": lease, "deadline_seconds": deadline, "log": log}
        async with connect(address, interface, **options) as session:
            await session.advertise(filter)
            if not json:
                complain(f"ready: {session.host} publishes {filter}")
            source = _Source.of(events, cloudevents, repeat, session.schema)
            began = time.monotonic()
            await _publish(session, source, _Pace(rate, stop), stop)
            _print_counts(session, time.monotonic() - began, json)

    run_until_told(work)


def _is_lines(name: str) -> bool:
    return name == "-" or name.endswith(_LINES)


class _Source(NamedTuple):
    """Where events come from; those of a table are read at once."""

    name: str
    cloudevents: bool
    repeat: bool
    points: Any

    @classmethod
    def of(cls, name: str, cloudevents: bool, repeat: bool, schema: Schema) -> _Source:
        return cls(name, cloudevents, repeat, None if _is_lines(name) else read_events(name, schema).points)


async def _publish(session: Session, source: _Source, pace: _Pace, stop: asyncio.Event) -> None:
    while not stop.is_set():
        async for batch, extras in _batches(session, source, stop, pace.chunk):
            await pace.until_due(len(batch))
            if stop.is_set():
                return
            await session.publish(batch, extras)
        if not source.repeat:
            return


class _Pace:
    """Lets so many events a second pass, in small groups."""

    def __init__(self, rate: float | None, stop: asyncio.Event) -> None:
        self._rate, self._stop = rate, stop
        self._due: float | None = None
        self.chunk = _CHUNK if rate is None else max(1, min(_CHUNK, int(rate * _TICK_SECONDS)))

    async def until_due(self, count: int) -> None:
        if self._rate is None:
            return
        now = time.monotonic()
        # A pause of the input is not made up for: a rate is promised, not a total.
        due = now if self._due is None else max(self._due, now - 1.0)
        self._due = due + count / self._rate
        if due > now:
            await unless(self._stop, asyncio.sleep(due - now))


async def _batches(
    session: Session, source: _Source, stop: asyncio.Event, chunk: int
) -> AsyncIterator[Batch]:
    if source.points is not None:
        for at in range(0, len(source.points), chunk):
            yield source.points[at : at + chunk], None
        return
    async for number, line in _lines(source.name, stop):
        if line.strip():
            yield _read(session, line, f"{source.name}:{number}", source.cloudevents)


async def _lines(source: str, stop: asyncio.Event) -> AsyncIterator[tuple[int, bytes]]:
    number = 0
    if source != "-":
        with Path(source).open("rb") as file:
            for line in file:
                number += 1
                yield number, line
        return
    reader = asyncio.StreamReader(limit=1 << 20)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer
    )
    while line := await unless(stop, reader.readline()):
        number += 1
        yield number, line


def _read(session: Session, line: bytes, place: str, cloudevents: bool) -> Batch:
    from plerion.client import from_cloudevent  # noqa: PLC0415 - as above
    from plerion.client.publication import points_of  # noqa: PLC0415 - as above

    try:
        document = msgspec.json.decode(line)
        if cloudevents:
            values, extra = from_cloudevent(document, session.schema)
            return points_of(session.schema, values), [extra]
        if not isinstance(document, dict | list):
            raise InputError("an event is a JSON object of values", 'write {"temperature": 21.5}')
        points = points_of(session.schema, document)
        return points if len(points) else np.empty((0, len(session.schema.attributes))), None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", "write one JSON object a line", place) from None
    except ContentError as error:
        raise InputError(error.what, error.fix, place) from None


def _print_counts(session: Session, seconds: float, json: bool) -> None:
    rate = session.published / seconds if seconds > 0 else 0.0
    counts = {"published": session.published, "uncoded": session.uncoded, "seconds": seconds, "rate": rate}
    if json:
        print_json({"counts": counts, "publisher": session.publisher, "host": session.host})
    else:
        print_facts(f"{session.host} published", counts)


command = pub
