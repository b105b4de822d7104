"""What a controller remembers across a restart: from the journal to the state, and the boxes kept beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from logging import getLogger

import numpy as np

from plerion.controller.inputs import Input
from plerion.controller.journal import Journal, digest
from plerion.controller.language import speaking
from plerion.controller.load import Live, live, loaded
from plerion.controller.state import Settings, State
from plerion.controller.step import text_regions
from plerion.index.cover import Floats

LOOKED_AT = 32

log = getLogger(__name__)


def regions_of(settings: Settings, inputs: Iterable[Input]) -> dict[str, Floats]:
    """The boxes of the filter texts among the inputs; of those just stepped they are at hand."""
    texts = {text for one in inputs if isinstance(text := getattr(one, "filter", None), str)}
    return {text: text_regions(text, settings.index.schema) for text in texts}


def spoken(settings: Settings, journal: Journal | None) -> Settings:
    """The settings in the language that the journal says is spoken."""
    known = [] if journal is None else journal.languages()
    return speaking(settings, known[-1]) if known else settings


def replayed(settings: Settings, journal: Journal | None) -> tuple[State, int]:
    """The state that the journal leads to, and how many inputs that took."""
    left = live(() if journal is None else journal.replay())
    kept = {} if journal is None else _believed(settings, left, journal.regions())
    state, lost = loaded(settings, left, lambda text: kept.get(digest(text)))
    for name, reason in lost.items():
        log.error("the journal has %s, which is not understood any more: %s", name, reason)
    return state, left.count


def _believed(settings: Settings, left: Live, kept: Mapping[bytes, Floats]) -> Mapping[bytes, Floats]:
    """The kept boxes, if some texts looked at still mean what they did; a release may read filters otherwise."""
    texts = [one.filter for one in left.subscriptions.values() if isinstance(one.filter, str)]
    for text in texts[:: max(1, len(texts) // LOOKED_AT)]:
        found = kept.get(digest(text))
        if found is not None and not _means(settings, text, found):
            log.warning("the journal's boxes are of another release; all filters are parsed anew")
            return {}
    return kept


def _means(settings: Settings, text: str, boxes: Floats) -> bool:
    try:
        return np.array_equal(text_regions(text, settings.index.schema), boxes)
    except ValueError:
        return False
