"""Words that stand in a grammatical order become expressions, if their types allow it.

One method a grammar alternative, named after it. Operands are words: an attribute, which has a type from
the schema, or a literal, which has its own. There are no casts: a number is compared with numbers, text
with text. Two literals are compared here and now and leave a constant.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from plerion.content.errors import quoted
from plerion.content.filter import (
    And,
    Between,
    Comparison,
    Constant,
    Expression,
    Leaf,
    Membership,
    Not,
    Operator,
    Or,
    Pattern,
)
from plerion.content.lex import MAX_DEPTH, Fault, Word
from plerion.content.like import matches_pattern
from plerion.content.schema import Enumeration
from plerion.content.semantics import compare

_MIRRORED: Final[dict[str, Operator]] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_TYPES: Final = {"NUMBER": "a number", "STRING": "text", "BOOLEAN": "a truth value"}


@dataclass(frozen=True, slots=True)
class Part:
    """An expression and how deeply AND, OR and NOT nest in it."""

    expression: Expression
    depth: int = 0


Children: TypeAlias = list[Any]  # words and parts, as the grammar orders them


class Builder:
    """Has no state, so one instance serves all parses at once."""

    def group(self, children: Children) -> Part:
        return cast(Part, children[1])

    def constant(self, children: Children) -> Part:
        return Part(Constant(children[0].value))

    def negation(self, children: Children) -> Part:
        word, part = children
        return _bounded(Part(Not(part.expression), part.depth + 1), word)

    def conjunction(self, children: Children) -> Part:
        return _joined(And, children)

    def disjunction(self, children: Children) -> Part:
        return _joined(Or, children)

    def comparison(self, children: Children) -> Part:
        left, sign, right = children
        operator = cast(Operator, sign.value)
        if left.attribute is not None and right.attribute is not None:
            fix = "compare each with a value; boxes in the event space cannot say how two attributes relate"
            raise Fault(left.start, "two attributes are compared with each other", fix)
        if right.attribute is not None:
            left, operator, right = right, _MIRRORED[operator], left
        _check_types(left, [right])
        if operator not in ("=", "!="):
            _check_ordered(left, sign)
        if left.attribute is None:
            return Part(Constant(compare(left.value, operator, right.value)))
        return Part(Comparison(left.value, operator, right.value))

    def between(self, children: Children) -> Part:
        subject, word, low, _, high = children
        _check_types(subject, [low, high])
        _check_ordered(subject, word)
        if subject.attribute is None:
            return Part(Constant(low.value <= subject.value <= high.value))
        return Part(Between(subject.value, low.value, high.value))

    def membership(self, children: Children) -> Part:
        subject, members = children[0], children[3]
        _check_types(subject, members)
        values = tuple(dict.fromkeys(member.value for member in members))
        if subject.attribute is None:
            return Part(Constant(subject.value in values))
        return Part(Membership(subject.value, values))

    def members(self, children: Children) -> list[Word]:
        return children[::2]

    def like(self, children: Children) -> Part:
        subject, word, pattern = children
        if _type(subject) != "STRING":
            raise Fault(word.start, f"LIKE needs text, and {_named(subject)}", "compare numbers with < and >")
        if subject.attribute is None:
            return Part(Constant(matches_pattern(subject.value, pattern.value)))
        return Part(Pattern(subject.value, pattern.value))

    def not_between(self, children: Children) -> Part:
        return _negated(self.between(_without_not(children)))

    def not_membership(self, children: Children) -> Part:
        return _negated(self.membership(_without_not(children)))

    def not_like(self, children: Children) -> Part:
        return _negated(self.like(_without_not(children)))


def _without_not(children: Children) -> Children:
    return children[:1] + children[2:]


def _negated(part: Part) -> Part:
    if isinstance(part.expression, Constant):
        return Part(Constant(not part.expression.value))
    return Part(Not(cast(Leaf, part.expression)), 1)


def _joined(kind: type[And] | type[Or], children: Children) -> Part:
    """The two sides as one And or Or; a side of the same kind gives its parts, so chains stay flat."""
    left, word, right = children
    parts: list[Expression] = []
    depth = 0
    for side in (left, right):
        flat = isinstance(side.expression, kind)
        parts.extend(side.expression.parts if flat else [side.expression])
        depth = max(depth, side.depth - flat)
    return _bounded(Part(kind(tuple(parts)), depth + 1), word)


def _bounded(part: Part, word: Word) -> Part:
    if part.depth > MAX_DEPTH:
        what = f"AND, OR and NOT nest deeper than {MAX_DEPTH}"
        raise Fault(word.start, what, "group terms of the same kind with parentheses, or split the filter")
    return part


def _type(operand: Word) -> str:
    if operand.attribute is None:
        return operand.type
    return "STRING" if isinstance(operand.attribute, Enumeration) else "NUMBER"


def _named(operand: Word) -> str:
    if operand.attribute is None:
        return f"this is {_TYPES[operand.type]}"
    return f"{quoted(operand.attribute.name)} is {_TYPES[_type(operand)]}"


def _check_types(subject: Word, values: Sequence[Word]) -> None:
    for value in values:
        if value.attribute is not None:
            fix = "name an attribute only on one side, and values on the other"
            raise Fault(value.start, "an attribute stands where a value should", fix)
        if value.type != _type(subject):
            advice = {"NUMBER": "write a number without quotes", "STRING": "write the value in quotes"}
            fix = advice.get(_type(subject), "compare it with TRUE or FALSE")
            raise Fault(value.start, f"{_named(subject)} and is compared with {_TYPES[value.type]}", fix)


def _check_ordered(subject: Word, sign: Word) -> None:
    if _type(subject) != "NUMBER":
        what = f"{sign.value} needs an order, and {_named(subject)}"
        raise Fault(sign.start, what, "list the values that you want with IN, or use LIKE")
