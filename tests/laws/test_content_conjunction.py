"""What is read without the grammar is what the grammar reads, to the last part; everything else is left to it."""

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from plerion.content.conjunction import MAX_NUMBER, MAX_TEXT, conjunction
from plerion.content.filter import And, Between, Comparison, Expression
from plerion.content.lex import Fault
from plerion.content.parse import expression
from plerion.content.schema import Enumeration, Number, Schema

SCHEMA = Schema(
    (
        Number("t", -50, 60),
        Number("n.a", 0, 10**6, integer=True),
        Number("_x9", 0, 1),
        Number("and", 0, 1),
        Enumeration("city", ("oslo", "rome")),
    )
)

numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-100, 10**7).map(str),
    st.sampled_from(["+5", ".5", "5.", "-0", "1e3", "1E-3", "1e999", "0" * MAX_NUMBER + "1", "05", "1_0"]),
)
names = st.sampled_from(["t", "n.a", "_x9", "and", "city", "T", "`t`", "u", "t1"])
space = st.sampled_from([" ", "  ", "\t", "\n", "\r\n", " ", " ", "", "\u00a0"])
signs = st.sampled_from(["<", "<=", ">", ">=", "=", "!=", "<>", "==", "= =", "=<"])
ands = st.sampled_from([" AND ", " and ", " And\n", " AND\t", "AND ", " AND", " OR ", " & "])
between = st.sampled_from(["BETWEEN", "between", "Between", "NOT BETWEEN", "BETWEENS"])

compared = st.tuples(names, space, signs, space, numbers).map("".join)
ranged = st.tuples(names, space, between, space, numbers, ands, numbers).map("".join)
odd = st.sampled_from(["TRUE", "(t > 1)", "NOT t > 1", "city = 'oslo'", "t IN (1, 2)", "5 < t", "t", ""])
terms = st.one_of(compared, ranged, compared, ranged, odd)
texts = st.tuples(space, st.lists(st.tuples(terms, ands), max_size=5), terms, space).map(
    lambda drawn: drawn[0] + "".join(term + joint for term, joint in drawn[1]) + drawn[2] + drawn[3]
)


def by_the_grammar(text: str) -> Any:
    try:
        return expression(text, SCHEMA)
    except Fault:
        return None


def agrees(text: str, found: Expression | None) -> bool:
    return found is None or found == by_the_grammar(text)


@given(st.one_of(texts, st.text(alphabet="tn.a<>=!0159eE+-ANDBETWEEN \n", max_size=30)))
@example("t > 1 AND")
@example("t > 1 AND n.a BETWEEN 1 AND 2 AND t<3")
@example("t BETWEEN 1 AND 2 AND 3")
@example("and > 1")
@example("t > 1 t > 2")
@example("")
def test_what_is_read_at_once_is_what_the_grammar_reads(text: str) -> None:
    assert agrees(text, conjunction(text, SCHEMA))


plain = st.one_of(
    st.tuples(st.sampled_from(["t", "n.a", "_x9"]), st.sampled_from(["<", "<=", ">", ">=", "=", "!="])).map(
        " ".join
    ),
    st.sampled_from(["t BETWEEN -3 AND", "n.a between 0 and"]),
)


@given(st.lists(st.tuples(plain, st.integers(-9, 99).map(str)).map(" ".join), min_size=1, max_size=20))
def test_ranges_and_comparisons_joined_by_and_take_no_grammar(parts: list[str]) -> None:
    text = " AND ".join(parts)
    assert conjunction(text, SCHEMA) == by_the_grammar(text) is not None


def test_the_comparison_with_the_grammar_can_fail() -> None:
    assert not agrees("t > 1", Comparison(0, ">=", 1.0))
    assert not agrees("t > 1 OR t < 0", And((Comparison(0, ">", 1.0), Comparison(0, "<", 0.0))))
    assert not agrees("t BETWEEN 1 AND 2", Between(0, 2.0, 1.0))


def test_a_long_text_is_left_to_the_grammar() -> None:
    assert conjunction(" AND ".join(["t > 1"] * (MAX_TEXT // 10)), SCHEMA) is not None
    assert conjunction(" AND ".join(["t > 1"] * MAX_TEXT), SCHEMA) is None
