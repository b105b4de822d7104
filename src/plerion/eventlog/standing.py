"""What is live after a history of subscriptions that began and ended."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from plerion.content.box import bounds, boxes
from plerion.content.errors import ContentError, quoted
from plerion.content.parse import parse
from plerion.content.read import Interests
from plerion.content.schema import Schema
from plerion.eventlog.records import Floats, boxes_from_json


class _Word(NamedTuple):
    """The last that was said about a subscription, and where."""

    path: Path
    time: int
    host: str
    text: str | None
    boxes: str | None
    live: bool


class Standing:
    """The last word about each subscription, from files in any order of times; of one time the later taken counts."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._words: dict[str, _Word] = {}

    def take(self, path: Path, table: pa.Table) -> None:
        """Hears what a file of the log says."""
        times = table["time"].cast(pa.int64()).to_pylist()
        names = ("id", "host", "filter", "boxes", "live")
        for time, (id, *rest) in zip(
            times, zip(*(table[name].to_pylist() for name in names), strict=True), strict=True
        ):
            known = self._words.get(id)
            if known is None or known.time <= time:
                self._words[id] = _Word(path, time, *rest)

    def interests(self) -> tuple[Interests, list[tuple[Path, str]]]:
        """The live ones in the order of their ids, and (file, reason) of those whose filter cannot be read."""
        regions, rows, refused = cache(self._region), [], []
        for id, word in sorted(self._words.items()):
            if word.live:
                try:
                    rows.append((id, word, regions(word.text, word.boxes)))
                except ContentError as error:
                    refused.append((word.path, f"subscription {quoted(id)}: {error.summary}"))
        texts = tuple(word.text for _, word, _ in rows if word.text is not None)
        empty = np.empty((0, len(self._schema.attributes), 2))
        found = Interests(
            tuple(id for id, _, _ in rows),
            tuple(word.host for _, word, _ in rows),
            np.cumsum([0, *(len(region) for _, _, region in rows)], dtype=np.int64),
            np.concatenate([empty, *(region for _, _, region in rows)]),
            texts if len(texts) == len(rows) else None,
        )
        return found, refused

    def _region(self, text: str | None, listed: str | None) -> Floats:
        """The boxes that a filter's text or JSON means; one that many subscriptions share is parsed once."""
        if text is not None:
            return bounds(boxes(parse(text, self._schema)), self._schema)
        return boxes_from_json(listed or "[]", self._schema)
