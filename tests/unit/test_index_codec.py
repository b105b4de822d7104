"""The document of a content index: its exact text, and each way in which it can be wrong."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plerion.content.box import Box
from plerion.content.schema import Enumeration, Number, Schema
from plerion.index import codec
from plerion.index.codec import MAX_BYTES, from_json, read_index, to_json
from plerion.index.content_index import Cluster, ContentIndex
from plerion.index.cuts import ContentIndexError, equal_cuts, explicit_cuts
from plerion.index.dz import Dz

INF = float("inf")
SCHEMA = Schema((Number("t", -10.0, 40.0), Enumeration("city", ("oslo", "rome", "bonn"))))
T, CITY = SCHEMA.attributes
INDEX = ContentIndex(
    SCHEMA,
    (
        Cluster(
            Dz.parse("0"), Box((0.0, -INF), (20.5, INF)), (0, 1), (equal_cuts(T, 1), equal_cuts(CITY, 1))
        ),
        Cluster(
            Dz.parse("10"),
            Box((-INF, -INF), (INF, INF)),
            (0, 0),
            (explicit_cuts(T, [0.1, 0.1, 30.0]), equal_cuts(CITY, 0)),
        ),
    ),
    epoch=7,
)
TEXT = (
    '{"format":"plerion-index","version":1,"epoch":7,'
    '"schema":{"attributes":[{"name":"t","low":-10.0,"high":40.0},'
    '{"name":"city","values":["oslo","rome","bonn"]}]},'
    '"clusters":['
    '{"id":"0","order":["t","city"],'
    '"cuts":{},'
    '"box":{"t":[0.0,20.5]}},'
    '{"id":"10","order":["t","t"],'
    '"cuts":{"t":{"low":-10.0,"end":40.00000000000001,"at":[0.1,0.1,30.0]}}}'
    "]}"
)


def test_an_index_is_written_like_this() -> None:
    assert to_json(INDEX).decode() == TEXT


def test_equal_halves_of_the_whole_axis_may_be_written_out() -> None:
    said = '"cuts":{"t":{"low":-10.0,"end":40.00000000000001},"city":{"low":0.0,"end":3.0}}'
    assert from_json(TEXT.replace('"cuts":{}', said)) == INDEX
    assert from_json(TEXT) == INDEX


def test_cuts_that_are_left_out_are_equal_parts() -> None:
    document = json.loads(TEXT)
    document["clusters"][0]["cuts"] = {}
    assert from_json(json.dumps(document)) == INDEX


def _set(*path: Any) -> Callable[[Any], None]:
    *way, key, value = path

    def change(document: Any) -> None:
        for step in way:
            document = document[step]
        document[key] = value

    return change


def _remove(key: str) -> Callable[[Any], None]:
    return lambda document: document.pop(key)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_set("version", 2), "version 2: this release reads 'plerion-index' version 1"),
        (_set("format", "other"), "format 'other'"),
        (_set("epoch", -1), "epochs count from 0"),
        (_set("epoch", 1.5), "int"),
        (_set("epoch", 2**63), "epochs count from 0"),
        (_set("extra", 1), "extra"),
        (_remove("format"), "format"),
        (_remove("version"), "version"),
        (_remove("epoch"), "epoch"),
        (_remove("schema"), "schema"),
        (_remove("clusters"), "clusters"),
        (_set("schema", {}), "attributes"),
        (_set("schema", "attributes", 0, "low", 50), "above high"),
        (_set("schema", "attributes", 1, "name", "t"), "two attributes"),
        (_set("clusters", []), "at least one cluster"),
        (_set("clusters", 0, "colour", "red"), "colour"),
        (_set("clusters", 0, "id", "1"), "'10' begins with cluster id '1'"),
        (_set("clusters", 0, "id", "10"), "'10' begins with cluster id '10'"),
        (_set("clusters", 0, "id", ""), "'10' begins with cluster id ''"),
        (_set("clusters", 0, "id", "2"), "digits 0 and 1"),
        (_set("clusters", 0, "order", ["t", "town"]), "town"),
        (_set("clusters", 0, "order", ["t"] * 113), "at most 112 bits"),
        (_set("clusters", 0, "order", ["t"] * 49), "0 to 48 bits"),
        (_set("clusters", 0, "order", ["t"] * 48 + ["city"] * 48 + ["t"] * 16), "0 to 48 bits"),
        (_set("clusters", 0, "cuts", "town", {"low": 0, "end": 1}), "'town', which the schema does not have"),
        (_set("clusters", 0, "box", {"town": [0, 1]}), "'town', which the schema does not have"),
        (_set("clusters", 0, "box", {"t": [0]}), "length 2"),
        (_set("clusters", 0, "cuts", "t", {"low": 4, "end": 4}), "low < end"),
        (_set("clusters", 0, "cuts", "t", {"low": -1e308, "end": 1e308}), "finite"),
        (_set("clusters", 1, "cuts", "t", "step", 3), "step"),
        (_set("clusters", 1, "cuts", "t", "at", [0.3, 0.2, 0.4]), "must not decrease"),
        (_set("clusters", 1, "cuts", "t", "at", [0.3, 0.4]), "2 bits need 3 cuts, not 2"),
        (_set("clusters", 1, "cuts", "t", "at", [0.3, None, 0.4]), "float"),
    ],
)
def test_a_wrong_document_is_refused_with_the_reason(change: Callable[[Any], None], reason: str) -> None:
    document = json.loads(TEXT)
    change(document)
    with pytest.raises(ContentIndexError, match=reason):
        from_json(json.dumps(document))


@pytest.mark.parametrize(
    "text",
    ["", "{", "null", "[]", TEXT[:-1], TEXT + "x", TEXT.replace("0.1", "NaN"), TEXT.replace("0.1", "1e999")],
)
def test_text_that_is_no_json_document_is_refused(text: str) -> None:
    with pytest.raises(ContentIndexError, match="not a content index"):
        from_json(text)


def test_deeply_nested_and_undecodable_text_is_refused() -> None:
    for text in ("[" * 100_000, b"\xff\xfe", '{"format":' * 10_000, "\ud800"):
        with pytest.raises(ContentIndexError, match="not a content index"):
            from_json(text)


def test_an_endless_bit_order_is_refused_before_it_is_counted() -> None:
    document = json.loads(TEXT)
    document["clusters"][0]["order"] = ["t"] * 1_000_000
    with pytest.raises(ContentIndexError, match="not 1000000"):
        from_json(json.dumps(document))


def test_an_index_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "index.json"
    file.write_bytes(to_json(INDEX))
    assert read_index(file) == read_index(str(file)) == INDEX


def test_errors_of_a_file_name_the_file(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    large = tmp_path / "large.json"
    with large.open("wb") as out:
        out.truncate(MAX_BYTES + 1)
    for file, reason in (
        (bad, "not a content index"),
        (large, "larger than 64 MiB"),
        (tmp_path / "none", "No such file"),
        (tmp_path, "Is a directory"),
    ):
        with pytest.raises(ContentIndexError, match=reason) as caught:
            read_index(file)
        assert str(caught.value).startswith(f"{file}: ")


def test_what_a_refusal_repeats_of_a_document_is_bounded() -> None:
    for change in (
        _set("format", "x" * 100_000),
        _set("version", 10**400),
        _set("clusters", 0, "cuts", "x" * 100_000, {"low": 0, "end": 1}),
    ):
        document = json.loads(TEXT)
        change(document)
        with pytest.raises(ContentIndexError) as caught:
            from_json(json.dumps(document))
        assert len(str(caught.value)) < 300


def test_a_file_without_an_end_is_refused_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "MAX_BYTES", 1 << 20)
    with pytest.raises(ContentIndexError, match="/dev/zero: larger than 1 MiB"):
        read_index("/dev/zero")
