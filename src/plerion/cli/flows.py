"""`plerion flows`: the entries of every switch, from a running controller."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import typer

from plerion.cli.api import USUAL, Api, Token, asked
from plerion.cli.options import Json
from plerion.cli.output import print_json, print_table
from plerion.content.errors import InputError

PAGE = 10_000


def flows(
    switch: Annotated[list[str] | None, typer.Argument(help="Switches to show; all without one.")] = None,
    api: Api = USUAL,
    token: Token = None,
    limit: Annotated[int, typer.Option(min=1, help="Entries to show of each switch.")] = 20,
    json: Json = False,
) -> None:
    """Show the entries of switches, as the controller has them there.

    plerion flows s1 --json
    """
    known = asked(api, "/v1/switches", token)["switches"]
    chosen = [one for one in known if not switch or one["switch"] in switch]
    for name in switch or []:
        if name not in {one["switch"] for one in known}:
            raise InputError(f"there is no switch {name!r} in this network")
    tables = {one["switch"]: _table(api, token, one["switch"], None if json else limit) for one in chosen}
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


def _table(api: str, token: str | None, switch: str, limit: int | None) -> tuple[int, list[dict[str, Any]]]:
    """How many entries there are, and so many of them, all without a limit."""
    found: list[dict[str, Any]] = []
    while True:
        most = min(PAGE, limit or PAGE)
        page = asked(api, f"/v1/tables/{quote(switch, safe='')}?offset={len(found)}&limit={most}", token)
        found += page["entries"]
        if limit is not None or len(found) >= page["count"] or not page["entries"]:
            return page["count"], found


def _steps(actions: list[dict[str, Any]]) -> str:
    words = [f"out {a['output']}" if "output" in a else f"to {a['set']['ipv6_dst']}" for a in actions]
    return ", ".join(words) or "drop"


def _shown(value: object) -> object:
    return "–" if value is None else value


command = flows
