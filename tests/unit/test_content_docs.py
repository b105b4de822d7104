"""The examples in docs/filter-language.md do what the page says."""

import json
import re
from pathlib import Path

import pytest

from plerion.content import box, lex
from plerion.content.filter import FilterError
from plerion.content.parse import parse
from plerion.content.schema import Schema, read_schema
from plerion.content.semantics import matches

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "filter-language.md").read_text()


def lines(language: str) -> list[str]:
    """The lines of all fenced blocks of a language."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Schema:
    file = tmp_path_factory.mktemp("docs") / "schema.yaml"
    file.write_text("\n".join(lines("yaml")))
    return read_schema(file)


@pytest.mark.parametrize("text", lines("filter"))
def test_an_example_is_a_filter_and_so_is_its_canonical_text(text: str, schema: Schema) -> None:
    filter = parse(text, schema)
    assert parse(str(filter), schema).expression == filter.expression
    assert box.boxes(filter)


@pytest.mark.parametrize("text", lines("refused"))
def test_an_example_of_a_mistake_is_refused(text: str, schema: Schema) -> None:
    with pytest.raises(FilterError):
        parse(text, schema)


@pytest.mark.parametrize("line", lines("matches"))
def test_an_example_of_matching_matches_as_shown(line: str, schema: Schema) -> None:
    answer, text, event = (part.strip() for part in line.split("|"))
    assert matches(parse(text, schema), json.loads(event)) is {"yes": True, "no": False}[answer]


def test_the_page_states_the_limits_that_hold() -> None:
    depth = f"{lex.MAX_PARENTHESES:,}; {lex.MAX_DEPTH}; {lex.MAX_DEPTH}"
    for limit in (
        f"| characters in a filter | {lex.MAX_TEXT:,} |",
        f"commas) | {lex.MAX_WORDS:,} |",
        f"within each other | {depth} |",
        f"of a quoted text | {lex.MAX_NUMBER}; {lex.MAX_STRING:,} |",
        f"splits into | {box.MAX_BOXES:,} |",
    ):
        assert limit in PAGE


def test_there_are_examples() -> None:
    assert all(len(lines(language)) > 5 for language in ("filter", "refused", "matches", "yaml"))
