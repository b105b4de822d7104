"""The client SDK: how an application on a host publishes and subscribes. This is the stable API.

`connect` gives a `Session`; what it raises is a `ClientError`, or a `ContentError` where a filter or an event is wrong.
`plerion.client.sync` has the same for programs without an event loop.
"""

from plerion.client.cloudevents import from_cloudevent, to_cloudevent
from plerion.client.connect import connect
from plerion.client.counts import Counts, Latency
from plerion.client.delivered import Delivered
from plerion.client.errors import (
    AdvertisementRefused,
    ClientError,
    ControllerSilent,
    JoinRefused,
    NotAdvertised,
    SessionClosed,
    SubscriptionRefused,
    TransportError,
)
from plerion.client.session import Session
from plerion.client.subscription import Subscription
from plerion.client.transport import LoopbackTransport, Transport

__all__ = [
    "AdvertisementRefused",
    "ClientError",
    "ControllerSilent",
    "Counts",
    "Delivered",
    "JoinRefused",
    "Latency",
    "LoopbackTransport",
    "NotAdvertised",
    "Session",
    "SessionClosed",
    "Subscription",
    "SubscriptionRefused",
    "Transport",
    "TransportError",
    "connect",
    "from_cloudevent",
    "to_cloudevent",
]
