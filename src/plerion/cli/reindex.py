"""`plerion reindex`: another content index for a running network, planned, made under traffic, or taken back."""

from __future__ import annotations

from pathlib import Path
from time import monotonic, sleep
from typing import Annotated, Any, NamedTuple

import msgspec
import typer

from plerion.cli.api import USUAL, Api, Token, asked
from plerion.cli.options import BUDGET, Budget, Json
from plerion.cli.output import complain, print_facts, print_json, print_table, progress
from plerion.content.errors import InputError
from plerion.content.read import read_events, read_interests
from plerion.index.codec import from_json
from plerion.learning.judge import Judge
from plerion.learning.workload import Workload

POLL_SECONDS = 0.5
WAIT_SECONDS = 3_600.0

IndexOrProposal = Annotated[
    Path,
    typer.Option("--index", help="The index, as `index build` writes it, or a proposal of `pipeline watch`."),
]
Strategy = Annotated[str, typer.Option(help="How to get there: auto, or a strategy of docs/updates.md.")]
Prefer = Annotated[
    str, typer.Option(help="What auto looks for: accurate (no event too many) or small (few entries).")
]
Order = Annotated[str, typer.Option(help="In which custom-multicast takes its wide entries away.")]
Force = Annotated[bool, typer.Option("--force", help="Also with publishers that cannot be told how to send.")]
Events = Annotated[Path | None, typer.Option(help="Events to rate both indexes with; needs --subscriptions.")]
Subscriptions = Annotated[Path | None, typer.Option(help="Subscriptions to rate both indexes with.")]

app = typer.Typer(
    help="Change the content index of a running network.", no_args_is_help=True, rich_markup_mode=None
)


class Rates(NamedTuple):
    """False-positive rates that are expected of the index in force and of the other one, where they are known."""

    current: float | None = None
    proposed: float | None = None


@app.callback()
def reindex() -> None:
    """Change the content index of a running network."""


@app.command()
def plan(
    *,
    index: IndexOrProposal,
    strategy: Strategy = "auto",
    prefer: Prefer = "accurate",
    order: Order = "filter-rate",
    events: Events = None,
    subscriptions: Subscriptions = None,
    budget: Budget = BUDGET,
    api: Api = USUAL,
    token: Token = None,
    json: Json = False,
) -> None:
    """Show what a change would do: entries, rounds, the strategy and why, the expected rate. Nothing is changed.

    plerion reindex plan --index better.json
    """
    document, rates = _read(index)
    if events is not None and subscriptions is not None:
        rates = _rated(document, events, subscriptions, budget, api, token)
    body = {"index": document, "strategy": strategy, "prefer": prefer, "order": order}
    with progress("the controller works it out"):
        found = asked(api, "/v1/reindex/plan", token, body)
    found |= {"current_rate": rates.current, "proposed_rate": rates.proposed}
    print_json(found) if json else _show_plan(found)


@app.command()
def apply(
    *,
    index: IndexOrProposal,
    strategy: Strategy = "auto",
    prefer: Prefer = "accurate",
    order: Order = "filter-rate",
    force: Force = False,
    api: Api = USUAL,
    token: Token = None,
    json: Json = False,
) -> None:
    """Take the network to another index under traffic; exit code 1 when it is as it was before.

    plerion reindex apply --index better.json --strategy epoch
    """
    document, _ = _read(index)
    body = {"index": document, "strategy": strategy, "prefer": prefer, "order": order, "force": force}
    _finish(_made("/v1/reindex", body, api, token), json)


@app.command()
def rollback(
    *,
    strategy: Strategy = "auto",
    prefer: Prefer = "accurate",
    force: Force = False,
    api: Api = USUAL,
    token: Token = None,
    json: Json = False,
) -> None:
    """Bring back the index before the present one, under traffic.

    plerion reindex rollback
    """
    body = {"strategy": strategy, "prefer": prefer, "force": force}
    _finish(_made("/v1/reindex/rollback", body, api, token), json)


@app.command()
def stop(api: Api = USUAL, token: Token = None, json: Json = False) -> None:
    """Lead a change back that is under way; exit code 1 when there is none, or no way back any more.

    plerion reindex stop
    """
    found = asked(api, "/v1/reindex/stop", token, {})
    print_json(found) if json else print_facts("reindex", found)
    raise typer.Exit(0 if found["stopped"] else 1)


@app.command()
def status(api: Api = USUAL, token: Token = None, json: Json = False) -> None:
    """Show where a change stands, what the latest came to, and the false-positive rate that hosts report.

    plerion reindex status --json
    """
    found = asked(api, "/v1/reindex", token)
    if json:
        print_json(found)
        return
    under_way, last = found.pop("under_way"), found.pop("last")
    print_facts("index in force", {name.replace("_", " "): _shown(value) for name, value in found.items()})
    for title, facts in (("\nunder way", under_way), ("\nlatest change", last)):
        if facts:
            print_facts(title, {name.replace("_", " "): _shown(value) for name, value in facts.items()})


def _read(path: Path) -> tuple[Any, Rates]:
    """The index of a file, which may be a proposal; then the rates, too."""
    try:
        document = msgspec.json.decode(path.read_bytes())
    except msgspec.MsgspecError as error:
        raise InputError(
            f"this is no JSON: {error}", "give a file of `plerion index build`", str(path)
        ) from None
    if isinstance(document, dict) and "proposed_rate" in document and "index" in document:
        return document["index"], Rates(document.get("current_rate"), document["proposed_rate"])
    return document, Rates()


def _rated(
    document: Any, events: Path, subscriptions: Path, budget: int, api: str, token: str | None
) -> Rates:
    """Both rates on these events: the index in force is the controller's."""
    other = from_json(msgspec.json.encode(document))
    current = from_json(msgspec.json.encode(asked(api, "/v1/index", token)))
    points = read_events(events, other.schema).points
    asking = read_interests(subscriptions, other.schema)
    judge = Judge.of(Workload.of(other.schema, points, asking), budget)
    return Rates(judge.rate(current), judge.rate(other))


def _made(path: str, body: dict[str, Any], api: str, token: str | None) -> dict[str, Any]:
    """The end of a change, however long it takes."""
    with progress("the network changes its index"):
        found: dict[str, Any] = asked(api, path, token, body)
        before, ends = found.get("changes"), monotonic() + WAIT_SECONDS
        while found["done"] is None and monotonic() < ends:
            sleep(POLL_SECONDS)
            now = asked(api, "/v1/reindex", token)
            if now["changes"] != before:
                found = now["last"]
    return found


def _finish(found: dict[str, Any], json: bool) -> None:
    if json:
        print_json(found)
    elif found["done"]:
        print_facts("the index is in force", {name: found[name] for name in ("epoch", "strategy", "seconds")})
    else:
        complain(f"the network is as it was: {found.get('reason') or 'it takes longer than an hour'}")
    raise typer.Exit(0 if found["done"] else 1)


def _show_plan(found: dict[str, Any]) -> None:
    rates = " to ".join(
        "unknown" if found[n] is None else f"{found[n]:.1%}" for n in ("current_rate", "proposed_rate")
    )
    facts = {
        "strategy": found["strategy"],
        "false positives": rates,
        "entries": f"{found['entries']:,} to {found['entries_after']:,}",
        "most extra entries of a switch": found["most_extra"],
        "publishers to tell": len(found["publishers"]),
        "cannot be told": ", ".join(found["unreachable"]) or "nobody",
    }
    print_facts("a change of index", facts)
    for one in found["passed"]:
        complain(f"not {one['strategy']}: {one['reason']}")
    columns = ("round", "switches", "added", "removed", "publishers", "waits, ms")
    rows = [
        (one["name"], one["switches"], one["added"], one["removed"], "told" if one["notice"] else "",
         round(1000 * one["wait_seconds"], 1))
        for one in found["rounds"]
    ]  # fmt: skip
    print_table("\nrounds", columns, rows)
    names = ("switch", "entries", "after", "peak")
    print_table("\nswitches", names, [[one[name] for name in names] for one in found["switches"]])


def _shown(value: object) -> object:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "nobody"
    return "–" if value is None or value == "" else value


command = app
