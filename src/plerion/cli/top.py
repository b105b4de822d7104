"""`plerion top`: a running network as it is now, switch by switch and session by session."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic, sleep
from typing import Annotated, Any

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from plerion.cli.api import USUAL, Api, Token, asked
from plerion.cli.options import Json
from plerion.cli.output import print_json

FULL, NEARLY_FULL = 1.0, 0.8


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that is shown, as the controller tells it at one moment."""

    at: float
    switches: list[dict[str, Any]]
    statistics: dict[str, dict[str, Any]]
    sessions: list[dict[str, Any]]


def top(
    api: Api = USUAL,
    token: Token = None,
    every: Annotated[float, typer.Option(min=0.2, max=60.0, help="Seconds between two looks.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Look twice, print the second, and end.")] = False,
    json: Json = False,
) -> None:
    """Watch table fill, rates, refused events and false positives until Ctrl-C.

    plerion top --once --json
    """
    before = _look(api, token)
    if once or json:
        sleep(every)
        shown = document(before, _look(api, token))
        print_json(shown) if json else Console().print(screen(shown))
        return
    with Live(console=Console(), screen=False, auto_refresh=False) as live:
        while True:
            sleep(every)
            after = _look(api, token)
            live.update(screen(document(before, after)), refresh=True)
            before = after


def _look(api: str, token: str | None) -> Snapshot:
    switches = asked(api, "/v1/switches", token)["switches"]
    sessions = asked(api, "/v1/sessions", token)["sessions"]
    return Snapshot(monotonic(), switches, asked(api, "/v1/statistics", token), sessions)


def document(before: Snapshot, after: Snapshot) -> dict[str, Any]:
    """Counters as they are, and rates a second between two looks."""
    seconds = max(1e-3, after.at - before.at)
    known = {(one["host"], one["session"]): one for one in before.sessions}
    return {
        "seconds": round(seconds, 3),
        "switches": [_switch(one, before.statistics, after.statistics, seconds) for one in after.switches],
        "sessions": [
            _session(one, known.get((one["host"], one["session"]), {}), seconds) for one in after.sessions
        ],
    }


def _switch(
    one: dict[str, Any], before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]], seconds: float
) -> dict[str, Any]:
    """`events` met an entry of the table, `unwanted` met none: these are a switch's false positives."""
    was, now = (_counts(found.get(one["switch"])) for found in (before, after))
    rates = {
        f"{name}_per_second": None if was is None or now is None else _rate(was[name], now[name], seconds)
        for name in ("events", "unwanted", "refused")
    }
    fill = one["entries"] / one["limit"] if one["limit"] else None
    kept = {name: one[name] for name in ("switch", "connected", "in_step", "entries", "limit", "admissions")}
    return kept | {"fill": fill} | (now or dict.fromkeys(("events", "unwanted", "refused"))) | rates


def _counts(found: dict[str, Any] | None) -> dict[str, int] | None:
    if found is None:
        return None
    refused = sum(found["refused"].values())
    return {
        "events": found["packets"].get("forwarding", 0),
        "unwanted": found["unwanted"],
        "refused": refused,
    }


def _session(one: dict[str, Any], before: dict[str, Any], seconds: float) -> dict[str, Any]:
    """A session says what it counted with each sign of life, so its rates move in steps."""
    rates = {
        f"{name}_per_second": _rate(before[name], one[name], seconds) if before else None
        for name in ("published", "received")
    }
    return one | {"false_positive_rate": one["false_positives"] / max(1, one["received"])} | rates


def _rate(was: int, now: int, seconds: float) -> float:
    """A counter that fell began anew."""
    return round((now - was if now >= was else now) / seconds, 1)


def screen(shown: dict[str, Any]) -> Group:
    """The document as tables."""
    switches = _table("switch", "there", "entries", "fill", "events/s", "unwanted/s", "refused/s", "refused")
    for one in shown["switches"]:
        there = "yes" if one["connected"] and one["in_step"] else "behind" if one["connected"] else "GONE"
        fill = one["fill"]
        style = (
            "red"
            if not one["connected"] or (fill or 0) >= FULL
            else "yellow"
            if (fill or 0) >= NEARLY_FULL
            else ""
        )
        rates = (one[f"{name}_per_second"] for name in ("events", "unwanted", "refused"))
        share = "–" if fill is None else f"{fill:.0%}"
        words = (one["switch"], there, _number(one["entries"]), share, *map(_number, rates))
        switches.add_row(*words, _number(one["refused"]), style=style)
    received = ("published/s", "received/s", "received", "false positives", "rate", "doubles", "dropped")
    sessions = _table("host", "asks", *received)
    for one in shown["sessions"]:
        names = ("published_per_second", "received_per_second", "received", "false_positives")
        rate = f"{one['false_positive_rate']:.1%}"
        last = (_number(one[name]) for name in ("doubles", "dropped"))
        sessions.add_row(
            one["host"], _number(one["subscriptions"]), *(_number(one[n]) for n in names), rate, *last
        )
    line = f"{len(shown['switches'])} switches, {len(shown['sessions'])} sessions"
    return Group(Text(line, style="bold"), switches, Text(""), sessions)


def _table(*columns: str) -> Table:
    made = Table(header_style="bold", box=None, pad_edge=False)
    for at, name in enumerate(columns):
        made.add_column(name, justify="left" if at == 0 else "right", no_wrap=True)
    return made


def _number(value: float | None) -> str:
    return (
        "–" if value is None else f"{value:,.0f}" if value == int(value) or value >= 100 else f"{value:,.1f}"
    )


command = top
