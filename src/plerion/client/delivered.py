"""An event as the application gets it."""

from __future__ import annotations

from math import isnan
from typing import Any

import msgspec

from plerion.content.schema import Number, Schema
from plerion.wire.event import Value


class Delivered(msgspec.Struct, frozen=True, gc=False, eq=False):
    """One event that reached a subscriber who asked for it; ``delivered["temperature"]`` is a value of it."""

    schema: Schema
    raw: tuple[float | str | None, ...]
    publisher: str
    sequence: int
    epoch: int
    time_ns: int
    received_ns: int
    extra: dict[str, Any] | None

    @property
    def event(self) -> dict[str, Value]:
        """The values by name, None where the event has none."""
        return {name: self._value(at) for at, name in enumerate(self.schema.names)}

    @property
    def latency_seconds(self) -> float:
        """From sending to reception, by the clocks of two hosts."""
        return (self.received_ns - self.time_ns) / 1e9

    def __getitem__(self, name: str) -> Value:
        return self._value(self.schema.position(name))

    def _value(self, at: int) -> Value:
        value, attribute = self.raw[at], self.schema.attributes[at]
        if not isinstance(value, float):
            return value
        if isnan(value):
            return None
        return int(value) if isinstance(attribute, Number) and attribute.integer else value

    def to_json(self) -> dict[str, Any]:
        identity = {"publisher": self.publisher, "sequence": self.sequence, "epoch": self.epoch}
        return identity | {"time_ns": self.time_ns, "event": self.event, "extra": self.extra}
