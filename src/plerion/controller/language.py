"""What a controller speaks: the index that events are coded with and the stamp that their entries carry.

It changes while the controller runs, by a rollout, and is kept in the journal with those that were spoken before.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from plerion.controller.state import Settings
from plerion.flow.render import LastHop
from plerion.index.codec import from_json, to_json
from plerion.index.content_index import ContentIndex
from plerion.update.entries import ANY, Side
from plerion.update.plan import Sending
from plerion.update.state import Stamp
from plerion.wire.description import Description


class Language(msgspec.Struct, frozen=True, array_like=True):
    """As the journal keeps it."""

    index: bytes
    epoch: int
    vlan: int
    lifted: bool

    @property
    def stamp(self) -> Stamp:
        return Stamp(self.epoch, self.vlan, self.lifted)

    def read(self) -> ContentIndex:
        return from_json(self.index)


def language(settings: Settings) -> Language:
    """What a controller with these settings speaks."""
    stamp = settings.stamp
    return Language(to_json(settings.index), stamp.epoch, stamp.vlan, stamp.lifted)


def speaking(settings: Settings, spoken: Language) -> Settings:
    """The same settings in another language."""
    epoch = spoken.epoch % (1 << settings.epoch_bits) if settings.epoch_bits else ANY
    return replace(settings, index=spoken.read(), stamp=replace(spoken.stamp, epoch=epoch))


def described(sending: Sending, old: Settings, new: Settings, last_hop: LastHop) -> Description:
    """What hosts are told so that they send like this; at rest `old` and `new` are the same."""
    settings = old if sending.side == Side.OLD else new
    plan = replace(settings, stamp=sending.stamp).plan
    return Description(settings.index, plan, last_hop, sending.vlan, sending.groups)


def at_rest(settings: Settings, last_hop: LastHop) -> Description:
    """What hosts are told while nothing changes."""
    return described(Sending(Side.OLD, settings.stamp), settings, settings, last_hop)
