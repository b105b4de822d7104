"""Schemas and events: what is accepted, where it stands on an axis, and what a refusal says."""

import math
import pickle
from fractions import Fraction
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest

from plerion.content import yaml_file
from plerion.content.errors import ContentError, FilterError, InputError
from plerion.content.event import EventError, point
from plerion.content.schema import (
    MAX_ATTRIBUTES,
    MAX_VALUES,
    MISSING,
    Attribute,
    Enumeration,
    Number,
    Schema,
    SchemaError,
    read_schema,
)

GOOD = """
attributes:
  - {name: temperature, low: -30, high: 50.5}
  - {name: visits, low: 0, high: 4095, integer: true}
  - {name: volume, low: 1, high: 1.0e+9, scale: log}
  - {name: airport, values: [EWR, JFK, "007", 'no']}
"""


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "schema.yaml"
    file.write_text(text)
    return file


def test_a_schema_is_read_and_its_document_gives_it_back(tmp_path: Path) -> None:
    schema = read_schema(written(tmp_path, GOOD))
    assert schema.names == ("temperature", "visits", "volume", "airport")
    assert schema.starts == (-30, 0, 1, 0)
    assert schema.ends == (math.nextafter(50.5, math.inf), 4096, math.nextafter(1e9, math.inf), 4)
    assert Schema.from_document(schema.to_document()) == schema
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert hash(schema) == hash(Schema.from_document(schema.to_document()))


def test_an_unknown_attribute_gets_a_suggestion(tmp_path: Path) -> None:
    schema = read_schema(written(tmp_path, GOOD))
    assert schema.position("visits") == 1
    with pytest.raises(SchemaError, match="no attribute 'vists'; did you mean 'visits'"):
        schema.position("vists")


MISTAKES = {
    "": "schema.yaml: ",
    "attributes: []": ":1:13: 0 attributes",
    "attributes: 5": ":1:13: 'attributes' is not a list",
    "atributes: []": ":1:12: unknown key 'atributes'; did you mean 'attributes'",
    "[1]": ":1:1: ",
    "attributes: [5]": ":1:14: 5 stands where keys should",
    "attributes:\n- {name: a, low: 0}": ":2:3: 'high' is missing",
    "attributes:\n- {name: a, low: 0, hihg: 1}": ":2:27: unknown key 'hihg'; did you mean 'high'",
    "attributes:\n- {name: a, low: 2, high: 1}": ":2:18: low 2.0 is above high 1.0; swap",
    "attributes:\n- {name: a, low: x, high: 1}": ":2:18: low is 'x'; give a number",
    "attributes:\n- {name: a, low: true, high: 1}": ":2:18: low is True",
    "attributes:\n- {name: a, low: .inf, high: 1}": ":2:18: low is not finite",
    "attributes:\n- {name: a, low: -1.7e+308, high: 1.7e+308}": "high - low is not finite",
    "attributes:\n- {name: a, low: 0, high: 1.7976931348623157e+308}": ":2:27: high - low is not finite",
    "attributes:\n- {name: a, low: 0, high: 1, scale: log}": ":2:18: low 0.0 has no logarithm",
    "attributes:\n- {name: a, low: 0, high: 1, scale: loc}": "scale is 'loc'",
    "attributes:\n- {name: a, low: 0.5, high: 1, integer: true}": "low 0.5 is no bound for an integer",
    "attributes:\n- {name: a, low: 0, high: 9007199254740992, integer: true}": "is no bound for an integer",
    "attributes:\n- {name: a, low: 0, high: 1, integer: 1}": "'integer' is not true or false",
    "attributes:\n- {name: a, values: []}": "0 values",
    "attributes:\n- {name: a, values: x}": "'values' is not a list",
    "attributes:\n- {name: a, values: [x, 1]}": ":2:25: the value is 1; write it as text, in quotes",
    "attributes:\n- {name: a, values: [x, y, x]}": ":2:28: 'x' is there twice",
    'attributes:\n- {name: a, values: ["x\\0"]}': "has a control character",
    "attributes:\n- {name: '', low: 0, high: 1}": "the name is empty",
    f"attributes:\n- {{name: {'n' * 129}, low: 0, high: 1}}": "the name has 129 characters",
    "attributes:\n- {name: a, low: 0, high: 1}\n- {name: a, low: 0, high: 1}": ":3:10: two attributes",
    "attributes:\n- {name: a, name: b}": ":2:13: a key is there twice",
    "attributes: [": "not YAML",
    "attributes: {\n": "not YAML",
    "a: *b": "not YAML",
    "attributes: !!python/object:os.system [ls]": "means nothing here",
    "attributes: &a [*a]": "stands where keys should",
    "attributes:\n- &a {name: a, low: 0, high: 1}\n- {<<: *a, name: b}": "unknown key '<<'",
    f"attributes:\n- {{name: a, low: {'9' * 5000}, high: 1}}": "is not a number",
    "[" * 3000: "nested too deeply",
}


@pytest.mark.parametrize("text", MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_in_a_schema_file_is_named_with_its_place(text: str, tmp_path: Path) -> None:
    with pytest.raises(SchemaError) as caught:
        read_schema(written(tmp_path, text))
    assert MISTAKES[text] in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "schema.yaml"))
    assert len(str(caught.value)) < 500
    assert "\n" not in str(caught.value)


def test_aliases_of_aliases_cost_what_their_bytes_cost(tmp_path: Path) -> None:
    begin = perf_counter()
    with pytest.raises(SchemaError, match="the value is a value of type list"):
        read_schema(written(tmp_path, _bomb()))
    assert perf_counter() - begin < 2


@pytest.mark.parametrize("opened", ["[", "{a: ", "- ", "? "])
def test_a_file_that_nests_deeper_than_any_schema_is_refused_at_that_depth(
    opened: str, tmp_path: Path
) -> None:
    begin = perf_counter()
    with pytest.raises(SchemaError, match=": lists are nested too deeply"):
        read_schema(written(tmp_path, opened * 20_000))
    assert perf_counter() - begin < 20


@pytest.mark.parametrize("text", ["- a\n" * 1_000_000, f"[{'a,' * 1_000_000}]", "a: &a b\n" * 400_000])
def test_a_file_with_more_parts_than_any_schema_is_refused_at_that_part(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yaml_file, "MAX_PARTS", 1_000)
    begin = perf_counter()
    with pytest.raises(SchemaError, match=": more than 1,000 parts; a schema lists attributes"):
        read_schema(written(tmp_path, text))
    assert perf_counter() - begin < 20


def test_a_schema_may_have_all_its_attributes_beside_a_list_of_all_values() -> None:
    numbers = 2 + (MAX_ATTRIBUTES - 1) * (1 + 2 * 5)
    assert numbers + 1 + 2 * 2 + MAX_VALUES < yaml_file.MAX_PARTS


def _bomb() -> str:
    inner = "&a0 [x, x]"
    for at in range(1, 40):
        inner = f"&a{at} [{inner}, *a{at - 1}]"
    return f"attributes: [{{name: a, values: {inner}}}]"


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    big = tmp_path / "big.yaml"
    big.write_bytes(b" " * ((4 << 20) + 1))
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"attributes: [\xe9]")
    for file, said in ((big, "larger than 4 MiB"), (latin, "not UTF-8"), (tmp_path / "none", "No such file")):
        with pytest.raises(SchemaError, match=said):
            read_schema(file)
    with pytest.raises(SchemaError, match="cannot be read"):
        read_schema(tmp_path)


T = Number("t", -10, 10)
N = Number("n", 0, 5, integer=True)
E = Enumeration("e", ("low", "mid", "high"))


@pytest.mark.parametrize(
    ("attribute", "value", "position"),
    [
        (T, 3, 3.0),
        (T, -10, -10.0),
        (T, 10.0, 10.0),
        (T, np.float32(0.5), 0.5),
        (T, np.int64(3), 3.0),
        (T, Fraction(1, 2), 0.5),
        (T, None, MISSING),
        (T, math.nan, MISSING),
        (N, 5, 5.0),
        (N, 2.0, 2.0),
        (E, "low", 0.0),
        (E, "high", 2.0),
        (E, None, MISSING),
        (E, math.nan, MISSING),
    ],
)
def test_a_value_has_its_position(attribute: Attribute, value: object, position: float) -> None:
    assert attribute.axis(value) == position


@pytest.mark.parametrize(
    ("attribute", "value", "said"),
    [
        (T, 10.5, "'t': 10.5 is outside -10 to 10; "),
        (T, math.inf, "outside"),
        (T, -math.inf, "outside"),
        (T, 10**400, "outside"),
        (T, True, "'t': True is not a number"),
        (T, "3", "'t': '3' is not a number"),
        (T, [3], "is not a number"),
        (N, 2.5, "is not whole"),
        (N, 6, "outside 0 to 5"),
        (E, "hgih", "'hgih' is not one of its 3 values; did you mean 'high'"),
        (E, 1, "1 is not one of"),
        (E, ["low"], "is not one of"),
    ],
)
def test_what_is_no_value_is_refused(attribute: Attribute, value: object, said: str) -> None:
    with pytest.raises(EventError) as caught:
        attribute.axis(value)
    assert said in str(caught.value)
    assert caught.value.attribute == attribute.name
    assert caught.value.bound


def test_every_value_lies_between_start_and_end_and_missing_below() -> None:
    for attribute, top in (
        (T, 10.0),
        (N, 5.0),
        (E, 2.0),
        (Number("x", 2**53 - 1, 2**53 - 1, True), 2.0**53 - 1),
    ):
        assert MISSING < attribute.start <= top < attribute.end


def test_a_point_has_one_position_an_attribute() -> None:
    schema = Schema((T, N, E))
    assert point(schema, {"e": "mid", "t": 1}) == (1.0, MISSING, 1.0)
    with pytest.raises(EventError, match="no attribute 'T'; did you mean 't'"):
        point(schema, {"T": 1})


@pytest.mark.parametrize(
    "error",
    [
        SchemaError("what", "fix", ("attributes", 3)),
        EventError("what", "fix", "t", 3.0, "0 to 1"),
        FilterError("what", "fix", 2, 3, ("AND",), "  x\n  ^"),
        InputError("what", "fix", "a.csv", 3, "t", 5),
    ],
)
def test_errors_keep_their_fields_when_they_cross_a_process(error: ContentError) -> None:
    again: Any = pickle.loads(pickle.dumps(error))
    assert (str(again), vars(again)) == (str(error), vars(error))
