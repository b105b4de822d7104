"""What `index build` and `index evaluate` do on Spark, and how they show it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.progress import Progress

from plerion.cli.output import print_facts, print_table
from plerion.content.errors import InputError
from plerion.content.read import Interests
from plerion.content.schema import Schema
from plerion.index.content_index import ContentIndex
from plerion.index.propose import regular
from plerion.index.selection import by_names
from plerion.learning.propose import SELECTIONS, Proposal, Request, Trial
from plerion.learning.workload import Workload

if TYPE_CHECKING:
    from plerion.pipeline.jobs.build import Built
    from plerion.pipeline.jobs.events import Seen
    from plerion.pipeline.session import Session

SAMPLE_ROWS, BEST_SECONDS, MARGIN = 100_000, 120.0, 0.02


@dataclass(frozen=True, slots=True)
class BuildOptions:
    rows: int
    seconds: float
    margin: float


@dataclass(frozen=True, slots=True, eq=False)
class Learning:
    """What an index is to be learned from."""

    schema: Schema
    events: list[Path]
    log: Path | None
    interests: Interests
    request: Request
    figure: Path | None


def from_schema(schema: Schema, request: Request) -> ContentIndex:
    """A regular index; anything else needs a workload."""
    learned = request.select in SELECTIONS[1:] and request.select not in schema.names
    if request.method != "regular" or learned:
        wanted = request.select if learned else request.method
        raise InputError(f"{wanted!r} looks at events", "give --events (or --log) and --subscriptions")
    names = [] if request.select == "none" and "none" not in schema.names else request.select.split(",")
    chosen = by_names(schema, [name.strip() for name in names])[: request.dimensions]
    return regular(schema, request.bits, chosen)


def learned(
    what: Learning, options: BuildOptions, current: ContentIndex | None, master: str, remote: str | None
) -> tuple[ContentIndex, dict[str, Any]]:
    """The index that wastes least, and the report of how it was found."""
    from plerion.pipeline.jobs import build as job  # noqa: PLC0415 - Spark loads slowly

    if current is not None and current.schema != what.schema:
        raise InputError("the current index has another schema", "build the new one without --current")
    none = np.empty((0, len(what.schema.attributes)))
    asked = Workload.of(what.schema, none, what.interests)
    with _on_spark(master, remote, what.events, what.log, what.schema) as (running, seen, tell):
        clock = job.Clock(tell)
        chosen = job.Options(options.rows, options.seconds, options.margin)
        built = job.build(seen.events, asked, what.request, chosen, current, clock)
        if what.figure is not None:
            from plerion.cli.figure import draw  # noqa: PLC0415 - matplotlib loads slowly

            with clock.part("drawing"):
                draw(what.figure, what.schema, job.curves(seen.events, asked, what.request, built, chosen))
        return built.index, _report(what.schema, built, seen, running)


@contextmanager
def _on_spark(
    master: str, remote: str | None, events: list[Path], log: Path | None, schema: Schema
) -> Iterator[tuple[Session, Seen, Any]]:
    """The session, the events, and how to tell people what goes on: on a terminal a line that moves."""
    from plerion.pipeline.errors import plainly  # noqa: PLC0415 - Spark loads slowly
    from plerion.pipeline.jobs.events import seen  # noqa: PLC0415 - Spark loads slowly
    from plerion.pipeline.session import session  # noqa: PLC0415 - Spark loads slowly

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as shown:
        task = shown.add_task("starting Spark", total=None)

        def tell(part: str) -> None:
            shown.update(task, description=part)

        running = session(master, remote)
        tell("reading events")
        with plainly("Spark could not do its work"), seen(running.spark, events, log, schema) as found:
            yield running, found, tell


def counted(
    index: ContentIndex,
    events: list[Path],
    log: Path | None,
    interests: Interests,
    budget: int,
    details: bool,
    master: str,
    remote: str | None,
) -> dict[str, Any]:
    """What the index does to every event."""
    from plerion.pipeline.jobs.build import evaluate  # noqa: PLC0415 - Spark loads slowly

    asked = Workload.of(index.schema, np.empty((0, len(index.schema.attributes))), interests)
    with _on_spark(master, remote, events, log, index.schema) as (running, seen, tell):
        tell("counting every event")
        found, missed = evaluate(seen.events, asked, index, budget)
        facts: dict[str, Any] = {**found.to_json(), "missed_by_attribute": _named(index.schema, missed)}
        if details:
            hosts = list(dict.fromkeys(interests.hosts))
            facts["by_subscription"] = _pairs(interests.ids, found.deliveries, found.wanted, found.hits)
            facts["by_host"] = _pairs(hosts, found.host_deliveries, found.host_hits, found.host_hits)
        return {**facts, **_oddities(seen), "spark_start_seconds": round(running.start_seconds, 2)}


def _pairs(names: Any, deliveries: Any, wanted: Any, hits: Any) -> dict[str, dict[str, int]]:
    return {
        name: {"deliveries": int(d), "wanted": int(w), "false_positives": int(d - h)}
        for name, d, w, h in zip(names, deliveries, wanted, hits, strict=True)
    }


def _named(schema: Schema, counts: tuple[int, ...]) -> dict[str, int]:
    return dict(zip(schema.names, counts, strict=True))


def _oddities(seen: Seen) -> dict[str, Any]:
    """Only what there is to tell."""
    found: dict[str, Any] = {"odd_values": list(seen.odd)} if seen.odd else {}
    if seen.skipped:
        found["skipped_files"] = [{"file": str(s.path), "reason": s.reason} for s in seen.skipped]
    return found


def index_facts(index: ContentIndex) -> dict[str, Any]:
    spent = {
        name: max(cluster.order.count(a) for cluster in index.clusters)
        for a, name in enumerate(index.schema.names)
    }
    return {
        "bits": index.bits,
        "clusters": len(index.clusters),
        "epoch": index.epoch,
        "bits_by_attribute": spent,
    }


def _report(schema: Schema, built: Built, seen: Seen, running: Session) -> dict[str, Any]:
    proposal = built.proposal
    report: dict[str, Any] = {
        **built.all_events.to_json(),
        "judged_rate": built.judged,
        "current_rate": built.judged_current,
        "replaced": built.replaced,
        "method": proposal.won.method,
        "select": proposal.won.select,
        "selected": [schema.names[a] for a in proposal.won.attributes],
        "missed_by_attribute": _named(schema, built.missed_on),
        "tried": [_trial(schema, trial) for trial in proposal.tried],
        **_selection(schema, proposal),
        **_oddities(seen),
        "seconds": {name: round(took, 2) for name, took in built.seconds.items()},
        "spark_start_seconds": round(running.start_seconds, 2),
    }
    return report


def _trial(schema: Schema, trial: Trial) -> dict[str, Any]:
    names = [schema.names[a] for a in trial.attributes]
    return {
        "method": trial.method,
        "select": trial.select,
        "attributes": names,
        "clusters": trial.clusters,
        "rate": trial.rate,
    }


def _selection(schema: Schema, proposal: Proposal) -> dict[str, Any]:
    found = proposal.selection
    if found is None:
        return {}
    return {
        "ranking": [schema.names[a] for a in found.ranking],
        "factors": dict(zip(schema.names, found.factors, strict=False)),
        "trail": [
            {"attributes": [schema.names[a] for a in step.attributes], "rate": step.rate}
            for step in found.trail
        ],
    }


def show_built(facts: dict[str, Any], report: dict[str, Any] | None) -> None:
    """Tables for people."""
    spent = facts.pop("bits_by_attribute")
    method = "regular" if report is None else report["method"]
    numbers = {name: value for name, value in (report or {}).items() if isinstance(value, int | float)}
    print_facts(f"{facts.pop('out')}: {method} index", {**facts, **numbers})
    print_table("most bits by attribute", ("attribute", "bits"), spent.items())
    if report is None:
        return
    if not report["replaced"]:
        print("nothing changes: the current index is as good on events that neither was made from")
    rows = [
        (t["method"], t["select"], len(t["attributes"]), t["clusters"], t["rate"]) for t in report["tried"]
    ]
    print_table("tried", ("method", "selection", "attributes", "clusters", "rate"), rows)
    print_table("seconds", ("part", "seconds"), report["seconds"].items())
    _show_odd(report)


def show_counted(name: str, facts: dict[str, Any]) -> None:
    numbers = {key: value for key, value in facts.items() if isinstance(value, int | float)}
    print_facts(name, numbers)
    missed = facts["missed_by_attribute"].items()
    print_table("false positives that miss on", ("attribute", "pairs"), missed)
    for title in ("by_subscription", "by_host"):
        if title in facts:
            rows = [(key, *counts.values()) for key, counts in facts[title].items()]
            columns = (title.removeprefix("by_"), "deliveries", "wanted", "false positives")
            print_table(title.replace("_", " "), columns, rows)
    _show_odd(facts)


def _show_odd(facts: dict[str, Any]) -> None:
    if "odd_values" in facts:
        rows = [
            (row["attribute"], row["missing"], row["clamped"], row["unknown"]) for row in facts["odd_values"]
        ]
        print_table("values that were", ("attribute", "missing", "clamped", "unknown"), rows)
    for skipped in facts.get("skipped_files", []):
        print(f"skipped {skipped['file']}: {skipped['reason']}")
