"""Cells of a file as positions on the schema's axes, in Spark's own expressions: nothing is refused, all is counted.

A log of millions of events has wrong cells, and one of them must not stop the night's job. So where `content.read`
refuses a file, a value here moves to the nearest one that its attribute can have and counts as *clamped*; a text that
says no value is missing and counts as *unknown*. On a file that `content.read` accepts both agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own documents use
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    NullType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from plerion.content.errors import InputError
from plerion.content.schema import Attribute, Enumeration, Number
from plerion.content.table import ABSENT

_LISTED = 256  # values that are looked for one after the other; more are joined


@dataclass(frozen=True, slots=True)
class Axis:
    """An attribute's cells: the value before clamping, null where there is none, and whether a text was no value."""

    attribute: Attribute
    value: Column
    unknown: Column

    @property
    def last(self) -> float:
        """The greatest position under the end of the axis."""
        attribute = self.attribute
        return attribute.high if isinstance(attribute, Number) else attribute.end - 1

    @property
    def position(self) -> Column:
        """The nearest position that a value of the attribute can have."""
        attribute = self.attribute
        whole = isinstance(attribute, Enumeration) or attribute.integer
        value = F.rint(self.value) if whole else self.value
        within = F.least(F.greatest(value, F.lit(attribute.start)), F.lit(self.last))
        return F.when(value.isNotNull(), within + F.lit(0.0))  # -0.0 and 0.0 are one position

    @property
    def clamped(self) -> Column:
        return self.value != self.position


def column(name: str) -> Column:
    """The column of exactly this name, whatever is in it."""
    return F.col(f"`{name.replace('`', '``')}`")


def absent(attribute: Attribute) -> Axis:
    """No column: missing in every event."""
    return Axis(attribute, F.lit(None).cast("double"), F.lit(False))


def number(attribute: Number, kind: DataType) -> Axis:
    cell = column(attribute.name)
    if isinstance(kind, StringType):
        value = cell.try_cast("double")
        return Axis(attribute, _no_nan(value), _says_something(cell) & value.isNull())
    if not isinstance(kind, NumericType | NullType):
        fix = "store numbers in this column"
        raise InputError(f"holds {kind.simpleString()}", fix, None, None, attribute.name)
    return Axis(attribute, _no_nan(cell.cast("double")), F.lit(False))


def enumerated(rows: DataFrame, attribute: Enumeration, kind: DataType) -> tuple[DataFrame, Axis]:
    """The rows, with a column more when there are so many values that they are joined, and the axis of their ranks."""
    if not isinstance(kind, StringType | NumericType | BooleanType | NullType):
        fix = "store text in this column"
        raise InputError(f"holds {kind.simpleString()}", fix, None, None, attribute.name)
    cell = column(attribute.name).cast("string")
    if len(attribute.values) <= _LISTED:
        place = F.array_position(F.lit(list(attribute.values)), cell)
        rank = F.when(place > 0, place - 1)
    else:
        text, found = f"value of {attribute.name}", f"rank of {attribute.name}"
        ranks = rows.sparkSession.createDataFrame(
            pa.table({text: attribute.values, found: range(len(attribute.values))})
        )
        rows = rows.join(F.broadcast(ranks), cell == column(text), "left").drop(text)
        rank = column(found)
    return rows, Axis(attribute, rank.cast("double"), _says_something(cell) & rank.isNull())


def seconds(name: str, kind: DataType, nanoseconds: bool = False) -> Column:
    """Seconds, since 1970 where the cells are dates; null where a cell is no time."""
    cell = column(name)
    if isinstance(kind, TimestampType | TimestampNTZType | DateType):
        return F.unix_micros(cell.cast("timestamp")) / F.lit(1e6)
    if isinstance(kind, StringType):
        date = F.unix_micros(cell.try_cast("timestamp")) / F.lit(1e6)
        return F.coalesce(_no_nan(cell.try_cast("double")), date)
    if not isinstance(kind, NumericType | NullType):
        fix = "store times or seconds in this column"
        raise InputError(f"holds {kind.simpleString()}", fix, None, None, name)
    if nanoseconds:
        return F.call_function("div", cell, F.lit(1000)) / F.lit(1e6)
    return _no_nan(cell.cast("double"))


def staged(rows: DataFrame, axes: Sequence[Axis], others: Sequence[Column]) -> tuple[DataFrame, list[Axis]]:
    """Rows that hold the values and marks themselves, so that each cell is read once however often it is used."""
    names = [(f"value {at}", f"unknown {at}") for at in range(len(axes))]
    columns = [
        part.alias(name)
        for axis, pair in zip(axes, names, strict=True)
        for part, name in zip((axis.value, axis.unknown), pair, strict=True)
    ]
    found = zip(axes, names, strict=True)
    return rows.select(*columns, *others), [
        Axis(axis.attribute, F.col(v), F.col(u)) for axis, (v, u) in found
    ]


def counted(rows: DataFrame, axes: Sequence[Axis]) -> DataFrame:
    """One row an attribute: how many rows there are, and in how many the value is missing, clamped or unknown."""
    kinds = ("missing", "clamped", "unknown")
    marks = [
        F.coalesce(F.sum(mark.cast("long")), F.lit(0)).alias(f"{kind} {at}")
        for at, axis in enumerate(axes)
        for kind, mark in zip(kinds, (axis.value.isNull(), axis.clamped, axis.unknown), strict=True)
    ]
    listed = [
        F.struct(
            F.lit(axis.attribute.name).alias("attribute"),
            "rows",
            *(F.col(f"{kind} {at}").alias(kind) for kind in kinds),
        )
        for at, axis in enumerate(axes)
    ]
    return rows.agg(F.count(F.lit(1)).alias("rows"), *marks).select(F.inline(F.array(*listed)))


def _no_nan(value: Column) -> Column:
    return F.when(~F.isnan(value), value)


def _says_something(cell: Column) -> Column:
    return cell.isNotNull() & ~F.trim(cell).isin(*ABSENT)
