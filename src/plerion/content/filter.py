"""A filter is its text, the expression that the text means, and the schema that gives the names meaning.

Expressions are values. An attribute is its position in the schema; `And` and `Or` hold any number of parts,
so a long chain is wide and not deep; the negated forms (`NOT IN`, `NOT BETWEEN`, `NOT LIKE`) are `Not`
around the plain one. `canonical` writes an expression so that no reader needs the precedence rules, and
parsing that text gives the same expression again.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from plerion.content.errors import FilterError
from plerion.content.schema import Schema

__all__ = [
    "And",
    "Between",
    "Comparison",
    "Constant",
    "Expression",
    "Filter",
    "FilterError",
    "Membership",
    "Not",
    "Or",
    "Pattern",
    "canonical",
]

Operator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">="]

KEYWORDS: Final = frozenset({"AND", "OR", "NOT", "BETWEEN", "IN", "LIKE", "TRUE", "FALSE"})
_BARE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


@dataclass(frozen=True, slots=True)
class Comparison:
    """The attribute stands in this relation to the value."""

    attribute: int
    operator: Operator
    value: float | str


@dataclass(frozen=True, slots=True)
class Between:
    """`low <= attribute <= high`; false for every value when low is above high."""

    attribute: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Membership:
    """The attribute equals one of the values."""

    attribute: int
    values: tuple[float | str, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """The attribute's text is an instance of the LIKE pattern."""

    attribute: int
    pattern: str


@dataclass(frozen=True, slots=True)
class Constant:
    """True or false for every event, missing values or not."""

    value: bool


@dataclass(frozen=True, slots=True)
class Not:
    """True where the part is false; unknown where the part is unknown."""

    part: "Expression"


@dataclass(frozen=True, slots=True)
class And:
    """All parts hold."""

    parts: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one part holds."""

    parts: tuple["Expression", ...]


Leaf: TypeAlias = Comparison | Between | Membership | Pattern
Expression: TypeAlias = Leaf | Constant | Not | And | Or


@dataclass(frozen=True, slots=True)
class Filter:
    """What a subscriber asked for: `text` as it was written, `expression` as it was understood."""

    text: str
    expression: Expression
    schema: Schema

    def __str__(self) -> str:
        return canonical(self.expression, self.schema)


def canonical(expression: Expression, schema: Schema) -> str:
    """Text with a parenthesis wherever AND and OR meet; `parse` of it gives an equal expression."""
    match expression:
        case Constant(value):
            return "TRUE" if value else "FALSE"
        case Not(part):
            return f"NOT {_grouped(part, schema)}"
        case And(parts):
            return " AND ".join(_grouped(part, schema) for part in parts)
        case Or(parts):
            return " OR ".join(_grouped(part, schema) for part in parts)
        case Comparison(attribute, operator, value):
            return f"{written_name(schema.names[attribute])} {operator} {_literal(value)}"
        case Between(attribute, low, high):
            return f"{written_name(schema.names[attribute])} BETWEEN {_literal(low)} AND {_literal(high)}"
        case Membership(attribute, values):
            listed = ", ".join(_literal(value) for value in values)
            return f"{written_name(schema.names[attribute])} IN ({listed})"
        case Pattern(attribute, pattern):
            return f"{written_name(schema.names[attribute])} LIKE {_literal(pattern)}"


def _grouped(expression: Expression, schema: Schema) -> str:
    text = canonical(expression, schema)
    return f"({text})" if isinstance(expression, And | Or) else text


def written_name(name: str) -> str:
    """The attribute name as it must stand in a filter: in backticks when it is not a plain word."""
    if _BARE_NAME.fullmatch(name) and name.upper() not in KEYWORDS:
        return name
    return "`" + name.replace("`", "``") + "`"


def _literal(value: float | str) -> str:
    if isinstance(value, str):
        return min((_delimited(value, quote) for quote in "'\""), key=len)
    return repr(value).removesuffix(".0")


def _delimited(text: str, quote: str) -> str:
    # A backslash is doubled only where it would otherwise take the next character with it.
    text = re.sub(rf"\\(?=[\\{quote}]|\Z)", r"\\\\", text)
    return quote + text.replace(quote, "\\" + quote) + quote
