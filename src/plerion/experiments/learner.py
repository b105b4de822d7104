"""A better index for a network that runs, found by Spark in a process of its own: `plerion index build` on its log.

The log is what publishers wrote of their events; the subscriptions are those in force when the build begins. Nothing of
it holds up the network.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from plerion.content.schema import Enumeration, Number, Schema
from plerion.controller.inputs import Subscribe
from plerion.index.codec import read_index, to_json
from plerion.index.content_index import ContentIndex

SECONDS = 300.0  # after which a build is given up


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """What a build found: the index, its rate and the present one's on events that neither was made from."""

    index: ContentIndex
    rate: float
    current_rate: float
    replaced: bool
    spark_start_seconds: float


class LearnerError(RuntimeError):
    """The build did not end well; its last line says why."""


class Learner:
    """One build. `begin`, then ask `found` now and then."""

    def __init__(self, folder: Path, schema: Schema, bits: int, budget: int) -> None:
        self.log = folder / "log"
        self.log.mkdir(parents=True, exist_ok=True)
        self._folder, self._bits, self._budget = folder, bits, budget
        self._process: subprocess.Popen[str] | None = None
        (folder / "schema.yaml").write_text(json.dumps(document(schema)))  # JSON is YAML

    def begin(self, current: ContentIndex, subscriptions: Iterable[Subscribe]) -> None:
        """Reads what is in the log by now."""
        (self._folder / "current.json").write_bytes(to_json(current))
        with (self._folder / "subscriptions.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(("id", "host", "filter"))
            rows.writerows((one.id, one.host, one.filter) for one in subscriptions)
        plerion = Path(sys.executable).with_name("plerion")
        words: list[object] = [plerion, "index", "build", "--json", "--master", "local[2]"]
        words += ["--schema", "schema.yaml", "--log", "log", "--subscriptions", "subscriptions.csv"]
        words += ["--current", "current.json", "--out", "better.json", "--bits", self._bits]
        words += ["--budget", self._budget]
        self._process = subprocess.Popen(
            list(map(str, words)),
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    @property
    def begun(self) -> bool:
        """Whether a build is under way, or ended and was not asked about since."""
        return self._process is not None

    def found(self) -> Learned | None:
        """None as long as it is at work; `LearnerError` when it failed."""
        assert self._process is not None, "it was begun"
        if self._process.poll() is None:
            return None
        told, complaints = self._process.communicate()
        code, self._process = self._process.returncode, None
        if code:
            raise LearnerError((complaints.strip().splitlines() or ["it ended without a word"])[-1])
        report = msgspec.json.decode(told)
        return Learned(
            read_index(self._folder / "better.json"),
            report["judged_rate"],
            report["current_rate"],
            report["replaced"],
            report["spark_start_seconds"],
        )

    def end(self) -> None:
        """Gives up a build that is under way."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.communicate()


def document(schema: Schema) -> dict[str, object]:
    """The schema as its file says it."""
    return {"attributes": [_attribute(one) for one in schema.attributes]}


def _attribute(one: Number | Enumeration) -> dict[str, object]:
    if isinstance(one, Enumeration):
        return {"name": one.name, "values": list(one.values)}
    found: dict[str, object] = {"name": one.name, "low": one.low, "high": one.high, "scale": one.scale}
    return found | ({"integer": True} if one.integer else {})
