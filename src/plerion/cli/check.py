"""`plerion check`: whether a configuration would run, and what it comes to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plerion.cli.options import Json
from plerion.cli.output import print_facts, print_json
from plerion.controller.config import read_config


def check(
    config: Annotated[Path, typer.Argument(help="The configuration.")] = Path("plerion.yaml"),
    json: Json = False,
) -> None:
    """Check a configuration and everything that it names; what is wrong is told with line and column.

    plerion check plerion.yaml
    """
    found = read_config(config)
    topology, index = found.settings.topology, found.settings.index
    secured = "with certificates" if found.openflow.tls else "in the clear"
    facts = {
        "switches": len(topology.switches),
        "hosts": len(topology.hosts),
        "attributes": len(index.schema.attributes),
        "bits": index.bits,
        "budget": found.settings.budget,
        "openflow": f"{found.openflow.host}:{found.openflow.port} {secured}",
        "api": f"{found.api.host}:{found.api.port}, {len(found.tokens)} tokens",
        "journal": str(found.journal),
        "last_hop": found.last_hop,
    }
    if json:
        print_json(facts)
    else:
        print_facts(f"{config} is fine", facts)


command = check
