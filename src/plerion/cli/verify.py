"""`plerion verify`: a proof over every possible event, or one that shows what is wrong."""

from __future__ import annotations

import typer

from plerion.cli.options import (
    BUDGET,
    MAX_TREES,
    AdvertisementsFile,
    Budget,
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


def verify(
    topology: TopologySource,
    index: IndexFile,
    subscriptions: SubscriptionsFile,
    advertisements: AdvertisementsFile = None,
    budget: Budget = BUDGET,
    max_trees: MaxTrees = MAX_TREES,
    tcam: Tcam = None,
    sample: SampleFile = None,
    json: Json = False,
) -> None:
    """Prove that every wanted delivery happens exactly once and nothing loops; exit 1 with an event if not.

    plerion verify --topology fat-tree:4x2 --index index.json --subscriptions subscriptions.csv
    """
    with progress("proving"):
        found = deployment(topology, index, subscriptions, advertisements, budget, max_trees, tcam, sample)
        proof = found.proof()
    example = proof.counter_example
    facts = {
        "ok": bool(proof),
        "subscriptions": len(found.subscriptions.ids),
        "entries": len(found.tables),
        "largest_table": max(found.tables.sizes().values(), default=0),
        "trees": len(found.state.forest.trees),
        "atoms": proof.atoms,
        "deliveries": proof.deliveries,
        "unwanted": proof.unwanted,
        "counter_example": None if example is None else str(example),
    }
    if json:
        print_json(facts)
    else:
        print_facts("every wanted delivery happens exactly once" if proof else f"refuted: {example}", facts)
    if not proof:
        raise typer.Exit(1)


command = verify
