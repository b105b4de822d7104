"""Files that `content.read` accepts are read alike; what it would refuse is moved or left out, and counted."""

import gzip
from collections.abc import Callable
from decimal import Decimal
from math import inf, nan
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from plerion.content import read
from plerion.content.errors import InputError
from plerion.content.schema import MISSING, Enumeration, Number, Schema
from plerion.pipeline import files, schemas
from plerion.pipeline.source import Source, read_events
from plerion.pipeline.steps.batches import points_of

CITIES = ("oslo", "rome", "NA", "são paulo")
STATIONS = tuple(f"station {n}" for n in range(300))  # more than are looked for one by one
SCHEMA = Schema(
    (
        Number("x", -5, 10),
        Number("price.eur", 0, 15, integer=True),
        Enumeration("city `c`", CITIES),
        Enumeration("station", STATIONS),
        Number("absent", 0, 1),
    )
)
NOTE = '"two\nlines, ""quoted"""'


def points(table: pa.Table) -> list[list[float]]:
    batches = table.select(list(range(len(SCHEMA.names)))).combine_chunks().to_batches()
    return points_of(batches[0]).tolist() if batches else []


def positions(source: Source) -> list[list[float]]:
    return points(source.events.toArrow())


def counts(source: Source) -> dict[str, tuple[int, int, int, int]]:
    rows = source.counted.collect()
    return {row.attribute: (row["rows"], row.missing, row.clamped, row.unknown) for row in rows}


def clean_cells(rows: int, seed: int) -> dict[str, list[object]]:
    random = np.random.default_rng(seed)
    return {
        "note": [NOTE if row % 7 == 3 else "" for row in range(rows)],
        "x": [None if random.random() < 0.2 else float(random.uniform(-5, 10)) for _ in range(rows)],
        "price.eur": [None if random.random() < 0.2 else int(random.integers(0, 16)) for _ in range(rows)],
        "city `c`": [None if random.random() < 0.2 else str(random.choice(CITIES)) for _ in range(rows)],
        "station": [str(random.choice(STATIONS)) for _ in range(rows)],
        "time": [None if random.random() < 0.2 else float(random.uniform(0, 9)) for _ in range(rows)],
        "publisher": [None if random.random() < 0.2 else "p1" for _ in range(rows)],
    }


def write_csv(path: Path, cells: dict[str, list[object]], quoted: bool = True) -> None:
    lines = [",".join(cells)]
    for row in zip(*cells.values(), strict=True):
        lines.append(
            ",".join("" if cell is None or (cell == NOTE and not quoted) else str(cell) for cell in row)
        )
    text = "\ufeff" + "\n".join(lines) + "\n"
    opener = gzip.open if path.name.endswith(".gz") else open
    with opener(path, "wt", encoding="utf-8") as file:
        file.write(text)


def write_parquet(path: Path, cells: dict[str, list[object]]) -> None:
    pq.write_table(pa.table(cells), path)


WRITERS: dict[str, Callable[[Path, dict[str, list[object]]], None]] = {
    "events.csv": write_csv,
    "one line a row.csv": lambda path, cells: write_csv(path, cells, quoted=False),
    "events.csv.gz": write_csv,
    "events.parquet": write_parquet,
    "2018-04-26T14:48 [a] {b}*.csv": write_csv,
}


@pytest.mark.parametrize("name", WRITERS)
def test_clean_files_are_read_as_content_reads_them(spark: SparkSession, tmp_path: Path, name: str) -> None:
    cells = clean_cells(60, 1)
    WRITERS[name](tmp_path / name, cells)
    source, plain = read_events(spark, tmp_path / name, SCHEMA), read.read_events(tmp_path / name, SCHEMA)
    assert source.events.schema == schemas.events(SCHEMA, time=True, publisher=True)
    found = source.events.toArrow()
    assert points(found) == plain.points.tolist()
    assert [cell or "" for cell in found.column("publisher").to_pylist()] == list(plain.publishers or ())
    times = [nan if cell is None else cell for cell in found.column("time").to_pylist()]
    np.testing.assert_array_equal(times, plain.times)
    assert source.absent == plain.absent == ("absent",)
    missing = (plain.points == MISSING).sum(axis=0).tolist()
    assert counts(source) == {
        name: (60, gone, 0, 0) for name, gone in zip(SCHEMA.names, missing, strict=True)
    }


def test_wrong_cells_are_moved_or_missing_and_counted(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "wrong.csv"
    path.write_text(
        "x,price.eur,city `c`,station,time\n"
        "-6,2.4,atlantis,station 1,soon\n"
        "inf,99,rome,Station 1,2020-01-01T00:00:00Z\n"
        "ten,-1,NA,,1.5\n"
        "-Infinity,7,,station 299,\n"
        "nan, 8 ,oslo\n"
    )
    source = read_events(spark, path, SCHEMA)
    found = source.events.toArrow()
    assert points(found) == [
        [-5, 2, MISSING, 1, MISSING],
        [10, 15, 1, MISSING, MISSING],
        [MISSING, 0, 2, MISSING, MISSING],
        [-5, 7, MISSING, 299, MISSING],
        [MISSING, 8, 0, MISSING, MISSING],
    ]
    assert counts(source) == {
        "x": (5, 2, 3, 1),
        "price.eur": (5, 0, 3, 0),
        "city `c`": (5, 2, 0, 1),
        "station": (5, 3, 0, 1),
        "absent": (5, 5, 0, 0),
    }
    assert found.column("time").to_pylist() == [None, 1577836800.0, 1.5, None, None]


def test_numbers_of_every_kind_in_parquet_become_positions(spark: SparkSession, tmp_path: Path) -> None:
    columns = {
        "int8": pa.array([-9, 3, None], pa.int8()),
        "uint32": pa.array([9, 3, None], pa.uint32()),
        "float32": pa.array([inf, 3, nan], pa.float32()),
        "float64": pa.array([-inf, -0.0, None], pa.float64()),
        "decimal": pa.array([Decimal("5.55"), Decimal(3), None], pa.decimal128(9, 2)),
        "text": pa.array(["2.5e0", "three", None]),
        "nothing": pa.array([None, None, None], pa.null()),
    }
    schema = Schema(tuple(Number(name, -5, 8) for name in columns))
    pq.write_table(pa.table(columns), tmp_path / "kinds.parquet")
    found = read_events(spark, tmp_path / "kinds.parquet", schema).events.toArrow().to_pydict()
    assert found == {
        "int8": [-5, 3, None],
        "uint32": [8, 3, None],
        "float32": [8, 3, None],
        "float64": [-5, 0, None],
        "decimal": [5.55, 3, None],
        "text": [2.5, None, None],
        "nothing": [None, None, None],
    }


def test_dates_of_any_precision_become_seconds(spark: SparkSession, tmp_path: Path) -> None:
    times = pa.array([1577836800123456789, None]).cast(pa.timestamp("ns"))
    for unit in ("s", "us", "ns"):
        path = tmp_path / f"{unit}.parquet"
        pq.write_table(pa.table({"x": [1.0, 2.0], "time": times.cast(pa.timestamp(unit), safe=False)}), path)
        found = [row.time for row in read_events(spark, path, SCHEMA).events.collect()]
        plain = read.read_events(path, SCHEMA).times
        np.testing.assert_array_equal([nan if time is None else time for time in found], plain)


def test_directories_and_lists_of_parquet_are_read_as_one(spark: SparkSession, tmp_path: Path) -> None:
    for day, cells in enumerate(({"x": [1.0]}, {"x": [2.0], "price.eur": [3]}, {"price.eur": [4]})):
        (tmp_path / f"day={day}").mkdir()
        pq.write_table(pa.table(cells), tmp_path / f"day={day}" / "part.parquet")
    parts = sorted(tmp_path.glob("*/*.parquet"))
    found = sorted(event[:2] for event in positions(read_events(spark, parts, SCHEMA)))
    assert found == [[MISSING, 4], [1, MISSING], [2, 3]]
    assert len(positions(read_events(spark, tmp_path, SCHEMA))) == 3


def test_files_of_few_large_parts_are_dealt_out_alike_every_time(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_csv(tmp_path / "events.csv.gz", clean_cells(40, 2))
    pq.write_table(pa.table(clean_cells(40, 2)), tmp_path / "groups.parquet", row_group_size=10)
    pq.write_table(pa.table(clean_cells(40, 2)), tmp_path / "one group.parquet")
    paths = [tmp_path / name for name in ("events.csv.gz", "groups.parquet", "one group.parquet")]
    together = [read_events(spark, path, SCHEMA).events for path in paths]
    assert [found.rdd.getNumPartitions() for found in together] == [1, 1, 1]
    monkeypatch.setattr(files, "PART_ROWS", 10)
    apart = [read_events(spark, path, SCHEMA).events for path in paths]
    assert apart[0].rdd.getNumPartitions() > 4
    assert [found.rdd.getNumPartitions() for found in apart[1:]] == [1, 4]
    for one, other in zip(together, apart, strict=True):
        assert sorted(map(repr, one.collect())) == sorted(map(repr, other.collect()))
    several = read_events(spark, [paths[2], paths[2]], SCHEMA).events
    assert list(map(repr, several.collect())) == list(map(repr, several.collect()))


def refusals(place: Path) -> dict[str, tuple[object, str]]:
    (place / "empty.csv").write_text("")
    (place / "other.csv").write_text("a,b\n1,2\n")
    (place / "twice.csv").write_text("x,x\n1,2\n")
    (place / "text.parquet").write_text("no")
    (place / "fine.csv").write_text("x\n1\n")
    (place / "wider.csv").write_text("x,y\n1,2\n")
    pq.write_table(pa.table({"x": [True]}), place / "flags.parquet")
    pq.write_table(pa.table({"x": [1], "time": [True]}), place / "timed.parquet")
    pq.write_table(pa.table({"city `c`": [[1]]}), place / "lists.parquet")
    return {
        "no paths": ([], "there are no files"),
        "not there": (place / "gone.csv", "No such file"),
        "empty": (place / "empty.csv", "the file is empty"),
        "no attribute": (
            place / "other.csv",
            "no column is named like an attribute; the columns are 'a', 'b'",
        ),
        "two alike": (place / "twice.csv", "two columns are named 'x'"),
        "no parquet": (place / "text.parquet", "cannot be read"),
        "two formats": ([place / "fine.csv", place / "flags.parquet"], "CSV and Parquet"),
        "two headers": ([place / "fine.csv", place / "wider.csv"], "different columns"),
        "flags for numbers": (place / "flags.parquet", "column x: holds boolean"),
        "flags for times": (place / "timed.parquet", "column time: holds boolean"),
        "lists for texts": (place / "lists.parquet", "holds array<bigint>"),
        "no such store": ("nosuch://place/x.parquet", "cannot be read"),
    }


def test_what_holds_no_events_is_refused_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    for name, (paths, line) in refusals(tmp_path).items():
        with pytest.raises(InputError) as refused:
            read_events(spark, paths, SCHEMA)  # type: ignore[arg-type]  # a table of either
        assert line in str(refused.value), name
        assert "\n" not in str(refused.value), name
