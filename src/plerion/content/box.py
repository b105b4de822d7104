"""A filter as disjoint boxes: the form in which the rest of the system sees it.

Under SQL's three-valued logic an expression splits the space in three: where it is true, where it is false
and where it is unknown. NOT swaps the first two, so it can be pushed down to the leaves, and there both are
intervals within [start, end): neither holds where the attribute is MISSING, at -inf. From then on only
'true' counts: AND is intersection, OR is union. So `x < 5 OR x >= 5` is [start, end) and not everything.

Between leaf and box stands the *product*: for some attributes a set of intervals each, the others free. A
product is where most filters stay: `x != 3 AND city IN ('oslo', 'rome')` is one product and becomes four
boxes only at the end. A region is a list of disjoint products. OR keeps them disjoint by adding only what
is not there yet: B \\ A has one product for each attribute that A constrains. Where A constrains an
attribute that B leaves free, what remains of B includes MISSING, and it may come out as the interval [-inf,
start), which only missing values are in.

Disjoint boxes can be exponentially many: ten attributes that each avoid one value make 1,024. Boxes and the
work of finding them are therefore limited, and a filter beyond that is refused, not approximated.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product as combinations
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plerion.content.errors import FilterError
from plerion.content.filter import And, Constant, Expression, Filter, Leaf, Not, Or, Pattern
from plerion.content.interval import Interval, Intervals, difference, intersection, union, where
from plerion.content.like import work
from plerion.content.schema import Enumeration, Schema

MAX_BOXES: Final = 1_024
MAX_WORK: Final = 12_000  # in steps of about a microsecond

Product: TypeAlias = Mapping[int, Intervals]
Region: TypeAlias = list[Product]

EVERYWHERE: Final[Product] = {}


@dataclass(frozen=True, slots=True)
class Box:
    """An axis-parallel region, `low <= position < high` on every attribute of the schema in its order.

    `(-inf, +inf)` leaves an attribute free, missing values included; any other interval with a low of
    `start` or more holds values only.
    """

    lows: tuple[float, ...]
    highs: tuple[float, ...]

    def contains(self, point: Sequence[float]) -> bool:
        return all(
            low <= position < high for low, position, high in zip(self.lows, point, self.highs, strict=True)
        )


def boxes(filter: Filter) -> tuple[Box, ...]:
    """Disjoint, non-empty boxes whose union is exactly the filter; FilterError when there are too many."""
    region = _Splitter(filter.schema).true_region(filter.expression)
    if sum(math.prod(map(len, part.values())) for part in region) > MAX_BOXES:
        raise _too_many()
    return tuple(box for part in region for box in _expanded(part, len(filter.schema.attributes)))


def bounds(boxes: Iterable[Box], schema: Schema) -> NDArray[np.float64]:
    """The boxes as one array of shape (boxes, attributes, 2): low and high."""
    sides = [(box.lows, box.highs) for box in boxes]
    array = np.array(sides, dtype=np.float64).reshape(len(sides), 2, len(schema.attributes))
    return np.ascontiguousarray(array.transpose(0, 2, 1))


def _expanded(part: Product, width: int) -> Iterable[Box]:
    for chosen in combinations(*part.values()):
        lows, highs = [-math.inf] * width, [math.inf] * width
        for attribute, (low, high) in zip(part, chosen, strict=True):
            lows[attribute], highs[attribute] = low, high
        yield Box(tuple(lows), tuple(highs))


class _Splitter:
    """Finds the region of one filter and keeps account of the work."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.work = 0.0

    def true_region(self, expression: Expression, negated: bool = False) -> Region:
        """Where the expression, or its negation, is true."""
        match expression:
            case Constant(value):
                return [] if value == negated else [EVERYWHERE]
            case Not(part):
                return self.true_region(part, not negated)
            case And(parts) | Or(parts):
                regions = [self.true_region(part, negated) for part in parts]
                return self._all(regions) if isinstance(expression, And) != negated else self._any(regions)
        attribute = self.schema.attributes[expression.attribute]
        self._spend(_leaf_work(expression, attribute.values if isinstance(attribute, Enumeration) else ()))
        held = where(expression, attribute)
        if negated:
            held = difference(((attribute.start, attribute.end),), held)
        return [{expression.attribute: held}] if held else []

    def _all(self, regions: list[Region]) -> Region:
        """Where all regions are. Those of one product come first: they only make the others smaller."""
        result: Region = [EVERYWHERE]
        for region in sorted(regions, key=len):
            met = (self._meet(one, other) for one in result for other in region)
            result = _limited(product for product in met if product is not None)
        return result

    def _any(self, regions: list[Region]) -> Region:
        """Where at least one region is, still disjoint. Few constraints come first: they cut least."""
        sets: dict[int, list[Interval]] = {}
        rest: Region = []
        for product in (product for region in regions for product in region):
            if len(product) == 1:
                ((attribute, held),) = product.items()
                sets.setdefault(attribute, []).extend(held)
            else:
                rest.append(product)
        self._spend(sum(map(len, sets.values())))
        rest += [{attribute: union(held)} for attribute, held in sets.items()]
        result: Region = []
        for product in sorted(map(self._without_full, rest), key=len):
            result = _limited([*result, *self._rest_of(product, result)])
        return result

    def _rest_of(self, product: Product, taken: Region) -> Region:
        pieces = [product]
        for other in taken:
            pieces = _limited(piece for part in pieces for piece in self._minus(part, other))
        return pieces

    def _meet(self, one: Product, other: Product) -> Product | None:
        if not one or not other:
            return one or other
        met = dict(one)
        for attribute, held in other.items():
            if attribute in met:
                self._spend(0.5 + 0.2 * (len(held) + len(met[attribute])))
                met[attribute] = intersection(met[attribute], held)
                if not met[attribute]:
                    return None
            else:
                met[attribute] = held
        self._spend(0.5 + 0.05 * len(met))
        return met

    def _minus(self, one: Product, other: Product) -> Region:
        """What only the first has: for each attribute, inside on those before it and outside on it."""
        if self._apart(one, other):
            return [one]
        pieces: Region = []
        inside = dict(one)
        for attribute, taken in other.items():
            held = inside.get(attribute) or self._full(attribute)
            self._spend(2 + 0.4 * (len(held) + len(taken)) + 0.05 * len(inside))
            outside = difference(held, taken)
            if outside:
                pieces.append({**inside, attribute: outside})
            inside[attribute] = intersection(held, taken)
        return pieces

    def _apart(self, one: Product, other: Product) -> bool:
        steps = 0.5
        for attribute, taken in other.items():
            held = one.get(attribute)
            if held is None:
                continue
            if held[0][0] >= taken[-1][1] or taken[0][0] >= held[-1][1]:
                break
            if len(held) > 1 or len(taken) > 1:
                steps += 0.3 * (len(held) + len(taken))
                if not intersection(held, taken):
                    break
        else:
            self._spend(steps)
            return False
        self._spend(steps)
        return True

    def _full(self, attribute: int) -> Intervals:
        return ((-math.inf, self.schema.ends[attribute]),)

    def _without_full(self, product: Product) -> Product:
        return {attribute: held for attribute, held in product.items() if held != self._full(attribute)}

    def _spend(self, work: float) -> None:
        self.work += work
        if self.work > MAX_WORK:
            fix = "split it into several subscriptions, or list values instead of a LIKE over very many"
            raise FilterError("the filter takes too long to split into boxes", fix)


def _leaf_work(leaf: Leaf, values: tuple[str, ...]) -> float:
    return work(leaf.pattern, values) if isinstance(leaf, Pattern) else 1 + len(getattr(leaf, "values", ()))


def _limited(products: Iterable[Product]) -> Region:
    region: Region = []
    for product in products:
        region.append(product)
        if len(region) > MAX_BOXES:
            raise _too_many()
    return region


def _too_many() -> FilterError:
    fix = "split it into several subscriptions, or join values that are neighbours into ranges"
    return FilterError(f"the filter splits into more than {MAX_BOXES:,} boxes", fix)
