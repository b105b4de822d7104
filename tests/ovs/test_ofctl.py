"""Open vSwitch itself reads the lines that `plerion compile --format ofctl` prints."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.scenarios.test_cli import plerion

pytestmark = pytest.mark.ovs


def parsed(flows: str, tmp_path: Path) -> list[str]:
    """What `ovs-ofctl` makes of a file of flows; fails loudly when a line is not one."""
    file = tmp_path / "flows"
    file.write_text(flows)
    done = subprocess.run(
        ["ovs-ofctl", "-O", "OpenFlow13", "parse-flows", file], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ValueError(done.stderr)
    return done.stdout.splitlines()


@pytest.mark.parametrize("last_hop", ["raw", "rewrite"])
@pytest.mark.parametrize("family", ["ipv6", "ipv4"])
def test_every_line_is_a_flow_that_open_vswitch_understands(
    tmp_path: Path, last_hop: str, family: str
) -> None:
    if (last_hop, family) == ("rewrite", "ipv4"):
        return  # refused by the command: hosts have IPv6 addresses of their own
    index = tmp_path / "index.json"
    plerion("index", "build", "--schema", "schema.yaml", "--bits", 23, "--out", index)
    words = ["--topology", "fat-tree:4x2", "--index", index, "--subscriptions", "subscriptions.csv"]
    options = ["--format", "ofctl", "--last-hop", last_hop, *(["--ipv4"] if family == "ipv4" else [])]
    text = plerion("compile", *words, *options)
    flows = [line for line in text.splitlines() if not line.startswith("#")]
    understood = [line for line in parsed(text, tmp_path) if "ADD" in line]
    assert len(understood) == len(flows) > 0
    field = "ipv6_dst" if family == "ipv6" else "nw_dst"
    for ours, theirs in zip(flows, understood, strict=True):
        for part in (r"priority=(\d+)", rf"{field}=([^, ]+)", r"actions=(.*)"):
            mine, read = re.search(part, ours), re.search(part, theirs)
            assert mine is not None, ours
            assert read is not None, theirs
            if part.startswith("actions"):
                assert re.findall(r"output:(\d+)", mine[1]) == re.findall(r"output:(\d+)", read[1])
            else:
                assert mine[1] == read[1]


def test_a_line_that_is_no_flow_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ovs-ofctl"):
        parsed("priority=1,udp6,ipv6_dst=nonsense,actions=output:1\n", tmp_path)
