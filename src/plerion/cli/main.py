"""`plerion`: finds the verb, and turns every refusal into one clear line and exit code 2."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from importlib import import_module

import typer

from plerion.cli.output import complain

VERBS = {
    "index": "Build content indexes and look at what they do.",
    "topology": "Show a network, or convert it.",
    "compile": "Print the flow tables of every switch.",
    "verify": "Prove that every wanted delivery happens exactly once, or show an event that refutes it.",
    "trace": "Follow one event through the network, and see why it went where it went.",
    "simulate": "Update random networks under traffic, by seed, and count what went wrong.",
    "check": "Check a controller's configuration, with line and column of what is wrong.",
    "up": "Run the controller.",
    "reindex": "Change the content index of a running network.",
    "flows": "Show the entries of the switches of a running controller.",
    "top": "Watch the switches and sessions of a running controller.",
    "pub": "Publish events from this host.",
    "sub": "Receive on this host what a filter matches.",
    "log": "Fill an event log from files, and see what it holds.",
    "reproduce": "Compute the papers' figures again, and say whether what they claim holds.",
    "pipeline": "Watch a log on Spark, and get a better index proposed.",
    "lab": "Build networks of real switches and hosts on this machine.",
    "bench": "Measure the hot paths and compare with what they must reach.",
    "demo": "Watch a fat-tree network deliver real weather events.",
}


def application(verb: str | None) -> typer.Typer:
    """The command line with one verb loaded; the others are only listed, because the kernels load slowly."""
    app = typer.Typer(
        name="plerion",
        help="Publish/subscribe whose filters run inside the network.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    for name, line in VERBS.items():
        command = import_module(f"plerion.cli.{name}").command if name == verb else _listed
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, help=line)
        else:
            app.command(name)(command) if name == verb else app.command(name, help=line)(command)
    return app


def _listed() -> None:
    raise AssertionError("a verb that is only listed is not run")


def run() -> None:
    """Exit codes: 0 fine, 1 the answer is no, 2 bad input."""
    warnings.showwarning = lambda message, *_, **__: complain(f"warning: {message}")
    _without_traceback(application(sys.argv[1] if len(sys.argv) > 1 else None))


def _without_traceback(work: Callable[[], None]) -> None:
    try:
        work()
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except (ValueError, OSError) as error:
        complain(f"error: {_line(error)}")
        sys.exit(2)
    except MemoryError as error:
        complain(f"error: this takes more memory than there is: {_line(error) or 'nothing more is known'}")
        sys.exit(2)
    except KeyboardInterrupt:
        complain("stopped")
        sys.exit(130)


def _line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    summary = getattr(error, "summary", None)
    return " ".join(str(summary if isinstance(summary, str) else error).split())
