"""`plerion`: finds the verb, and turns every refusal into one clear line and exit code 2."""

from __future__ import annotations

import sys
import warnings

import typer

from plerion.cli import bench, compile, demo, index, topology, trace, verify
from plerion.cli.output import complain

app = typer.Typer(
    name="plerion",
    help="Publish/subscribe whose filters run inside the network.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(index.app, name="index")
app.command("topology")(topology.topology)
app.command("compile")(compile.compile_tables)
app.command("verify")(verify.verify)
app.command("trace")(trace.trace)
app.command("bench")(bench.bench)
app.command("demo")(demo.demo)


def run() -> None:
    """Exit codes: 0 fine, 1 the answer is no, 2 bad input."""
    warnings.showwarning = lambda message, *_, **__: complain(f"warning: {message}")
    try:
        app()
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except (ValueError, OSError) as error:
        complain(f"error: {_line(error)}")
        sys.exit(2)
    except KeyboardInterrupt:
        complain("stopped")
        sys.exit(130)


def _line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    summary = getattr(error, "summary", None)
    return " ".join(str(summary if isinstance(summary, str) else error).split())
