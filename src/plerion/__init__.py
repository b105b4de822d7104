"""Publish/subscribe whose filters run inside the network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plerion.client.connect import connect

__all__ = ["connect"]


def __getattr__(name: str) -> Any:
    """`plerion.connect` loads the client when it is first asked for: most of the package does without."""
    if name == "connect":
        from plerion.client.connect import connect  # noqa: PLC0415 - as said

        return connect
    raise AttributeError(f"module 'plerion' has no attribute {name!r}")
