"""How commands ask a running controller."""

from __future__ import annotations

import os
from typing import Annotated, Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import msgspec
import typer

from plerion.content.errors import InputError

TOKEN = "PLERION_TOKEN"
USUAL = "http://127.0.0.1:8080"

Api = Annotated[str, typer.Option("--api", help="Where the controller answers.")]
Token = Annotated[
    str | None, typer.Option("--token", help=f"A token for the API; else ${TOKEN}, which others cannot see.")
]


def asked(api: str, path: str, token: str | None = None, body: object = None) -> Any:
    """What the API answers; a refusal is raised as one line. With a body it is a POST."""
    octets = None if body is None else msgspec.json.encode(body)
    request = Request(api.rstrip("/") + path, octets, {"Accept": "application/json"})
    if not request.full_url.startswith(("http://", "https://")):
        raise InputError(f"--api {api!r} is no address", f"write {USUAL}")
    if octets is not None:
        request.add_header("Content-Type", "application/json")
    if secret := token or os.environ.get(TOKEN):
        request.add_header("Authorization", f"Bearer {secret}")
    try:
        with urlopen(request, timeout=30) as response:
            return msgspec.json.decode(response.read())
    except HTTPError as error:
        fix = f"see ${TOKEN}" if error.code in (401, 403) else ""
        raise InputError(f"{request.full_url}: {error.code}: {_reason(error.read(2_000))}", fix) from None
    except (URLError, OSError, msgspec.MsgspecError) as error:
        what = f"{api}: no controller answers ({getattr(error, 'reason', error)})"
        raise InputError(what, "start one with `plerion up`, or name it with --api") from None


def _reason(body: bytes) -> str:
    try:
        return str(msgspec.json.decode(body)["error"])
    except (msgspec.MsgspecError, KeyError, TypeError):
        return body.decode("utf-8", "replace")
