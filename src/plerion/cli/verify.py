"""`plerion verify`: a proof over every possible event, or one that shows what is wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from plerion.cli.options import (
    BUDGET,
    MAX_TREES,
    AdvertisementsFile,
    Budget,
    Down,
    IndexFile,
    Json,
    MaxTrees,
    SampleFile,
    SubscriptionsFile,
    Tcam,
    TopologySource,
    deployment,
)
from plerion.cli.output import print_facts, print_json, progress
from plerion.controller.deploy import Deployment
from plerion.flow.render import read_tables
from plerion.flow.verify import Proof
from plerion.index.example import example


def verify(
    topology: TopologySource,
    index: IndexFile,
    subscriptions: SubscriptionsFile,
    advertisements: AdvertisementsFile = None,
    budget: Budget = BUDGET,
    max_trees: MaxTrees = MAX_TREES,
    tcam: Tcam = None,
    sample: SampleFile = None,
    down: Down = None,
    tables: Annotated[
        Path | None, typer.Option(help="Judge these tables, as `compile` prints them, instead of compiling.")
    ] = None,
    json: Json = False,
) -> None:
    """Prove that every wanted delivery happens exactly once and nothing loops; exit 1 with an event if not.

    plerion verify --topology fat-tree:4x2 --index index.json --subscriptions subscriptions.csv
    """
    with progress("proving"):
        found = deployment(
            topology, index, subscriptions, advertisements, budget, max_trees, tcam, sample, down
        )
        if tables is not None:
            found = replace(found, tables=read_tables(tables, found.tables.fabric))
        proof = found.proof()
    facts = _facts(found, proof)
    if json:
        print_json(facts)
    else:
        print_facts(
            "every wanted delivery happens exactly once" if proof else f"refuted: {proof.counter_example}",
            facts,
        )
    if not proof:
        raise typer.Exit(1)


def _facts(found: Deployment, proof: Proof) -> dict[str, Any]:
    """What is deployed and what was shown of it."""
    fault = proof.counter_example
    return {
        "ok": bool(proof),
        "subscriptions": len(found.subscriptions.ids),
        "entries": len(found.tables),
        "largest_table": max(found.tables.sizes().values(), default=0),
        "trees": len(found.state.forest.trees),
        "atoms": proof.atoms,
        "deliveries": proof.deliveries,
        "unwanted": proof.unwanted,
        "counter_example": None if fault is None else str(fault),
        "event": None
        if fault is None or fault.code is None
        else example(found.state.settings.index, fault.code),
    }


command = verify
