"""`plerion up`: the controller as a process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

ConfigFile = Annotated[
    Path, typer.Option("--config", help="The configuration, as docs/controller.md describes it.")
]


def up(config: ConfigFile = Path("plerion.yaml")) -> None:
    """Run the controller until SIGTERM or Ctrl-C; the switches keep what they hold.

    plerion up --config plerion.yaml
    """
    from plerion.controller.config import read_config  # noqa: PLC0415 - the kernels load slowly, --help needs none
    from plerion.controller.journal import JournalError  # noqa: PLC0415 - as above
    from plerion.controller.logs import set_up  # noqa: PLC0415 - as above
    from plerion.controller.run import serve  # noqa: PLC0415 - as above

    found = read_config(config)
    set_up(found.log_level)
    try:
        asyncio.run(serve(found))
    except JournalError as error:
        raise ValueError(str(error)) from None


command = up
