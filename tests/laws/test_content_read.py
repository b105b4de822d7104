"""Reading a file gives what its rows mean one by one, in every format, and errors name the place."""

import csv
import gzip
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plerion.content.box import bounds, boxes
from plerion.content.event import point
from plerion.content.parse import parse
from plerion.content.read import InputError, Interests, read_events, read_interests
from plerion.content.schema import MISSING, Enumeration, Number, Schema

SCHEMA = Schema(
    (
        Number("t", -10.0, 10.0),
        Number("n", 0, 5, integer=True),
        Enumeration("c", ("x", "NA", "with, comma", 'quote"d')),
        Number("PM2.5", 0.1, 100, scale="log"),
    )
)

Row = Mapping[str, Any]


def as_csv(path: Path, columns: Sequence[str], rows: Sequence[Row]) -> Path:
    file = path.with_suffix(".csv")
    with file.open("w", newline="") as text:
        writer = csv.DictWriter(text, columns, restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return file


def as_gzip(path: Path, columns: Sequence[str], rows: Sequence[Row]) -> Path:
    plain = as_csv(path, columns, rows)
    file = plain.with_suffix(".csv.gz")
    file.write_bytes(gzip.compress(plain.read_bytes()))
    return file


def as_parquet(path: Path, columns: Sequence[str], rows: Sequence[Row]) -> Path:
    file = path.with_suffix(".parquet")
    cells = {column: pa.array([row.get(column) for row in rows]) for column in columns}
    pyarrow.parquet.write_table(pa.table(cells), file)
    return file


FORMATS: Sequence[Callable[[Path, Sequence[str], Sequence[Row]], Path]] = (as_csv, as_gzip, as_parquet)


def events() -> st.SearchStrategy[dict[str, Any]]:
    values = {
        "t": st.floats(-10, 10),
        "n": st.integers(0, 5),
        "c": st.sampled_from(SCHEMA.attributes[2].values),  # type: ignore[union-attr]  # it is the Enumeration
        "PM2.5": st.floats(0.1, 100),
    }
    return st.fixed_dictionaries({name: value | st.none() for name, value in values.items()})


@settings(max_examples=40, deadline=None)
@given(st.lists(events(), max_size=8), st.sampled_from(FORMATS))
def test_each_row_of_events_is_the_point_of_its_event(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row], store: Callable[..., Path]
) -> None:
    file = store(tmp_path_factory.mktemp("read") / "events", [*SCHEMA.names, "other"], rows)
    found = read_events(file, SCHEMA)
    assert found.points.dtype == np.float64
    assert [tuple(row) for row in found.points] == [point(SCHEMA, row) for row in rows]
    assert (found.publishers, found.times, found.absent) == (None, None, ())


def ranges() -> st.SearchStrategy[dict[str, Any]]:
    """Low and high of each attribute, in order, inside, across and outside of the space."""

    def pair(values: st.SearchStrategy[Any], key: Callable[[Any], Any] = float) -> st.SearchStrategy[Any]:
        both = st.tuples(values, values).map(lambda two: tuple(sorted(two, key=key)))
        return both | st.tuples(st.none(), values) | st.tuples(values, st.none()) | st.just((None, None))

    names = SCHEMA.attributes[2].values  # type: ignore[union-attr]  # it is the Enumeration
    pairs = {
        "t": pair(st.sampled_from([-20.0, -10.0, -0.0, 0.0, 5e-324, 3.3, 10.0, 20.0]) | st.floats(-11, 11)),
        "n": pair(st.sampled_from([-3.0, 0.0, 0.5, 2.0, 2.5, 5.0, 5.5, 9.0])),
        "c": pair(st.sampled_from(names), names.index),
        "PM2.5": pair(st.floats(0.01, 200)),
    }
    return st.fixed_dictionaries(pairs).map(
        lambda row: {
            f"{name}_{side}": row[name][at] for name in row for at, side in enumerate(("low", "high"))
        }
    )


def as_filter(row: Row) -> str:
    """The same range in the filter language."""
    terms = ["TRUE"]
    for attribute in SCHEMA.attributes:
        low, high = row[f"{attribute.name}_low"], row[f"{attribute.name}_high"]
        if low is None and high is None:
            continue
        if isinstance(attribute, Enumeration):
            first = 0 if low is None else attribute.values.index(low)
            last = len(attribute.values) if high is None else attribute.values.index(high) + 1
            terms.append(f"c IN ({', '.join(map(repr, attribute.values[first:last]))})")
        else:
            bottom, top = -1e300 if low is None else low, 1e300 if high is None else high
            terms.append(f"{attribute.name} BETWEEN {bottom} AND {top}")
    return " AND ".join(terms)


@settings(max_examples=60, deadline=None)
@given(st.lists(ranges(), min_size=1, max_size=6), st.sampled_from(FORMATS))
def test_ranges_and_filters_that_say_the_same_give_the_same_boxes(
    tmp_path_factory: pytest.TempPathFactory, some: list[Row], store: Callable[..., Path]
) -> None:
    rows = [{"id": f"q{at}", "host": "h1", "filter": as_filter(row), **row} for at, row in enumerate(some)]
    directory = tmp_path_factory.mktemp("read")
    ranged = read_interests(store(directory / "ranges", ["id", "host", *some[0]], rows), SCHEMA)
    texts = read_interests(store(directory / "filters", ["id", "host", "filter"], rows), SCHEMA)
    built = Interests.of((row["id"], "h1", parse(row["filter"], SCHEMA)) for row in rows)
    for other in (texts, built):
        assert ranged.ids == other.ids
        assert ranged.hosts == other.hosts
        assert ranged.offsets.tolist() == other.offsets.tolist()
        assert ranged.bounds.tolist() == other.bounds.tolist()
    assert (ranged.texts, texts.texts) == (None, tuple(row["filter"] for row in rows))


def test_a_row_has_the_boxes_of_its_filter(tmp_path: Path) -> None:
    texts = ["t < 1 OR n = 2", "t > 5 AND t < 5", "TRUE", "c != 'x'"]
    rows = [{"id": f"q{at}", "host": "h1", "filter": text} for at, text in enumerate(texts)]
    found = read_interests(as_csv(tmp_path / "q", ["id", "host", "filter"], rows), SCHEMA)
    for at, text in enumerate(texts):
        part = found.bounds[found.offsets[at] : found.offsets[at + 1]]
        assert part.tolist() == bounds(boxes(parse(text, SCHEMA)), SCHEMA).tolist()
    assert found.offsets.dtype == np.int64
    assert found.offsets[1] == found.offsets[2]


def write(tmp_path: Path, text: str, name: str = "file.csv") -> Path:
    file = tmp_path / name
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    return file


def test_times_and_publishers_are_read_and_absent_attributes_named(tmp_path: Path) -> None:
    file = write(
        tmp_path, "time,publisher,t,x\n2018-04-26T14:48:09+02:00,h1,1,a\n2018-04-26T12:48:10Z,,NaN,\n"
    )
    found = read_events(file, SCHEMA)
    assert found.publishers == ("h1", "")
    assert found.times is not None
    assert found.times.tolist() == [1524746889.0, 1524746890.0]
    assert found.absent == ("n", "c", "PM2.5")
    assert found.points.tolist() == [[1, MISSING, MISSING, MISSING], [MISSING] * 4]
    seconds = read_events(write(tmp_path, "time,t\n0.5,1\n,2\n"), SCHEMA).times
    assert seconds is not None
    assert seconds[0] == 0.5
    assert math.isnan(seconds[1])


def test_no_rows_are_fine(tmp_path: Path) -> None:
    assert read_events(write(tmp_path, "t,n,c\n"), SCHEMA).points.shape == (0, 4)
    none = read_interests(write(tmp_path, "id,host,filter\n"), SCHEMA)
    assert (none.bounds.shape, none.offsets.tolist()) == ((0, 4, 2), [0])
    assert Interests.of([], SCHEMA).bounds.shape == (0, 4, 2)
    assert Interests.of([]).offsets.tolist() == [0]


BAD_EVENTS = {
    "t,n\n1,2\n3,x\n": ":3: row 1, column n: 'x' is not a number",
    "t,n\n1,2\n\n\n3,2.5\n": ":5: row 1, column n: 'n': 2.5 is not whole",
    'note,t\n"two\nlines",1\nplain,11\n': ":4: row 1, column t: 't': 11.0 is outside -10 to 10; correct",
    "t\ninf\n": ":2: row 0, column t: 't': inf is outside",
    "t\n-inf\n": ":2: row 0, column t: 't': -inf is outside",
    "t\n1_0\n": "'1_0' is not a number",
    "c\nx\ny\n": ":3: row 1, column c: 'y' is not one of the 4 values",
    "t,n\n1\n": ":2: row 0: 1 cells under 2 columns",
    "t,n\n1,2,3\n": "3 cells under 2 columns",
    "t,t\n1,2\n": "two columns are named 't'",
    "a,b\n1,2\n": "no column is named like an attribute; the columns are 'a', 'b'; name columns 't', 'n'",
    "": "the file is empty",
    "c\n\udcff\n": ":2: row 0: the text is not UTF-8",
    "time,t\nsoon,1\n": "column time: some cells are no times",
}


@pytest.mark.parametrize("text", BAD_EVENTS, ids=range(len(BAD_EVENTS)))
def test_a_wrong_event_is_named_with_its_place(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_events(write(tmp_path, text), SCHEMA)
    assert BAD_EVENTS[text] in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "file.csv"))


BAD_INTERESTS = {
    "id,host\nq,h\n": "no filters; give id, host, filter, or",
    "id,filter\nq,TRUE\n": "there is no column 'host'",
    "id,host,filter,t_low\nq,h,TRUE,1\n": "'filter' and ranges are both there",
    "id,host,filter\nq,h,TRUE\nq,h,TRUE\n": ":3: row 1, column id: 'q' is already the id of row 0",
    "id,host,filter\n,h,TRUE\n": ":2: row 0, column id: the cell is empty",
    "id,host,filter\nq,,TRUE\n": ":2: row 0, column host: the cell is empty",
    "id,host,filter\nq,h,t >\n": ":2: row 0, column filter: the filter ends here (line 1, column 4 of",
    "id,host,filter\nq,h,\n": ":2: row 0, column filter: the filter ends here",
    "id,host,t_low,t_high\nq,h,3,2\n": ":2: row 0, column t_low: the low of 't' is above its high; swap",
    "id,host,c_low,c_high\nq,h,NA,x\n": "the low of 'c' is above its high",
    "id,host,c_low\nq,h,z\n": "column c_low: 'z' is not one of the 4 values",
    "id,host,t_low\nq,h,warm\n": ":2: row 0, column t_low: 'warm' is not a number",
    "id,host,pm2.5_low\nq,h,1\n": "the column 'pm2.5_low' bounds no attribute; did you mean 'PM2.5'?",
}


@pytest.mark.parametrize("text", BAD_INTERESTS, ids=range(len(BAD_INTERESTS)))
def test_a_wrong_interest_is_named_with_its_place(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_interests(write(tmp_path, text), SCHEMA)
    assert BAD_INTERESTS[text] in str(caught.value)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    whole = gzip.compress(b"t\n" + b"1\n" * 1000)
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "plain.csv.gz").write_bytes(b"t\n1\n")
    (tmp_path / "no.parquet").write_bytes(b"PAR1 no PAR1")
    (tmp_path / "directory.csv").mkdir()
    write(tmp_path, "t\n1\n", "events.txt")
    for name in (
        "cut.csv.gz",
        "plain.csv.gz",
        "no.parquet",
        "directory.csv",
        "events.txt",
        "none.csv",
        "none.parquet",
    ):
        with pytest.raises(InputError) as caught:
            read_events(tmp_path / name, SCHEMA)
        assert str(tmp_path / name) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_file_whose_compression_is_damaged_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(b"t\n" + b"".join(b"%d.%d\n" % (i % 10, i) for i in range(1000)))
    for at in range(10, len(whole), 7):
        (tmp_path / "torn.csv.gz").write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        with pytest.raises(InputError, match="torn"):
            read_events(tmp_path / "torn.csv.gz", SCHEMA)


def test_a_wrong_row_is_named_beside_cells_of_any_size(tmp_path: Path) -> None:
    long = "x" * 200_000
    with pytest.raises(InputError, match="row 1, column t: 't': 99"):
        read_events(write(tmp_path, f"t,note\n1,{long}\n99,\n"), SCHEMA)
    with pytest.raises(InputError, match="row 0, column filter: "):
        read_interests(write(tmp_path, f"id,host,filter\nq,h,{long}\n"), SCHEMA)


def test_a_header_costs_what_its_length_costs(tmp_path: Path) -> None:
    began = perf_counter()
    names = ",".join(f"c{i}" for i in range(50_000))
    assert len(read_events(write(tmp_path, f"t,{names}\n1{',' * 50_000}\n"), SCHEMA).points) == 1
    assert perf_counter() - began < 10


def test_a_name_that_tells_no_format_is_the_whole_complaint(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_events(write(tmp_path, "t\n1\n", "events.txt"), SCHEMA)
    assert str(caught.value).count("events.txt") == 1


def test_parquet_columns_of_the_wrong_type_are_refused(tmp_path: Path) -> None:
    for cells in (pa.array([True]), pa.array(["1"]), pa.array([[1.0]])):
        file = tmp_path / "events.parquet"
        pyarrow.parquet.write_table(pa.table({"t": cells}), file)
        with pytest.raises(InputError, match="column t: holds"):
            read_events(file, SCHEMA)


def test_parquet_of_other_number_and_text_types_is_read(tmp_path: Path) -> None:
    file = tmp_path / "events.parquet"
    table = {
        "t": pa.array([1, None], pa.int64()),
        "n": pa.array([2, None], pa.float32()),
        "c": pa.array(["x", None]).dictionary_encode(),
        "PM2.5": pa.array([1, 2]).cast(pa.decimal128(30, 2)),
    }
    pyarrow.parquet.write_table(pa.table(table), file)
    assert read_events(file, SCHEMA).points.tolist() == [[1, 2, 0, 1], [MISSING, MISSING, MISSING, 2]]


def test_interests_in_memory_are_checked_like_those_in_a_file() -> None:
    anything = parse("TRUE", SCHEMA)
    with pytest.raises(InputError, match="already the id of row 0"):
        Interests.of([("q", "h", anything), ("q", "h", anything)])
    with pytest.raises(InputError, match="another schema"):
        Interests.of([("q", "h", anything), ("r", "h", parse("TRUE", Schema((Number("t", 0, 1),))))])
