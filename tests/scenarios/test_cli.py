"""The commands as a user runs them: files in, files out, exit codes, and tables that a second opinion shares."""

import csv
import io
import json
import random
import subprocess
import sys
from collections import deque
from contextlib import chdir, redirect_stderr, redirect_stdout
from ipaddress import IPv6Address, IPv6Network
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from plerion.cli.main import run
from tests.architecture.repository import ROOT

EXAMPLES = ROOT / "examples"


def plerion(*words: object, code: int = 0) -> str:
    """What a command prints that ends with this exit code; for 2 the one line that it complains with."""
    ended, out, err = in_process([str(word) for word in words])
    assert ended == code, f"{words}: exit {ended}\n{out}\n{err}"
    if code == 2:
        assert len(err.strip().splitlines()) == 1, err
    return out if code != 2 else err


def in_process(words: list[str]) -> tuple[int, str, str]:
    """As `plerion words…` in the examples' directory, without a new interpreter for each."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    ended = 0
    with (
        redirect_stdout(out),
        redirect_stderr(err),
        chdir(EXAMPLES),
        patch.object(sys, "argv", ["plerion", *words]),
    ):
        try:
            run()
        except SystemExit as exit:
            ended = int(exit.code or 0)
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(bytes(stream.buffer.getvalue()).decode())
    return ended, texts[0], texts[1]


def in_a_shell(*words: str) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [Path(sys.executable).with_name("plerion"), *words]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=EXAMPLES, timeout=300)


def test_the_installed_command_answers_and_refuses_without_a_traceback() -> None:
    assert json.loads(in_a_shell("topology", "ring:3", "--json").stdout)["switches"] == ["s1", "s2", "s3"]
    listed = in_a_shell("--help")
    assert listed.returncode == 0
    assert "verify" in listed.stdout
    refused = in_a_shell("topology", "nix:3")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert len(refused.stderr.splitlines()) == 1
    unknown = in_a_shell("conjure")
    assert unknown.returncode == 2
    assert "Traceback" not in unknown.stderr


class Network:
    """A second opinion: walks the JSON of `compile` with nothing of Plerion in it."""

    def __init__(self, tables: dict[str, Any], topology: dict[str, Any]) -> None:
        self.hosts = set(topology["hosts"])
        self.peer = {}
        for link in topology["links"]:
            self.peer[link["a"], link["a_port"]] = (link["b"], link["b_port"])
            self.peer[link["b"], link["b_port"]] = (link["a"], link["a_port"])
        self.tables = {
            switch: [
                (entry["priority"], IPv6Network(entry["match"]["ipv6_dst"]), entry["actions"])
                for entry in entries
            ]
            for switch, entries in tables["switches"].items()
        }

    def deliver(self, code: str, publisher: str) -> list[str]:
        """Hosts that receive an event, once for each copy."""
        address = IPv6Address((0xFF0E << 112) | (int(code or "0", 2) << (112 - len(code))))
        received: list[str] = []
        waiting = deque([self.peer[publisher, 1]])
        for _ in range(10_000):
            if not waiting:
                return received
            switch, in_port = waiting.popleft()
            matching = [entry for entry in self.tables[switch] if address in entry[1]]
            best = max(matching, key=lambda entry: entry[0], default=None)
            assert sum(entry[0] == best[0] for entry in matching) == 1 if best else True, (
                "two entries compete"
            )
            for action in best[2] if best else []:
                if "output" in action and action["output"] != in_port:
                    node, port = self.peer[switch, action["output"]]
                    received.append(node) if node in self.hosts else waiting.append((node, port))
        raise AssertionError("the event loops")


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("topology", "budget", "extra"),
    [
        ("fat-tree:4x2", 8, []),
        ("ring:8", 1, ["--max-trees", 1]),
        ("torus:3x3", 32, ["--max-trees", 2]),
        ("fat-tree:4x2", 16, ["--tcam", 6, "--tcam", "s1=2"]),
        ("star:8", 8, ["--last-hop", "rewrite"]),
    ],
)
def test_compiled_tables_deliver_what_was_asked_for_exactly_once(
    tmp_path: Path, topology: str, budget: int, extra: list[object]
) -> None:
    """The rows of `encode`, `cover` and `compile` fit together: walked independently, no wanted event is lost."""
    index, codes, covers = tmp_path / "index.json", tmp_path / "codes.csv", tmp_path / "covers.csv"
    plerion("index", "build", "--schema", "schema.yaml", "--bits", 40, "--out", index)
    plerion("index", "encode", "--index", index, "--events", "events.csv", "--out", codes)
    plerion(
        "index",
        "cover",
        "--index",
        index,
        "--subscriptions",
        "subscriptions.csv",
        "--budget",
        budget,
        "--out",
        covers,
    )
    interests = [
        "--advertisements",
        "advertisements.csv",
        "--subscriptions",
        "subscriptions.csv",
        "--budget",
        budget,
    ]
    tables = json.loads(plerion("compile", "--topology", topology, "--index", index, *interests, *extra))
    network = Network(tables, json.loads(plerion("topology", topology, "--json")))
    host_of = {row["id"]: row["host"] for row in rows(EXAMPLES / "subscriptions.csv")}
    cells = [(host_of[row["subscription"]], row["dz"]) for row in rows(covers)]
    limited = "--tcam" in extra
    for event, row in enumerate(rows(EXAMPLES / "events.csv")[:300]):
        code = rows_by_event(codes)[event]
        received = network.deliver(code, row["publisher"])
        expected = {host for host, dz in cells if code.startswith(dz)} - {row["publisher"]}
        assert len(received) == len(set(received)), "doubled"
        assert expected <= set(received) if limited else expected == set(received)
    if limited:
        assert all(len(entries) <= 6 for entries in tables["switches"].values())
        assert len(tables["switches"]["s1"]) <= 2


_CODES: dict[Path, dict[int, str]] = {}


def rows_by_event(codes: Path) -> dict[int, str]:
    if codes not in _CODES:
        _CODES[codes] = {int(row["event"]): row["dz"] for row in rows(codes)}
    return _CODES[codes]


def test_the_second_opinion_can_disagree(tmp_path: Path) -> None:
    index = tmp_path / "index.json"
    plerion("index", "build", "--schema", "schema.yaml", "--bits", 8, "--out", index)
    tables = json.loads(
        plerion("compile", "--topology", "ring:8", "--index", index, "--subscriptions", "subscriptions.csv")
    )
    topology = json.loads(plerion("topology", "ring:8", "--json"))
    code = (
        plerion("index", "encode", "--index", index, "--events", "events.csv").splitlines()[1].split(",")[1]
    )
    assert Network(tables, topology).deliver(code, "h1")
    for entries in tables["switches"].values():
        entries.clear()
    assert not Network(tables, topology).deliver(code, "h1")


def test_evaluate_counts_what_encode_and_cover_say(tmp_path: Path) -> None:
    index = tmp_path / "index.json"
    plerion(
        "index",
        "build",
        "--schema",
        "schema.yaml",
        "--select",
        "temperature,wind",
        "--bits",
        23,
        "--out",
        index,
    )
    workload = ["--events", "events.csv", "--subscriptions", "subscriptions.csv"]
    asked = ("--budget", 4, "--master", "local[2]", "--json")
    found = json.loads(plerion("index", "evaluate", "--index", index, *workload, *asked))
    codes = plerion("index", "encode", "--index", index, "--events", "events.csv").splitlines()[1:]
    covers = plerion(
        "index", "cover", "--index", index, "--subscriptions", "subscriptions.csv", "--budget", 4
    )
    cells = [line.split(",") for line in covers.splitlines()[1:]]
    pairs = {
        (event, name)
        for event, code in (c.split(",") for c in codes)
        for name, dz in cells
        if code.startswith(dz)
    }
    assert found["deliveries"] == len(pairs)
    assert found["false_negatives"] == 0
    assert found["false_positives"] == found["deliveries"] - found["wanted"]
    assert found["false_positive_rate"] == pytest.approx(found["false_positives"] / found["deliveries"])
    assert found["dz"] == len(cells)


def test_trace_tells_who_received_an_event_and_why_others_did_not(tmp_path: Path) -> None:
    index = tmp_path / "index.json"
    plerion("index", "build", "--schema", "schema.yaml", "--out", index)
    common = ["--topology", "fat-tree:4x2", "--index", index, "--subscriptions", "subscriptions.csv"]
    event = "airport=EWR,temperature=20,humidity=50,wind=22,hour=3"
    told = json.loads(plerion("trace", *common, "--publisher", "h1", "--event", event, "--json"))
    assert {"host": "h5", "wanted": True} in told["received"]
    assert not told["missing"]
    assert any(hop["subscriptions"] for hop in told["journeys"][0]["hops"])
    own = json.loads(plerion("trace", *common, "--publisher", "h5", "--event", event, "--json"))
    assert [m["why"] for m in own["missing"] if m["subscription"] == "storm"] != []
    silent = ["--advertisements", "advertisements.csv"]
    unsaid = json.loads(plerion("trace", *common, *silent, "--publisher", "h8", "--event", event, "--json"))
    assert any("did not advertise" in m["why"] for m in unsaid["missing"])


def test_trace_tells_why_an_event_is_not_sent(tmp_path: Path) -> None:
    index = tmp_path / "index.json"
    plerion("index", "build", "--schema", "schema.yaml", "--bits", 4, "--out", index)
    common = ["--index", index, "--topology", "ring:8", "--subscriptions", "subscriptions.csv"]
    sent = ["trace", *common, "--publisher", "h8", "--event", "temperature=20"]
    assert "h8 sends nothing: a failure cut it off" in plerion(*sent, "--down", "s8")
    document = json.loads(index.read_text())
    hot = document["clusters"][0] | {"id": "1", "box": {"temperature": [90, None]}}
    index.write_text(json.dumps(document | {"clusters": [hot]}))
    (tmp_path / "none.csv").write_text("id,host,filter\n")
    none = ["--subscriptions", tmp_path / "none.csv"]
    assert "h8 sends nothing: the event has no code in this index" in plerion(*sent, *none)


def test_verify_judges_given_tables_and_shows_an_event_that_refutes_them(tmp_path: Path) -> None:
    index, tables = tmp_path / "index.json", tmp_path / "tables.json"
    plerion("index", "build", "--schema", "schema.yaml", "--out", index)
    common = ["--topology", "fat-tree:4x2", "--index", index, "--subscriptions", "subscriptions.csv"]
    text = plerion("compile", *common)
    tables.write_text(text)
    assert json.loads(plerion("verify", *common, "--tables", tables, "--json"))["ok"]
    tables.write_text(text.replace(',{"output":4}', ""))
    refuted = json.loads(plerion("verify", *common, "--tables", tables, "--json", code=1))
    assert refuted["counter_example"].startswith("lost")
    assert set(refuted["event"]) == {"airport", "temperature", "humidity", "wind", "visibility", "hour"}
    tables.write_text(text.replace('"s1"', '"s99"'))
    assert "s99" in plerion("verify", *common, "--tables", tables, code=2)


def test_failed_switches_and_links_are_routed_around(tmp_path: Path) -> None:
    index = tmp_path / "index.json"
    plerion("index", "build", "--schema", "schema.yaml", "--out", index)
    common = ["--topology", "fat-tree:4x2", "--index", index, "--subscriptions", "subscriptions.csv"]
    for failures in (["s1:1"], ["s1"], ["s9", "s3:3"]):
        down = [word for failure in failures for word in ("--down", failure)]
        assert json.loads(plerion("verify", *common, *down, "--json"))["ok"]
        tables = json.loads(plerion("compile", *common, *down))["switches"]
        assert all(not tables[failure] for failure in failures if ":" not in failure)
    assert "s77" in plerion("verify", *common, "--down", "s77", code=2)


def test_bad_input_is_one_clear_line_and_exit_code_2(tmp_path: Path) -> None:
    index = tmp_path / "index.json"
    plerion("index", "build", "--schema", "schema.yaml", "--out", index)
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "binary.csv").write_bytes(random.Random(1).randbytes(4096))
    (tmp_path / "unknown.csv").write_text("id,host,filter\na,h99,TRUE\n")
    (tmp_path / "torn.csv").write_text("id,host,filter\na,h1,temperature >\n")
    (tmp_path / "far.csv").write_text("temperature\n20\n999\n")
    (tmp_path / "deep.json").write_text('{"more":' + "[" * 100_000)
    (tmp_path / "torn.json").write_text('{"format": "plerion-index"')
    ring = ["--topology", "ring:3", "--index", index]
    cases: list[tuple[list[object], str]] = [
        (["index", "build", "--schema", "nowhere.yaml", "--out", "x"], "nowhere.yaml"),
        (
            ["index", "build", "--schema", "schema.yaml", "--select", "temprature", "--out", "x"],
            "did you mean",
        ),
        (["index", "build", "--schema", "schema.yaml", "--method", "magic", "--out", "x"], "magic"),
        (["index", "encode", "--index", tmp_path / "torn.json", "--events", "events.csv"], "torn.json"),
        (["index", "encode", "--index", index, "--events", tmp_path / "far.csv"], "999"),
        (["index", "encode", "--index", index, "--events", tmp_path / "empty.csv"], "empty.csv"),
        (["index", "cover", "--index", index, "--subscriptions", tmp_path / "binary.csv"], "binary.csv"),
        (["verify", *ring, "--subscriptions", tmp_path / "unknown.csv"], "h99"),
        (["verify", *ring, "--subscriptions", tmp_path / "torn.csv"], "torn.csv"),
        (["compile", *ring, "--subscriptions", "subscriptions.csv", "--format", "xml"], "xml"),
        (["compile", *ring, "--subscriptions", "subscriptions.csv", "--tcam", "s9=1"], "s9"),
        (
            ["verify", "--topology", "nix:3", "--index", index, "--subscriptions", "subscriptions.csv"],
            "nix:3",
        ),
        (["topology", str(tmp_path)], str(tmp_path.name)),
        (["index", "build", "--schema", "schema.yaml", "--out", tmp_path], f"{tmp_path}: this is no file"),
        (["index", "build", "--schema", "schema.yaml", "--out", ""], "--out: this is no file"),
        (["index", "build", "--schema", "schema.yaml", "--out", "none/x"], "none/x: No such file"),
        *(
            (["compile", *ring, "--subscriptions", "subscriptions.csv", "--tcam", room], "names no room")
            for room in ("9" * 20, "9" * 5000, "²", "=5", "s1=", "0", "-1")
        ),
        *(
            (["compile", *ring, "--subscriptions", "subscriptions.csv", "--down", gone], f"error: {said}")
            for gone, said in (
                ("s9", "there is no switch"),
                ("s1:9", "there is no link"),
                ("s1:", "'s1:' is"),
            )
        ),
        (
            [
                "verify",
                "--topology",
                "ring:8",
                "--index",
                index,
                "--subscriptions",
                "subscriptions.csv",
                "--tables",
                tmp_path / "deep.json",
            ],
            "deep.json",
        ),
    ]
    for words, told in cases:
        assert told in plerion(*words, code=2), words
    assert not (EXAMPLES / "x").exists(), "a command that failed leaves no file behind"


@pytest.mark.spark
def test_the_demo_learns_twice_and_ends_by_itself_with_nothing_lost_and_nothing_doubled(
    tmp_path: Path,
) -> None:
    figure = tmp_path / "demo.png"
    found = json.loads(plerion("demo", "--seconds", 2, "--json", "--figure", figure))
    assert found["events"] > 26_114, "the weather, and what was on its way when the index changed"
    assert (found["lost"], found["doubled"], found["proven"]) == (0, 0, True)
    assert (found["changes"], found["learning"]) == (2, "done")
    assert found["rate_after"] < 0.8 * found["rate_before"]
    assert figure.stat().st_size > 10_000


def test_the_benchmarks_run() -> None:
    rows_found = json.loads(plerion("bench", "--scale", 0.002, "--json"))["rows"]
    assert len(rows_found) >= 15
    assert all(row["measured"] > 0 for row in rows_found)


def test_every_command_explains_itself_with_an_example() -> None:
    verbs = ["index build", "index evaluate", "index encode", "index cover"]
    for verb in [*verbs, "topology", "compile", "verify", "trace", "bench", "demo"]:
        assert f"plerion {verb}" in plerion(*verb.split(), "--help")
