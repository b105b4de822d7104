"""The one refusal of this folder."""

from __future__ import annotations

from plerion.content.errors import ContentError


class WireError(ContentError):
    """Bytes that mean nothing here, or a value that has no bytes: `what`, and how to `fix` it."""
