"""What a controller remembers across a restart: from the journal to the state, and the boxes kept beside it."""

from __future__ import annotations

from collections.abc import Iterable
from logging import getLogger

from plerion.controller.inputs import Input
from plerion.controller.journal import Journal, digest
from plerion.controller.load import live, loaded
from plerion.controller.state import Settings, State
from plerion.controller.step import text_regions
from plerion.index.cover import Floats

log = getLogger(__name__)


def regions_of(settings: Settings, inputs: Iterable[Input]) -> dict[str, Floats]:
    """The boxes of the filter texts among the inputs; of those just stepped they are at hand."""
    texts = {text for one in inputs if isinstance(text := getattr(one, "filter", None), str)}
    return {text: text_regions(text, settings.index.schema) for text in texts}


def replayed(settings: Settings, journal: Journal | None) -> tuple[State, int]:
    """The state that the journal leads to, and how many inputs that took."""
    kept = {} if journal is None else journal.regions()
    left = live(() if journal is None else journal.replay())
    state, lost = loaded(settings, left, lambda text: kept.get(digest(text)))
    for name, reason in lost.items():
        log.error("the journal has %s, which is not understood any more: %s", name, reason)
    return state, left.count
