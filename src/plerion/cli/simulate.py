"""`plerion simulate`: consistent updates of small random networks on the timeline emulator, by seed."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from plerion.cli.options import Json
from plerion.cli.output import print_facts, print_json, print_table, progress
from plerion.content.errors import InputError
from plerion.simnet.check import Report
from plerion.simnet.trial import Trial, known, trial
from plerion.update.plan import peaks
from plerion.update.strategies import MOVES, STRATEGIES

NAMES = (*STRATEGIES, *MOVES)
SHOWN = (
    "runs", "refused", "events", "lost", "doubled", "looping", "wrong", "residue", "extra_false_positives",
    "most_extra_entries", "longest_ms", "kept",
)  # fmt: skip


def simulate(
    seed: Annotated[int, typer.Option(help="What everything is drawn from: network, workload, delays.")] = 0,
    strategy: Annotated[str | None, typer.Option(help=f"One of {', '.join(NAMES)}; else all.")] = None,
    runs: Annotated[int, typer.Option(min=1, help="So many seeds, from this one on.")] = 1,
    json: Json = False,
) -> None:
    """Update random networks under traffic and count what went wrong; exit 1 if a strategy broke its promise.

    plerion simulate --seed 7 --strategy custom-multicast
    """
    if strategy is not None and strategy not in NAMES:
        raise InputError(f"{strategy!r} is no strategy", f"choose one of {', '.join(NAMES)}", "--strategy")
    with progress("simulating"):
        found = {name: _tried(name, seed, runs) for name in ([strategy] if strategy else NAMES)}
    if json:
        print_json(found)
    elif strategy and runs == 1:
        _tell(trial(seed, strategy), found[strategy])
    else:
        _compare(found, seed, runs)
    if not all(facts["kept"] for facts in found.values()):
        raise typer.Exit(1)


def _compare(found: dict[str, dict[str, Any]], seed: int, runs: int) -> None:
    """A line a strategy, narrow enough for any terminal."""
    title = f"seed {seed}" if runs == 1 else f"seeds {seed} to {seed + runs - 1}"
    columns = ["runs", "lost", "doubled", "wrong", "extra", "room", "ms", "kept"]
    rows = (
        [
            name, facts["runs"], facts["lost"], facts["doubled"] + facts["looping"], facts["wrong"],
            facts["extra_false_positives"], facts["most_extra_entries"], facts["longest_ms"], facts["kept"],
        ]
        for name, facts in found.items()
    )  # fmt: skip
    print_table(title, ["strategy", *columns], rows)
    typer.echo(
        "doubled or looping; extra false positives; room that a table needs for more entries; kept its promise"
    )


def _tried(strategy: str, seed: int, runs: int) -> dict[str, Any]:
    total, refused, broken = Report(), 0, []
    for one in range(seed, seed + runs):
        found = trial(one, strategy)
        refused += found.plan is None
        total.add(found.report)
        if not found.report.keeps(known(strategy).promise):
            broken.append(one)
    facts: dict[str, Any] = {name: getattr(total, name) for name in Report.__slots__}
    facts["longest_ms"] = round(1e3 * facts.pop("longest_seconds"), 3)
    return facts | {"refused": refused, "kept": not broken, "broken_seeds": broken[:10]}


def _tell(found: Trial, facts: dict[str, Any]) -> None:
    """One run: the network, the rounds, and what came of it."""
    topology = found.scene.topology
    if found.plan is None:
        print_facts(f"does not apply: {found.refusal}", {"switches": len(topology.switches)})
        return
    rows = []
    for number, one in enumerate(found.plan.rounds):
        told = "publishers" if one.notice else ""
        no_return = "no way back from here" if number == found.plan.no_return else ""
        parts = len(one.changes.added), len(one.changes.removed), told, round(1e3 * one.wait_seconds, 2)
        rows.append([one.name, *parts, no_return])
    network = f"{len(topology.switches)} switches, {len(found.plan.publishers)} publishers"
    title = f"{found.plan.strategy}, change of {found.change}, {network}"
    print_table(title, ["round", "added", "removed", "told", "wait ms", ""], rows)
    shown = {name.replace("_", " "): facts[name] for name in SHOWN if name not in ("runs", "refused")}
    most = {"most entries of a switch": int(peaks(found.plan).max(initial=0))}
    print_facts("every promise was kept" if facts["kept"] else "a promise was broken", shown | most)
    for example in facts["examples"]:
        typer.echo(example)


command = simulate
