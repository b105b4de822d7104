"""Configurations: what is right is loaded, what is wrong is told with file, line, column and what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from plerion.content.errors import SchemaError
from plerion.content.schema import Number, Schema
from plerion.controller.access import permitted
from plerion.controller.config import read_config
from plerion.index.codec import to_json
from plerion.index.propose import regular
from plerion.topology import SwitchId

LEAST = "topology: line:2\nindex: index.json\n"


def written(folder: Path, text: str) -> Path:
    (folder / "index.json").write_bytes(to_json(regular(Schema((Number("x", 0, 15),)), 4)))
    (folder / "cert.pem").write_text("certificate")
    (folder / "token").write_text("of-a-file-and-long-enough\n")
    path = folder / "plerion.yaml"
    path.write_text(text)
    return path


def test_two_lines_are_enough(tmp_path: Path) -> None:
    found = read_config(written(tmp_path, LEAST))
    assert [*found.settings.topology.switches] == ["s1", "s2"]
    assert found.journal == tmp_path / "plerion.journal"
    assert (found.openflow.host, found.openflow.port) == ("127.0.0.1", 6653)
    assert (found.api.host, found.api.port, found.tokens) == ("127.0.0.1", 8080, ())
    assert found.switch_ids is None


WHOLE = f"""{LEAST}
budget: 16
max_trees: 4
tcam: {{s1: 100, others: 50}}
last_hop: rewrite
journal: state/journal
openflow:
  listen: "[::1]:6653"
  ids: {{s2: 77}}
  tls: {{certificate: cert.pem, key: cert.pem, authority: cert.pem}}
api:
  listen: 0.0.0.0:8443
  tls: {{certificate: cert.pem, key: cert.pem}}
  tokens:
    - {{name: grafana, role: reader, token: "0123456789abcdef"}}
    - {{name: operator, role: admin, token_file: token}}
leases: {{usual_seconds: 10, longest_seconds: 100}}
quotas: {{subscriptions: 5, requests_per_second: 7.5}}
grace_seconds: 2.5
start_seconds: 9
beacon_seconds: 1
log_level: debug
"""


def test_everything_can_be_said(tmp_path: Path) -> None:
    found = read_config(written(tmp_path, WHOLE))
    assert found.settings.tcam == {SwitchId("s1"): 100, SwitchId("s2"): 50}
    assert found.switch_ids == {SwitchId("s1"): 1, SwitchId("s2"): 77}
    assert found.openflow.host == "::1"
    assert found.openflow.tls is not None
    assert found.openflow.tls.authority == tmp_path / "cert.pem"
    assert (found.quotas.subscriptions, found.quotas.requests_per_second) == (5, 7.5)
    assert (found.settings.budget, found.last_hop, found.log_level) == (16, "rewrite", "debug")
    assert [(token.name, token.role) for token in found.tokens] == [
        ("grafana", "reader"),
        ("operator", "admin"),
    ]


WRONG = {
    "": ": 'topology' is missing; add a line topology: …",
    "- a\n": ":1:1: names and values belong here; write name: value, one a line",
    "topology: line:2\nindex: nowhere.json\n": ":2:8: ",
    "topology: lime:2\nindex: index.json\n": ":1:11: ",
    LEAST + "bugdet: 3\n": ":3:9: 'bugdet' is not known here; did you mean 'budget'?",
    LEAST + "budget: many\n": ":3:9: 'many' is no number here; give a whole number, 1 to 65536",
    LEAST + "budget: true\n": ":3:9: True is no number here",
    LEAST + "grace_seconds: -1\n": ":3:16: -1 is out of bounds; give 0 to 3600",
    LEAST + "grace_seconds: .nan\n": ":3:16: nan is no number; give 0 to 3600",
    LEAST + "last_hop: row\n": ":3:11: 'row' is not known here; did you mean 'raw'?",
    LEAST + "tcam: {s3: 5}\n": ":3:12: there is no switch 's3' in this network; there are 's1', 's2'",
    LEAST + "tcam: 0\n": ":3:7: 0 is no number here",
    LEAST
    + "api:\n  listen: somewhere\n": ":4:11: 'somewhere' is no address; write 127.0.0.1:6653 or [::1]:6653",
    LEAST
    + "api:\n  listen: 0.0.0.0:80\n": ":4:11: the API would be open to anybody who reaches 0.0.0.0; give tls and",
    LEAST
    + "openflow:\n  listen: 10.0.0.1:6653\n": ":4:11: switches would be told by anybody who reaches 10.0.0.1",
    LEAST + "openflow:\n  ids: {s1: 2}\n": ":4:8: s2 and s1 have the same id 2; give each switch its own",
    LEAST
    + "openflow:\n  tls: {certificate: cert.pem, key: cert.pem}\n": ":4:8: who signs the certificates of",
    LEAST + "openflow:\n  tls: {certificate: no.pem, key: cert.pem}\n": ":4:22: there is no file",
    LEAST
    + "api:\n  tokens:\n    - {name: a, role: root, token: 0123456789abcdef}\n": ":5:23: 'root' is not known",
    LEAST
    + "api:\n  tokens:\n    - {name: a, role: admin, token: short}\n": ":5:37: a token of 5 characters can be",
    LEAST + "api:\n  tokens:\n    - {name: a, role: admin}\n": ":5:14: a token is missing, or there are two",
    LEAST + "quotas: 7\n": ":3:9: names and values belong here",
    LEAST + "budget: 1\nbudget: 2\n": ":4:1: ",
    LEAST + "x: [\n": "not YAML",
}


@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_one_line_with_its_place(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(SchemaError) as caught:
        read_config(path)
    line = caught.value.summary
    assert line.startswith(str(path))
    assert WRONG[text] in line
    assert "\n" not in line


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="cannot be read"):
        read_config(tmp_path / "none.yaml")


def test_a_role_includes_the_lesser_ones_and_only_the_right_token_has_it(tmp_path: Path) -> None:
    reader, admin = read_config(written(tmp_path, WHOLE)).tokens
    shown = {"reader": "Bearer 0123456789abcdef", "admin": "bearer of-a-file-and-long-enough"}
    assert permitted((reader, admin), "reader", shown["reader"]) is None
    assert permitted((reader, admin), "writer", shown["admin"]) is None
    refused = permitted((reader, admin), "writer", shown["reader"])
    assert refused is not None
    assert refused[0] == 403
    for header in (
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer 0123456789abcdeg",
        "Basic 0123456789abcdef",
        "\udcff",
    ):
        verdict = permitted((reader, admin), "reader", header)
        assert verdict is not None
        assert verdict[0] == 401
    assert permitted((), "admin", None) is None, "without tokens the API is for loopback alone"
