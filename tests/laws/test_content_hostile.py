"""Whatever a stranger sends as a filter is handled or refused, quickly and only with a FilterError.

The promise is 50 ms on the machine that this was written on. The tests allow five times as much, so that they
fail on a change of order and not on a busy machine.
"""

import tracemalloc
from time import thread_time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from plerion.content.box import boxes
from plerion.content.filter import FilterError
from plerion.content.lex import MAX_DEPTH, MAX_PARENTHESES, MAX_WORDS
from plerion.content.parse import parse
from plerion.content.schema import MAX_VALUES, Enumeration, Number, Schema

ALLOWED_SECONDS = 0.25
ALLOWED_BYTES = 32 << 20

SCHEMA = Schema(
    (
        Number("t", -50, 60),
        Number("n", 0, 10**6, integer=True),
        Enumeration("city", ("oslo", "bergen", "rome")),
        Enumeration("many", tuple(f"value {at:>06} of very many" for at in range(MAX_VALUES))),
        *(Number(f"x{at}", 0, 100) for at in range(40)),
    )
)

REFUSED = {
    "nothing": "",
    "white space": " " * 60_000,
    "10,000 open parentheses": "(" * 10_000,
    "10,000 nested parentheses": "(" * 10_000 + "t > 1" + ")" * 10_000,
    "as many shallow parentheses": "(t > 1)" + " OR (t > 1)" * 6_000,
    "10,000 NOTs": "NOT " * 10_000 + "t > 1",
    "NOTs within the word limit": "NOT " * (MAX_WORDS - 3) + "t > 1",
    "100,000 terms": " AND ".join(["t > 1"] * 100_000),
    "terms up to the text limit": " OR ".join(["t>1"] * 9_000),
    "AND and OR in turn": "t > 1" + " AND t > 1 OR t > 2" * 150,
    "a text of 1 MB": f"city = '{'x' * 1_000_000}'",
    "a text within the text limit": f"city = '{'x' * 60_000}'",
    "a text of escapes": "city = '" + "\\'" * 30_000 + "'",
    "a number of 1 MB": f"t > {'1' * 1_000_000}",
    "a number within the text limit": f"t > {'1' * 60_000}",
    "10 MB of text": "t > 1 AND " * 1_000_000,
    "a name of 60,000 letters": "t" * 60_000 + " > 1",
    "NUL": "t > 1\0",
    "an escape sequence": "t > \x1b[31m1",
    "a C1 control": "t > 1\x9b",
    "a surrogate": "t > 1 AND city = '\ud800'",
    "a text that never closes": "city = '" + "x" * 60_000,
    "a text that ends in a backslash": "city = 'oslo\\'",
    "a name that never closes": "`" + "x" * 60_000,
    "overflow": "t > 1e999",
    "not a number": "t > nan",
    "dots": "t > 1.2.3",
    "Unicode digits": "t > ١٢",
    "full-width letters": "ｔ > 1",
    "a no-break space": "t\u00a0> 1",
    "only signs": "<>=!" * 10_000,
    "only commas": "," * 30_000,
    "an endless list": "n IN (" + ",".join(["1"] * 30_000) + ")",
    "an empty list": "n IN ()",
    "more boxes than there may be": " AND ".join(f"x{at} != 5" for at in range(40)),
    "a conjunction of disjunctions": " AND ".join(f"(x{at} > 5 OR x{at + 1} < 3)" for at in range(0, 40, 2)),
    "lists that multiply": " AND ".join(
        f"x{at} IN ({', '.join(map(str, range(0, 80, 2)))})" for at in range(10)
    ),
    "boxes that overlap": " OR ".join(
        f"(x{at % 7} > {at % 83} AND x{at % 11} < {at % 71} AND x{at % 13} != {at})" for at in range(90)
    ),
    "a pattern that picks very many values": "many LIKE '%9%'",
    "many patterns over many values": " OR ".join(["many LIKE '%_9_%'"] * 300),
    "many cheap patterns over many values": " AND ".join(f"many LIKE '%{at}%{at}%'" for at in range(300)),
}

HANDLED = {
    "as many words as there may be": "n IN (" + ", ".join(map(str, range(0, MAX_WORDS - 4, 2))) + ")",
    "as deep as there may be": "(" * MAX_DEPTH + "t > 1" + ")" * MAX_DEPTH,
    "as many parentheses": " OR ".join(["((t>1))"] * (MAX_PARENTHESES // 4)),
    "a pattern of wildcards": f"city LIKE '{'%' * 1_000}'",
    "a pattern that would backtrack": f"'{'a' * 1_000}' LIKE '{'%a' * 500}b'",
    "a pattern with single wildcards": f"'{'a' * 1_000}' LIKE '{'%_a' * 300}b'",
    "a pattern over many values": "many LIKE '%value 01%'",
    "a disjunction on one attribute": " OR ".join(f"n = {at * 3}" for at in range(370)),
    "disjoint conjunctions": " OR ".join(f"(n = {at} AND t < 5)" for at in range(180)),
}


def outcome(text: str) -> FilterError | None:
    """Why the text is refused, or None."""
    try:
        boxes(parse(text, SCHEMA))
    except FilterError as error:
        return error
    return None


@pytest.fixture(scope="module", autouse=True)
def _tables_are_built() -> None:
    parse("TRUE", SCHEMA)


@pytest.mark.parametrize("name", [*REFUSED, *HANDLED])
def test_any_filter_is_answered_within_50_milliseconds(name: str) -> None:
    text = (REFUSED | HANDLED)[name]
    begin = thread_time()
    error = outcome(text)
    took = thread_time() - begin
    assert (error is not None) == (name in REFUSED), error
    assert took < ALLOWED_SECONDS


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_short_and_safe_to_print_and_says_where_and_what_to_do(name: str) -> None:
    error = outcome(REFUSED[name])
    assert error is not None
    assert len(str(error)) < 600
    assert str(error).replace("\n", "").isprintable()
    assert "\n" not in error.summary
    assert error.fix
    lines = REFUSED[name].split("\n")
    assert 1 <= error.column <= len(lines[error.line - 1]) + 1


@pytest.mark.parametrize(
    "name", ["10,000 nested parentheses", "terms up to the text limit", "boxes that overlap"]
)
def test_a_refusal_needs_little_memory(name: str) -> None:
    tracemalloc.start()
    try:
        outcome(REFUSED[name])
        assert tracemalloc.get_traced_memory()[1] < ALLOWED_BYTES
    finally:
        tracemalloc.stop()


# fmt: off
WORDS = (
    "t", "n", "city", "x1", "many", "`t`", "`city`", "``", "`", "EXISTS", "XOR", "ABS(", "é", "🦊",
    "AND", "and", "OR", "NOT", "not", "BETWEEN", "IN", "LIKE", "TRUE", "FALSE", "(", ")", ",",
    "=", "!=", "<>", "<", "<=", ">", ">=", "==", "%", "_", ";", "/*", "--", "\n", "\t", "\0", "\ud800",
    "1", "-2.5", "+.5e3", "1e", "1.", ".", "-", "'oslo'", "'o%'", '"rome"', "'", '"', "\\", "\\'",
)
# fmt: on


@settings(max_examples=300)
@given(st.lists(st.sampled_from(WORDS), max_size=25), st.sampled_from(["", " "]))
@example(["t", ">", "1", "AND", "("], " ")
def test_any_sequence_of_words_is_a_filter_or_a_filter_error(some: list[str], between: str) -> None:
    outcome(between.join(some))


@settings(max_examples=300)
@given(st.text(st.characters(exclude_categories=()), max_size=60))
def test_any_text_is_a_filter_or_a_filter_error(text: str) -> None:
    error = outcome(text)
    assert error is None or str(error).replace("\n", "").isprintable()


@settings(max_examples=200)
@given(st.data())
def test_any_small_change_to_a_filter_gives_a_filter_or_a_filter_error(data: st.DataObject) -> None:
    text = "t > 1.5 AND (city NOT IN ('oslo', \"rome\") OR n BETWEEN 3 AND 1e3) AND NOT city LIKE 'b\\%_%'"
    at = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(at, min(at + 8, len(text))))
    outcome(text[:at] + data.draw(st.text(max_size=3)) + text[end:])
