"""The conformance cases of CloudEvents SQL that are in our language hold; the others are listed with why not.

A case is run as a filter. Its attributes become enumerations of the value in the case and some others, and
`missing` an attribute without a value. A case that is not ours must be refused by the parser.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from plerion.content.event import Event
from plerion.content.filter import FilterError
from plerion.content.parse import parse
from plerion.content.schema import Attribute, Enumeration, Number, Schema
from plerion.content.semantics import matches

CASES = Path(__file__).resolve().parents[3] / "shared" / "data" / "cesql"

NO_VALUE = "its result is a value; a filter is true or false"
NO_CAST = "it casts between types; a number is compared with numbers, text with text"
NO_CALCULATION = "it calculates; filters compare attributes with literals"
NO_FUNCTION = "it calls a function; filters have none"
NO_PRESENCE = "it tests for presence; filters select by value"
NO_XOR = "XOR; (a AND NOT b) OR (NOT a AND b) says the same"

ALL = "*"
EXCLUDED: Mapping[tuple[str, str], str] = {
    ("binary_comparison_operators", "implicit casting with string as right type"): NO_CAST,
    ("binary_comparison_operators", "implicit casting with boolean as right type"): NO_CAST,
    ("binary_logical_operators", "AND operator is short circuit evaluated"): NO_CALCULATION,
    (
        "binary_logical_operators",
        "AND operator is NOT short circuit evaluated when the first operand evaluates to true",
    ): NO_CALCULATION,
    ("binary_logical_operators", "OR operator is short circuit evaluated"): NO_CALCULATION,
    (
        "binary_logical_operators",
        "OR operator is NOT short circuit evaluated when the first operand evaluates to false",
    ): NO_CALCULATION,
    ("binary_logical_operators", "False xor false"): NO_XOR,
    ("binary_logical_operators", "False xor true"): NO_XOR,
    ("binary_logical_operators", "True xor false"): NO_XOR,
    ("binary_logical_operators", "True xor true"): NO_XOR,
    ("binary_math_operators", ALL): NO_CALCULATION,
    ("case_sensitivity", "String literals casing preserved"): NO_VALUE,
    ("casting_functions", ALL): NO_FUNCTION,
    ("context_attributes_access", ALL): NO_VALUE,
    ("exists_expression", ALL): NO_PRESENCE,
    ("integer_builtin_functions", ALL): NO_FUNCTION,
    ("like_expression", "With type coercion from int (1)"): NO_CAST,
    ("like_expression", "With type coercion from int (2)"): NO_CAST,
    ("like_expression", "With type coercion from int (3)"): NO_CAST,
    ("like_expression", "With type coercion from bool (1)"): NO_CAST,
    ("like_expression", "With type coercion from bool (2)"): NO_CAST,
    ("like_expression", "With type coercion from bool (3)"): NO_CAST,
    ("like_expression", "With type coercion from bool (4)"): NO_CAST,
    ("literals", "0 literal"): NO_VALUE,
    ("literals", "1 literal"): NO_VALUE,
    ("literals", "String literal single quoted"): NO_VALUE,
    ("literals", "String literal double quoted"): NO_VALUE,
    ("literals", "String literal single quoted with case"): NO_VALUE,
    ("literals", "String literal double quoted with case"): NO_VALUE,
    ("literals", "Escaped string literal (1)"): NO_VALUE,
    ("literals", "Escaped string literal (2)"): NO_VALUE,
    ("not_operator", "Not true with casting"): NO_CAST,
    ("not_operator", "Not false 10 with casting"): NO_CAST,
    ("not_operator", "Invalid int cast"): NO_CAST,
    ("not_operator", "Not missing attribute"): NO_VALUE,
    ("sub_expression", "Math (1)"): NO_CALCULATION,
    ("sub_expression", "Math (2)"): NO_CALCULATION,
}

Case = Mapping[str, Any]


def cases() -> dict[tuple[str, str], Case]:
    """Every scalar as the text that it is in the file: `TRUE`, `true` and `tRuE` are three cases."""
    yaml = YAML(typ="base", pure=True)
    found: dict[tuple[str, str], Case] = {}
    for file in sorted(CASES.glob("*.yaml")):
        for case in yaml.load(file.read_text())["tests"]:
            assert (file.stem, case["name"]) not in found
            found[file.stem, case["name"]] = case
    return found


def excluded(key: tuple[str, str]) -> str | None:
    return EXCLUDED.get(key) or EXCLUDED.get((key[0], ALL))


def setting(case: Case) -> tuple[Schema, Event]:
    """A schema and an event of it that have what the case needs."""
    event = {**case.get("event", {}), **case.get("eventOverrides", {})}
    attributes: list[Attribute] = [Number("spare", 0, 1)]
    for name, value in event.items():
        attributes.append(Enumeration(name, tuple(dict.fromkeys([value, "abc", "other"]))))
    if "missing" in case["expression"]:
        text = "LIKE" in case["expression"]
        attributes.append(Enumeration("missing", ("missing", "other")) if text else Number("missing", 0, 9))
    return Schema(tuple(attributes)), event


TCK = cases()
RUN = [key for key in TCK if excluded(key) is None]


def test_the_conformance_cases_are_there() -> None:
    assert len(TCK) == 170, f"expected the CloudEvents SQL cases in {CASES}"
    assert len(RUN) == 80


def test_every_listed_exclusion_is_a_case() -> None:
    files = {file for file, _ in TCK}
    for file, name in EXCLUDED:
        assert (file, name) in TCK or (name == ALL and file in files), (file, name)


@pytest.mark.parametrize("key", RUN, ids=lambda key: f"{key[0]}: {key[1]}")
def test_a_case_of_our_language_has_its_result(key: tuple[str, str]) -> None:
    case = TCK[key]
    schema, event = setting(case)
    if case.get("error") == "parse":
        with pytest.raises(FilterError):
            parse(case["expression"], schema)
    else:
        assert (
            matches(parse(case["expression"], schema), event)
            is {"true": True, "false": False}[case["result"]]
        )


@pytest.mark.parametrize("key", [key for key in TCK if excluded(key)], ids=lambda key: f"{key[0]}: {key[1]}")
def test_an_excluded_case_is_refused_by_the_parser(key: tuple[str, str]) -> None:
    schema, _ = setting(TCK[key])
    with pytest.raises(FilterError):
        parse(TCK[key]["expression"], schema)
