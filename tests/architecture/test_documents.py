"""The documents do not lie: a link leads somewhere, and an example that is shown runs.

An example is a fenced ``console`` block; its lines that start with ``$ plerion`` are run in order, all blocks
of a document one after the other, in a directory that starts out as a copy of `examples/`. A line that ends
in a backslash goes on. Output that is shown is for the reader and is not compared.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

import pytest

from tests.architecture.repository import ROOT, tracked

DOCUMENTS = {path: text for path, text in tracked().items() if path.endswith(".md")}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^]]*\]\(([^)\s]+)\)")
COMMAND_SECONDS = 120


def broken_links(documents: Mapping[str, str], root: Path) -> Iterator[str]:
    for path, text in documents.items():
        for target in LINK.findall(FENCE.sub("", text)):
            if not re.match(r"[a-z]+:", target) and not leads_somewhere(path, target, root):
                yield f"{path}: nothing at {target}"


def leads_somewhere(path: str, target: str, root: Path) -> bool:
    """The file is there, and so is the heading when the link names one."""
    name, _, anchor = target.partition("#")
    place = root / PurePosixPath(path).parent / name if name else root / path
    if not place.exists() or not place.resolve().is_relative_to(root):
        return False
    return not anchor or anchor in {slug(heading) for heading in headings(place.read_text())}


def headings(text: str) -> list[str]:
    return re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)


def slug(heading: str) -> str:
    """The anchor that code hosts give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def commands(text: str) -> list[str]:
    """The commands that a document shows, continued lines joined."""
    blocks = [body for language, body in FENCE.findall(text) if language == "console"]
    joined = "\n".join(blocks).replace("\\\n", " ")
    return [line.removeprefix("$ ") for line in joined.splitlines() if line.startswith("$ plerion")]


def run(command: str, directory: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=directory,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )


def test_every_link_leads_somewhere() -> None:
    found = list(broken_links(DOCUMENTS, ROOT))
    assert not found, "\n".join(found)


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Getting on: 2 steps\n")
    assert (
        list(broken_links({"b.md": "[x](a.md) [y](a.md#getting-on-2-steps) [z](https://x.y)"}, tmp_path))
        == []
    )
    for bad in ("[x](c.md)", "[x](a.md#getting)", "[x](../a.md)", "[x](#nothing)"):
        (tmp_path / "b.md").write_text(bad)
        assert len(list(broken_links({"b.md": bad}, tmp_path))) == 1, bad


@pytest.mark.slow
@pytest.mark.parametrize("document", [path for path, text in DOCUMENTS.items() if commands(text)])
def test_every_example_runs(document: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path, dirs_exist_ok=True)
    for command in commands(DOCUMENTS[document]):
        outcome = run(command, tmp_path)
        assert outcome.returncode == 0, f"{command}\n{outcome.stdout}{outcome.stderr}"


def test_the_readme_shows_examples() -> None:
    assert len(commands(DOCUMENTS["README.md"])) >= 5


def test_only_the_commands_of_console_blocks_are_run() -> None:
    first = "```console\n$ plerion a \\\n    --b\nshown\n$ ls\n```\n"
    text = first + "```bash\n$ plerion c\n```\n```console\n$ plerion d\n```\n"
    assert [command.split() for command in commands(text)] == [["plerion", "a", "--b"], ["plerion", "d"]]


def test_a_failing_example_is_noticed(tmp_path: Path) -> None:
    assert run("plerion no-such-command", tmp_path).returncode != 0
    assert run("false | cat", tmp_path).returncode != 0
