"""`parse` turns filter text into a Filter, or refuses it with the place, the reason and the way out.

The grammar below is the whole language; docs/filter-language.md explains it to users. Precedence is that of
CloudEvents SQL: NOT binds tightest and AND and OR are equals that group from the left. lark builds the LALR
tables once, at the first call, and calls one method of `Builder` a reduction: no tree is built or walked,
and nothing recurses over what a stranger wrote.

What bounds the cost: `lex.words` limits the words and parentheses that get here, and `Builder` limits how
deeply expressions nest, because `a OR b AND c OR …` nests to the left without a single parenthesis.
"""

from collections.abc import Set
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from plerion.content.conjunction import conjunction
from plerion.content.errors import FilterError, quoted
from plerion.content.filter import Filter
from plerion.content.lex import Fault, Word, located, words
from plerion.content.schema import Schema

if TYPE_CHECKING:
    from lark import Lark

__all__ = ["FilterError", "parse"]

GRAMMAR: Final = """
?start: expression
?expression: unary
    | expression AND unary                             -> conjunction
    | expression OR unary                              -> disjunction
?unary: atom
    | NOT unary                                        -> negation
?atom: LPAR expression RPAR                            -> group
    | BOOLEAN                                          -> constant
    | operand COMPARE operand                          -> comparison
    | operand BETWEEN operand AND operand              -> between
    | operand NOT BETWEEN operand AND operand          -> not_between
    | operand IN LPAR members RPAR                     -> membership
    | operand NOT IN LPAR members RPAR                 -> not_membership
    | operand LIKE STRING                              -> like
    | operand NOT LIKE STRING                          -> not_like
members: operand (COMMA operand)*
?operand: NAME | NUMBER | STRING | BOOLEAN
%declare AND OR NOT BETWEEN IN LIKE LPAR RPAR COMMA COMPARE NAME NUMBER STRING BOOLEAN
"""


def parse(text: str, schema: Schema) -> Filter:
    """The filter that the text means under this schema; FilterError if it means none or is beyond a limit."""
    known = conjunction(text, schema)
    if known is not None:
        return Filter(text, known, schema)
    try:
        return Filter(text, expression(text, schema), schema)
    except Fault as fault:
        raise located(text, fault) from None


def expression(text: str, schema: Schema) -> Any:
    """The expression, read by the grammar; Fault if there is none."""
    from lark.exceptions import UnexpectedToken  # noqa: PLC0415 - lark is slow to import

    parser: Any = _tables().parse_interactive()
    end = Word("$END", "", len(text), len(text))
    for word in [*words(text, schema), end]:
        try:
            part = parser.feed_token(word)  # looks at nothing but the type of a word
        except UnexpectedToken:
            expected = _expectations(parser.accepts())
            found = "the filter ends here" if word is end else f"found {quoted(text[word.start : word.end])}"
            raise Fault(word.start, found, f"expected {_listed(expected)}", expected) from None
    return part.expression


@cache
def _tables() -> "Lark":
    from lark import Lark  # noqa: PLC0415 - lark is slow to import
    from lark.lexer import Lexer  # noqa: PLC0415 - as above

    from plerion.content.build import Builder  # noqa: PLC0415 - as above

    class Unused(Lexer):
        """Words are fed one by one; lark only asks that a lexer exists."""

        def __init__(self, _conf: object) -> None: ...

        def lex(self, _lexer_state: object, _parser_state: object) -> Any:
            return iter(())

    return Lark(GRAMMAR, parser="lalr", lexer=Unused, transformer=Builder())


_SPOKEN: Final = {
    "COMPARE": "a comparison (= != < <= > >=)",
    "BETWEEN": "BETWEEN",
    "IN": "IN",
    "LIKE": "LIKE",
    "STRING": "text in quotes",
    "LPAR": "'('",
    "COMMA": "','",
    "AND": "AND",
    "OR": "OR",
    "RPAR": "')'",
    "$END": "the end of the filter",
}
_OPERANDS: Final = {"NAME", "NUMBER", "STRING", "BOOLEAN"}


def _expectations(accepted: Set[str]) -> tuple[str, ...]:
    """What could have stood there, in words that a user of the language knows."""
    if {"NAME", "LPAR"} <= accepted:
        return ("a condition such as x > 5",)
    if "NAME" in accepted:
        return ("a number or text in quotes",)
    return tuple(spoken for kind, spoken in _SPOKEN.items() if kind in accepted)


def _listed(expected: tuple[str, ...]) -> str:
    *most, last = expected
    return f"{', '.join(most)} or {last}" if most else last
