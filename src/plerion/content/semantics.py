"""What a filter means. This is the definition; everything fast is tested against it.

The logic is SQL's, with three answers. A comparison with a missing attribute is unknown, NOT of unknown is
unknown, AND is the least and OR the greatest of its parts in the order false < unknown < true. Only true
matches. So a missing attribute satisfies neither a comparison nor its opposite, yet `wind > 9 OR rain > 2`
matches an event that has rain and no wind.

Numbers are IEEE doubles on both sides, so a Python integer beyond 2**53 is compared as the double next to
it.
"""

import math

from plerion.content.event import Event, point
from plerion.content.filter import (
    And,
    Between,
    Comparison,
    Constant,
    Expression,
    Filter,
    Leaf,
    Membership,
    Not,
    Operator,
    Or,
    Pattern,
)
from plerion.content.like import matches_pattern


def matches(filter: Filter, event: Event) -> bool:
    """Whether the filter selects the event. An event that the schema does not allow raises EventError."""
    point(filter.schema, event)
    values = tuple(_value(event.get(name)) for name in filter.schema.names)
    return truth(filter.expression, values) is True


def truth(expression: Expression, values: tuple[float | str | None, ...]) -> bool | None:
    """True, false, or None for unknown, given one value (None when missing) an attribute."""
    match expression:
        case Constant(value):
            return value
        case Not(part):
            inner = truth(part, values)
            return None if inner is None else not inner
        case And(parts):
            answers = [truth(part, values) for part in parts]
            return False if False in answers else None if None in answers else True
        case Or(parts):
            answers = [truth(part, values) for part in parts]
            return True if True in answers else None if None in answers else False
    held = values[expression.attribute]
    return None if held is None else _holds(expression, held)


def _holds(leaf: Leaf, value: float | str) -> bool:
    match leaf:
        case Comparison(_, operator, other):
            return compare(value, operator, other)
        case Between(_, low, high):
            return compare(value, ">=", low) and compare(value, "<=", high)
        case Membership(_, others):
            return any(compare(value, "=", other) for other in others)
        case Pattern(_, pattern):
            return matches_pattern(str(value), pattern)


def compare(left: float | str, operator: Operator, right: float | str) -> bool:
    """The relation between two numbers, or the equality of two texts; texts have no order."""
    match operator:
        case "=":
            return left == right
        case "!=":
            return left != right
    if isinstance(left, str) or isinstance(right, str):
        raise TypeError("texts have no order")
    match operator:
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case ">=":
            return left >= right


def _value(raw: float | int | str | None) -> float | str | None:
    if raw is None or isinstance(raw, str):
        return raw
    return None if math.isnan(raw) else float(raw)
