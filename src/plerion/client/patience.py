"""When to ask again: sooner where answers come quickly, later where the controller has much to do.

A request that is repeated because its answer is slow makes the answers slower still; with many hosts the controller
would read repetitions and nothing else. So who sees that answers take long waits longer before the first repetition.
"""

from __future__ import annotations

from typing import Final

SOONEST_SECONDS: Final = 0.1
LATEST_SECONDS: Final = 2.0
_TIMES: Final = 3.0  # as long as usual; later the answer is taken for lost
_SHARE: Final = 0.125  # of the last answer in what is usual


class Patience:
    """What one client has learned of how long answers take."""

    def __init__(self) -> None:
        self._usual_seconds = 0.0

    @property
    def seconds(self) -> float:
        """How long to wait for an answer before the request is repeated for the first time."""
        return min(max(_TIMES * self._usual_seconds, SOONEST_SECONDS), LATEST_SECONDS)

    def heard(self, seconds: float) -> None:
        """An answer came so long after its request was first sent."""
        self._usual_seconds += _SHARE * (seconds - self._usual_seconds)

    def unheard(self, seconds: float) -> None:
        """A request has been waiting for so long; others will hardly be answered sooner."""
        self._usual_seconds = max(self._usual_seconds, seconds / _TIMES)
