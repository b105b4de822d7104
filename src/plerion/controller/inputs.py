"""Everything that can happen to a controller, as values that the journal keeps."""

from __future__ import annotations

import msgspec

Boxes = tuple[tuple[tuple[float, float], ...], ...]
"""Disjoint boxes written out: for each, [low, high) on each attribute."""


class _Input(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Tagged with its name and written as an array, so a journal of a million inputs stays small."""


class Advertise(_Input, frozen=True):
    """The host will send events that this filter matches."""

    id: str
    host: str
    filter: str | Boxes


class Unadvertise(_Input, frozen=True):
    id: str


class Subscribe(_Input, frozen=True):
    """The host wants events that this filter matches."""

    id: str
    host: str
    filter: str | Boxes


class Unsubscribe(_Input, frozen=True):
    id: str


class LinkDown(_Input, frozen=True):
    """The link at this port (``s1:2``) carries nothing any more."""

    port: str


class LinkUp(_Input, frozen=True):
    port: str


class SwitchDown(_Input, frozen=True):
    switch: str


class SwitchUp(_Input, frozen=True):
    switch: str


Input = Advertise | Unadvertise | Subscribe | Unsubscribe | LinkDown | LinkUp | SwitchDown | SwitchUp
