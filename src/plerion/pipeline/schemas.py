"""The columns of every table that a step gives, declared once: a step that gives others fails at once.

Attributes, interests and hosts stand in small tables by number, in the order of the schema and of the workload.
"""

from __future__ import annotations

from pyspark.sql.types import (
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from plerion.content.schema import Schema

TIME, PUBLISHER = "time", "publisher"
MATCHES = "matches"
KEY, JUDGING = "key", "judging"


def _table(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind, nullable=False) for name, kind in columns.items()])


def events(schema: Schema, time: bool = False, publisher: bool = False) -> StructType:
    """A double an attribute, null where the event has no value; seconds and publisher where the source has them.

    An attribute of that name takes the place of either.
    """
    found = [StructField(name, DoubleType()) for name in schema.names]
    if time and TIME not in schema.names:
        found.append(StructField(TIME, DoubleType()))
    if publisher and PUBLISHER not in schema.names:
        found.append(StructField(PUBLISHER, StringType()))
    return StructType(found)


def sample(schema: Schema) -> StructType:
    """Events with the hash that chose them and the half that they fall in."""
    fields = [
        *events(schema),
        StructField(KEY, LongType(), False),
        StructField(JUDGING, BooleanType(), False),
    ]
    return StructType(fields)


COUNTED = _table(
    attribute=StringType(), rows=LongType(), missing=LongType(), clamped=LongType(), unknown=LongType()
)
MOMENTS = _table(
    part=IntegerType(),
    attribute=IntegerType(),
    values=LongType(),
    missing=LongType(),
    mean=DoubleType(),
    squares=DoubleType(),
    least=DoubleType(),
    greatest=DoubleType(),
)
STATISTICS = StructType(MOMENTS.fields[1:])
MATCH_TOTALS = _table(attribute=IntegerType(), matches=LongType())
W_MOMENTS = _table(one=IntegerType(), other=IntegerType(), total=DecimalType(38, 0))
SIMILARITY = _table(one=IntegerType(), other=IntegerType(), matches=LongType())
WORKLOAD = _table(attribute=IntegerType(), bin=IntegerType(), matches=LongType())
INTERVALS = _table(attribute=IntegerType(), rank=IntegerType(), events=LongType())
PAIRS = _table(
    by=StringType(), number=IntegerType(), deliveries=LongType(), wanted=LongType(), hits=LongType()
)
EVALUATION = StructType(
    [
        *PAIRS,
        StructField("false_positives", LongType(), False),
        StructField("false_negatives", LongType(), False),
    ]
)
CLUSTERS = _table(interest=IntegerType(), cluster=IntegerType())
