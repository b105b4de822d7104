"""`plerion flows`: the entries of every switch, from a running controller."""

from __future__ import annotations

import os
from typing import Annotated, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

import msgspec
import typer

from plerion.cli.options import Json
from plerion.cli.output import print_json, print_table
from plerion.content.errors import InputError

TOKEN = "PLERION_TOKEN"
PAGE = 10_000


def flows(
    switch: Annotated[list[str] | None, typer.Argument(help="Switches to show; all without one.")] = None,
    api: Annotated[
        str, typer.Option("--api", help="Where the controller answers.")
    ] = "http://127.0.0.1:8080",
    limit: Annotated[int, typer.Option(min=1, help="Entries to show of each switch.")] = 20,
    json: Json = False,
) -> None:
    """Show the entries of switches, as the controller has them there; a token is taken from $PLERION_TOKEN.

    plerion flows s1 --json
    """
    known = asked(api, "/v1/switches")["switches"]
    chosen = [one for one in known if not switch or one["switch"] in switch]
    for name in switch or []:
        if name not in {one["switch"] for one in known}:
            raise InputError(f"there is no switch {name!r} in this network")
    tables = {one["switch"]: _table(api, one["switch"], None if json else limit) for one in chosen}
    if json:
        print_json({"switches": {name: entries for name, (_, entries) in tables.items()}})
        return
    columns = ("switch", "connected", "in step", "entries", "limit", "admissions")
    keys = ("switch", "connected", "in_step", "entries", "limit", "admissions")
    print_table("switches", columns, [[_shown(one[key]) for key in keys] for one in chosen])
    for name, (count, entries) in tables.items():
        rows = [(e["priority"], *e["match"].values(), _steps(e["actions"])) for e in entries]
        some = f", the first {len(rows)}" if len(rows) < count else ""
        print_table(f"\n{name}: {count} entries{some}", ("priority", "destination", "actions"), rows)


def asked(api: str, path: str) -> Any:
    """What the API answers; a refusal is raised as one line."""
    request = Request(api.rstrip("/") + path, headers={"Accept": "application/json"})
    if not request.full_url.startswith(("http://", "https://")):
        raise InputError(f"--api {api!r} is no address", "write http://127.0.0.1:8080")
    if os.environ.get(TOKEN):
        request.add_header("Authorization", f"Bearer {os.environ[TOKEN]}")
    try:
        with urlopen(request, timeout=30) as response:
            return msgspec.json.decode(response.read())
    except HTTPError as error:
        reason = error.read(2_000).decode("utf-8", "replace")
        raise InputError(f"{request.full_url}: {error.code}: {reason}", f"see ${TOKEN}") from None
    except (URLError, OSError, msgspec.MsgspecError) as error:
        what = f"{api}: no controller answers ({getattr(error, 'reason', error)})"
        raise InputError(what, "start one with `plerion up`, or name it with --api") from None


def _table(api: str, switch: str, limit: int | None) -> tuple[int, list[dict[str, Any]]]:
    """How many entries there are, and so many of them, all without a limit."""
    found: list[dict[str, Any]] = []
    while True:
        most = min(PAGE, limit or PAGE)
        page = asked(api, f"/v1/tables/{quote(switch, safe='')}?offset={len(found)}&limit={most}")
        found += page["entries"]
        if limit is not None or len(found) >= page["count"] or not page["entries"]:
            return page["count"], found


def _steps(actions: list[dict[str, Any]]) -> str:
    words = [f"out {a['output']}" if "output" in a else f"to {a['set']['ipv6_dst']}" for a in actions]
    return ", ".join(words) or "drop"


def _shown(value: object) -> object:
    return "–" if value is None else value


command = flows
