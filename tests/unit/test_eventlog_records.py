"""The forms of records, times to the microsecond, boxes as JSON, and the choice of a sample."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from hashlib import sha256
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from plerion.content.schema import MISSING, Enumeration, Number, Schema
from plerion.eventlog.part import by_hour, hour_name, hour_start
from plerion.eventlog.records import (
    MICROS,
    TIME,
    Kind,
    LogError,
    attribute_columns,
    boxes_from_json,
    boxes_to_json,
    columns,
    micros,
    positions_in,
    texts_in,
)
from plerion.eventlog.sampling import checked_rate, kept

SCHEMA = Schema(
    (Number("time", 0, 10), Number("PM2.5", 0, 1), Number("pm2_5", 0, 1), Enumeration("größe", ("s", "l")))
)


def test_the_column_of_an_attribute_is_its_own_even_without_case_and_among_the_logs_columns() -> None:
    names = attribute_columns(SCHEMA)
    assert names == ("x0_time", "x1_PM2_5", "x2_pm2_5", "x3_gr__e")
    for kind in Kind:
        every = [*columns(kind, SCHEMA).names, "hour"]
        assert len({name.lower() for name in every}) == len(every)


def test_only_attributes_and_what_may_be_unknown_can_be_null() -> None:
    nullable = {kind: {field.name for field in columns(kind, SCHEMA) if field.nullable} for kind in Kind}
    assert nullable == {
        Kind.EVENTS: set(attribute_columns(SCHEMA)),
        Kind.DELIVERIES: {"subscription"},
        Kind.SUBSCRIPTIONS: {"filter", "boxes"},
    }


def test_a_time_becomes_the_nearest_microsecond() -> None:
    assert micros([0.0, 1.25, -0.5, 1.6e9 + 1e-6]).tolist() == [0, 1_250_000, -500_000, 1_600_000_000_000_001]
    assert micros(3.0).tolist() == [3_000_000]


@pytest.mark.parametrize("time", [math.nan, math.inf, -math.inf, 1e12, -1e12, 253_402_300_800])
def test_what_is_no_time_of_four_digits_is_refused_with_its_place(time: float) -> None:
    with pytest.raises(LogError, match=r"record 1: .* is no time from the year 1 to 9999"):
        micros([0.0, time])


def test_the_last_moment_of_the_last_year_is_still_in_it() -> None:
    last = micros(math.nextafter(253_402_300_800, 0))[0]
    assert hour_name(int(last)) == "hour=9999123123"


@pytest.mark.parametrize(
    ("time", "folder"),
    [
        (datetime(2013, 4, 1, 0, 59, 59, tzinfo=UTC), "hour=2013040100"),
        (datetime(2013, 4, 1, 1, tzinfo=UTC), "hour=2013040101"),
        (datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), "hour=1969123123"),
        (datetime(1, 1, 1, tzinfo=UTC), "hour=0001010100"),
    ],
)
def test_an_hour_is_named_in_utc_and_its_name_gives_it_back(time: datetime, folder: str) -> None:
    micro = round(time.timestamp()) * MICROS
    assert hour_name(micro) == folder
    start = hour_start(folder)
    assert start is not None
    assert 0 <= micro - start < 3600 * MICROS


@pytest.mark.parametrize(
    "folder", ["hour=2013040124", "hour=2013023000", "hour=201304010", "day=2013040100", "x"]
)
def test_what_names_no_hour_is_none(folder: str) -> None:
    assert hour_start(folder) is None


def test_each_hour_has_its_rows_in_the_order_in_which_they_came() -> None:
    seconds = [7200, 10, 3600, 7201, 5, 3599]
    table = pa.table({"time": pa.array([s * MICROS for s in seconds]).cast(TIME), "row": range(6)})
    found = {hour: rows["row"].to_pylist() for hour, rows in by_hour(table)}
    assert found == {"hour=1970010100": [1, 4, 5], "hour=1970010101": [2], "hour=1970010102": [0, 3]}


def test_missing_positions_are_null_and_nothing_else_is() -> None:
    first, *_ = positions_in([[MISSING, 0, 0, 0], [math.nan, 0, 0, 0], [-0.0, 0, 0, 0]], SCHEMA)
    assert first.is_null().to_pylist() == [True, True, False]
    assert math.copysign(1, first[2].as_py()) == -1


def test_points_that_are_none_of_the_schema_are_refused() -> None:
    with pytest.raises(LogError, match=r"points of shape \(1, 3\) in a space of 4 attributes"):
        positions_in([[0, 0, 0]], SCHEMA)
    with pytest.raises(LogError, match="a position is infinite"):
        positions_in([[math.inf, 0, 0, 0]], SCHEMA)


def test_texts_are_one_for_all_or_one_a_record_and_missing_only_where_they_may_be() -> None:
    assert texts_in("h1", 2, "host").to_pylist() == ["h1", "h1"]
    assert texts_in([None, "q"], 2, "subscription").to_pylist() == [None, "q"]
    with pytest.raises(LogError, match="1 hosts for 2 records"):
        texts_in(["h1"], 2, "host")
    with pytest.raises(LogError, match="a record has no publisher"):
        texts_in([None, "h1"], 2, "publisher")


def test_boxes_come_back_from_their_document_to_the_last_bit() -> None:
    given = np.array([[[-np.inf, np.inf], [0.1, 0.30000000000000004], [-np.inf, 5e-324], [-0.0, np.inf]]])
    text = boxes_to_json(given, SCHEMA)
    assert text == '[{"PM2.5":[0.1,0.30000000000000004],"pm2_5":[null,5e-324],"größe":[-0.0,null]}]'
    assert boxes_from_json(text, SCHEMA).tobytes() == given.tobytes()
    assert boxes_from_json(boxes_to_json(given[:0], SCHEMA), SCHEMA).shape == (0, 4, 2)


@pytest.mark.parametrize("text", ["", "{}", '[{"time": 1}]', '[{"unknown": [1, 2]}]', '[{"time": [1, "2"]}]'])
def test_boxes_that_were_not_written_by_the_log_are_refused(text: str) -> None:
    with pytest.raises(LogError, match="boxes that cannot be read"):
        boxes_from_json(text, SCHEMA)


IDS = pa.array([f"h{i % 7}" for i in range(70_000)]), np.arange(70_000) // 7


def test_a_sample_has_about_its_share_of_every_publisher_and_of_every_stretch() -> None:
    for rate in (0.5, 0.1, 0.01):
        chosen = kept(*IDS, rate)
        shares = [chosen[i::7].mean() for i in range(7)] + [part.mean() for part in np.split(chosen, 7)]
        deviation = math.sqrt(rate * (1 - rate) / 10_000)
        assert max(abs(share - rate) for share in shares) < 5 * deviation


def test_a_sample_is_part_of_every_larger_one_and_one_is_all() -> None:
    samples = [kept(*IDS, rate) for rate in (0.001, 0.01, 0.3, 0.999, 1.0)]
    assert all((small <= large).all() for small, large in pairwise(samples))
    assert samples[-1].all()
    assert samples[0].any()


def test_whether_an_event_is_sampled_hangs_on_its_id_alone() -> None:
    publishers, sequences = IDS
    order = np.random.default_rng(1).permutation(len(sequences))
    assert (kept(publishers.take(pa.array(order)), sequences[order], 0.2) == kept(*IDS, 0.2)[order]).all()
    assert (kept(*IDS, 0.2) != kept(publishers, sequences + 1, 0.2)).any()


def plainly_kept(publisher: str, sequence: int, rate: float) -> bool:
    """The definition, one event at a time. It never changes, or samples of several hosts no longer join."""

    def mixed(word: int) -> int:
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
        return word ^ (word >> 31)

    salt = int.from_bytes(sha256(publisher.encode()).digest()[:8], "little")
    return mixed(mixed(sequence % 2**64) ^ salt) < rate * 2**64


def test_the_sample_of_arrays_is_that_of_its_definition() -> None:
    numbers = [0, 1, 2, 2**63 - 1, -1, *range(1000, 2000)]
    for publisher in ("h1", "h2", "", "größe"):
        found = kept(pa.array([publisher] * len(numbers)), np.array(numbers), 0.3).tolist()
        assert found == [plainly_kept(publisher, number, 0.3) for number in numbers]


@pytest.mark.parametrize("rate", [0, -1, 1.0001, math.nan, math.inf, 1e-12])
def test_a_rate_that_cannot_be_scaled_back_is_refused(rate: float) -> None:
    with pytest.raises(LogError, match="a sampling rate of"):
        checked_rate(rate)
    assert checked_rate(2.0**-32) == 2.0**-32
