"""From datagrams to those who asked: decoded, checked, seen for the first time, matched exactly, handed out.

A batch is decoded by a decoder that is made for the schema, so values have the right types when they get here; whether
they lie within their attribute, and which subscriptions want them, is then decided for the whole batch at once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from plerion.client.counts import Counts, Ints, Totals
from plerion.client.delivered import Delivered
from plerion.client.window import Windows
from plerion.content.schema import MISSING, Enumeration, Schema
from plerion.index.content_index import ContentIndex
from plerion.index.tiles import tile_tree
from plerion.matching.bitset import BitsetMatcher
from plerion.wire.event import MAX_BYTES, EventDatagram

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_SPOKEN: Final = 4  # indexes whose events may still arrive
_AGAIN: Final = 4_096  # events that came again, remembered to tell copies from doubles
_UNDECODABLE: Final = (msgspec.MsgspecError, ValueError, RecursionError, TypeError)


class Interest(Protocol):
    """What reception needs to know of a subscription."""

    bounds: Floats
    counts: Counts

    def offer(self, events: list[Delivered]) -> None:
        """Takes wanted events, in the order in which they came."""
        ...


@dataclass(slots=True, eq=False)
class Arrived:
    """Events of one batch that came for the first time; for those who keep a log."""

    events: list[Any]
    points: Floats
    wanted: Flags  # (events, interests)
    received_ns: int


class Reception:
    """One session's incoming events; synchronous, driven by whoever reads the socket."""

    def __init__(self, index: ContentIndex, watch: Callable[[Arrived], None] | None = None) -> None:
        self.totals = Totals()
        self.interests: list[Interest] = []
        self._watch = watch
        self._windows = Windows()
        self._again: OrderedDict[tuple[bytes, str, int], int] = OrderedDict()
        self._spoken: OrderedDict[int, ContentIndex] = OrderedDict()  # by epoch
        self.describe(index)

    def describe(self, index: ContentIndex) -> None:
        """Reads events of this index from now on, and goes on reading those of a few before it."""
        self._index = index
        self._spoken[index.epoch] = index
        self._spoken.move_to_end(index.epoch)
        while len(self._spoken) > _SPOKEN:
            self._spoken.popitem(last=False)
        self._decode = _decoder(index.schema).decode
        self._positions = _Positions(index.schema)
        self._matcher: BitsetMatcher | None = None

    def admit(self, interest: Interest) -> None:
        """One more who gets what it wants from now on."""
        interest.counts.follow(self.totals)
        self.interests.append(interest)
        self._matcher = None

    def dismiss(self, interest: Interest) -> None:
        interest.counts.stop()
        self.interests.remove(interest)
        self._matcher = None

    def _matching(self) -> BitsetMatcher:
        """Built when the first event comes after a change, so that many changes in a row cost one."""
        if self._matcher is None:
            sizes = [len(interest.bounds) for interest in self.interests]
            width = len(self._index.schema.attributes)
            bounds = [np.empty((0, width, 2)), *(interest.bounds for interest in self.interests)]
            self._matcher = BitsetMatcher.of(np.cumsum([0, *sizes]), np.concatenate(bounds))
        return self._matcher

    def take(
        self, datagrams: Sequence[bytes | memoryview], received_ns: int, sources: Sequence[bytes]
    ) -> None:
        """Hands out what these datagrams, from these addresses, hold. Nothing that they hold can raise."""
        decoded, senders = self._decoded(datagrams, sources)
        if not decoded:
            return
        points, fit = self._positions.of([event.values for event in decoded])
        fitting = np.flatnonzero(fit).tolist()
        fresh = [at for at in fitting if self._is_fresh(senders[at], decoded[at], points[at])]
        self.totals.malformed += len(decoded) - int(fit.sum())
        if not fresh:
            return
        events, places = [decoded[at] for at in fresh], points[fresh]
        wanted = self._matching().matches(places)
        self.totals.received += len(events)
        self.totals.false_positives += len(events) - int(wanted.any(axis=1).sum())
        taken = received_ns - np.array([event.time_ns for event in events])
        self.totals.latency.add(taken)
        self._hand_out(events, [senders[at] for at in fresh], wanted, taken, received_ns)
        if self._watch is not None:
            self._watch(Arrived(events, places, wanted, received_ns))

    def _decoded(
        self, datagrams: Sequence[bytes | memoryview], sources: Sequence[bytes]
    ) -> tuple[list[Any], list[bytes]]:
        decode = self._decode
        found, senders = [], []
        for datagram, source in zip(datagrams, sources, strict=True):
            try:
                if len(datagram) <= MAX_BYTES:
                    found.append(decode(datagram))
                    senders.append(source)
            except _UNDECODABLE:
                continue
        self.totals.malformed += len(datagrams) - len(found)
        return found, senders

    def _is_fresh(self, source: bytes, event: EventDatagram, point: Floats) -> bool:
        if self._windows.of(source, event.publisher).first_time(event.sequence):
            return True
        if self._is_copy(source, event, point):
            self.totals.copies += 1
        else:
            self.totals.doubles += 1
        return False

    def _is_copy(self, source: bytes, event: EventDatagram, point: Floats) -> bool:
        """Whether an event that came again has codes left under which it may come."""
        index = self._spoken.get(event.epoch, self._index)
        if tile_tree(index) is not None:  # then every event has one code
            return False
        key = source, event.publisher, event.sequence
        arrivals = self._again.pop(key, 1) + 1
        self._again[key] = arrivals
        if len(self._again) > _AGAIN:
            self._again.popitem(last=False)
        return arrivals <= len(index.codes(point.tolist()))

    def _hand_out(
        self, events: list[Any], senders: list[bytes], wanted: Flags, taken: Ints, received_ns: int
    ) -> None:
        built: dict[int, Delivered] = {}
        for column in np.flatnonzero(wanted.any(axis=0)).tolist():
            interest, chosen = self.interests[column], np.flatnonzero(wanted[:, column])
            counts = interest.counts
            counts.wanted += len(chosen)
            counts.latency.add(taken[chosen])
            rows = chosen.tolist()
            for at in rows:
                if at not in built:
                    built[at] = self._delivered(events[at], received_ns)
                if counts.sequences is not None:
                    counts.sequences.add(senders[at], events[at].publisher, events[at].sequence)
            interest.offer([built[at] for at in rows])

    def _delivered(self, event: Any, received_ns: int) -> Delivered:
        return Delivered(
            self._index.schema,
            event.values,
            event.publisher,
            event.sequence,
            event.epoch,
            event.time_ns,
            received_ns,
            event.extra,
        )


def _decoder(schema: Schema) -> msgspec.msgpack.Decoder[Any]:
    """Decodes what `wire.event` does, and refuses values that are not numbers or texts as the schema says."""
    kinds = [str | None if isinstance(a, Enumeration) else float | None for a in schema.attributes]
    fields: list[Any] = [
        (name, tuple[tuple(kinds)] if name == "values" else kind)  # type: ignore[misc]  # made at run time
        for name, kind in _FIELDS
    ]
    made = msgspec.defstruct(
        "SchemaDatagram",
        fields,
        frozen=True,
        array_like=True,
        tag=EventDatagram.__struct_config__.tag,
        forbid_unknown_fields=True,
        gc=False,
    )
    return msgspec.msgpack.Decoder(made, ext_hook=_no_extension)


_FIELDS: Final = [(field.name, field.type) for field in msgspec.structs.fields(EventDatagram)]


def _no_extension(code: int, _body: memoryview) -> Any:
    raise ValueError(f"extension {code} has no meaning here")


class _Positions:
    """Values of many events as axis positions, and which events have none but such."""

    def __init__(self, schema: Schema) -> None:
        self._starts, self._ends = np.array(schema.starts), np.array(schema.ends)
        self._ranks = {
            at: {value: rank for rank, value in enumerate(attribute.values)}
            for at, attribute in enumerate(schema.attributes)
            if isinstance(attribute, Enumeration)
        }
        self._whole = [at for at, a in enumerate(schema.attributes) if getattr(a, "integer", False)]

    def of(self, values: list[tuple[float | str | None, ...]]) -> tuple[Floats, Flags]:
        if self._ranks:
            columns: list[Any] = list(zip(*values, strict=True))
            for at, ranks in self._ranks.items():
                # A text that is no value stands where no value stands, at +inf, and is refused with those.
                columns[at] = [None if text is None else ranks.get(text, np.inf) for text in columns[at]]
            points = np.ascontiguousarray(np.array(columns, np.float64).T)
        else:
            points = np.array(values, np.float64)
        missing = np.isnan(points)
        fit = missing | ((points >= self._starts) & (points < self._ends))
        for at in self._whole:
            fit[:, at] &= missing[:, at] | (points[:, at] == np.floor(points[:, at]))
        points[missing] = MISSING
        return points, np.asarray(fit.all(axis=1))
