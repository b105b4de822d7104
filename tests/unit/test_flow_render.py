"""Given tables are read as a switch would read them, or refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from plerion.flow.entry import FlowEntry, tables_of
from plerion.flow.fabric import fabric
from plerion.flow.render import TablesError, documents, read_tables
from plerion.index.address import AddressPlan
from plerion.index.dz import Dz
from plerion.topology.generate import line
from plerion.topology.graph import SwitchId

NETWORK = fabric(line(3))


def entry(network: str, priority: int, *actions: dict[str, Any]) -> dict[str, Any]:
    return {"priority": priority, "match": {"ipv6_dst": network}, "actions": list(actions)}


def read(tmp_path: Path, *entries: Any) -> Any:
    file = tmp_path / "tables.json"
    file.write_text(json.dumps({"switches": {"s2": entries}}))
    return read_tables(file, NETWORK)


@pytest.mark.parametrize("last_hop", ["raw", "rewrite"])
def test_what_is_written_is_read_back(tmp_path: Path, last_hop: Any) -> None:
    entries = [
        FlowEntry(Dz.parse(dz), frozenset(ports))
        for dz, ports in (("", {1}), ("01", {1, 3}), ("010", {2, 3}))
    ]
    tables = tables_of(NETWORK, {SwitchId("s2"): entries})
    file = tmp_path / "tables.json"
    file.write_text(json.dumps({"switches": dict(documents(tables, AddressPlan(), last_hop))}))
    assert read_tables(file, NETWORK) == tables


@pytest.mark.parametrize(
    "entries",
    [
        [entry("ff0e::/16", 900, {"output": 1}), entry("ff0e:8000::/17", 1, {"output": 2})],
        [entry("ff0e::/16", 5, {"output": 1}), entry("ff0e::/16", 6, {"output": 2})],
        [entry("ff0e::/16", 5, {"output": 2}, {"output": 2})],
        [entry("ff0e::/16", 5, {"output": 9})],
        [entry("ff0e::/16", 5, {"output": [2]})],
        [entry("ff0e::/16", 5, {"set": {"ipv6_dst": "fd00::1"}}, {"output": 1})],
        [entry("2001:db8::/32", 5, {"output": 1})],
        [{"priority": 5, "match": {"vlan": "7"}, "actions": []}],
    ],
)
def test_tables_that_a_switch_would_read_in_another_way_are_refused(
    tmp_path: Path, entries: list[Any]
) -> None:
    with pytest.raises(TablesError, match=r"tables\.json"):
        read(tmp_path, *entries)
