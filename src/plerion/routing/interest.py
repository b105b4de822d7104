"""What hosts announce: which events they will send, which they want."""

from dataclasses import dataclass
from typing import NewType

from plerion.index.dzset import DzSet
from plerion.topology.graph import HostId

AdvertisementId = NewType("AdvertisementId", str)
SubscriptionId = NewType("SubscriptionId", str)


@dataclass(frozen=True, slots=True)
class Advertisement:
    """The host may send events under these dz."""

    id: AdvertisementId
    host: HostId
    dz: DzSet


@dataclass(frozen=True, slots=True)
class Subscription:
    """The host wants the events under these dz: the cover of its filter."""

    id: SubscriptionId
    host: HostId
    dz: DzSet
