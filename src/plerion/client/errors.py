"""What can go wrong for a client, one class a cause; each says what happened and what to look at."""

from __future__ import annotations

from plerion.content.errors import ContentError


class ClientError(ContentError):
    """The network cannot do what the application asked for: `what`, and how to `fix` it."""


class ControllerSilent(ClientError):  # noqa: N818 - reads as what happened
    """No answer came in time, although the request was repeated."""

    def __init__(self, asked: str, target: str, seconds: float) -> None:
        super().__init__(
            f"no answer to {asked} from the controller at {target} within {seconds:g} s",
            "check that `plerion up` runs, that its topology has this host at this port with this address, "
            "and that the switch is connected to it",
        )
        self.asked = asked
        self.target = target
        self.seconds = seconds


class JoinRefused(ClientError):  # noqa: N818 - reads as what happened
    """The controller does not let this host take part."""


class SubscriptionRefused(ClientError):  # noqa: N818 - reads as what happened
    """The controller does not take a subscription; `reason` is what it said."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"subscription {name!r} is refused: {reason}")
        self.name = name
        self.reason = reason


class AdvertisementRefused(ClientError):  # noqa: N818 - reads as what happened
    """The controller does not take an advertisement; `reason` is what it said."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"advertisement {name!r} is refused: {reason}")
        self.name = name
        self.reason = reason


class NotAdvertised(ClientError):  # noqa: N818 - reads as what happened
    """An event that no advertisement of the session covers: the first switch would drop it."""


class TransportError(ClientError):
    """The host's own sockets cannot be used as they must be."""


class SessionClosed(ClientError):  # noqa: N818 - reads as what happened
    """The session has ended, and nothing more can be done with it."""
